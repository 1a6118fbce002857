//! Access lists, class-maps and interfaces that are refused, with the path of the error, and limiting values that are
//! accepted.

use crate::common::build::*;
use crate::common::{self, configuration};
use qos_core::wire::Framing::Ethernet;
use qos_core::{Engine, RouterConfig, Time};

/// The path of what is refused in a configuration that was changed so, with the reason.
fn refusal_of(change: impl FnOnce(&mut RouterConfig)) -> Option<(String, String)> {
    let mut config = configuration(Hqf, Maps::new(), interface(2_000, None, None));
    change(&mut config);
    let mut engine: Engine<usize> = common::engine(100_000_000, Ethernet);
    let error = engine.configure(Time(0), &config).err()?;
    assert!(engine.config().is_none(), "a refused configuration changes nothing");
    Some((error.path, error.message))
}

/// Error of this entry of an access list.
fn in_entry(entry: &AccessListEntry) -> Option<(String, String)> {
    refusal_of(|config| {
        config.access_lists.insert("asked".to_owned(), vec![entry.clone()]);
    })
}

fn is_accepted(entry: &AccessListEntry) {
    assert_eq!(in_entry(entry), None, "{entry:?}");
}

fn is_refused(entry: &AccessListEntry, field: &str, reason: &str) {
    let (path, message) = in_entry(entry).unwrap_or_else(|| panic!("accepted: {entry:?}"));
    assert_eq!(path, format!("access_lists.asked[0].{field}"), "{message}");
    assert!(message.contains(reason), "{message}");
}

#[test]
fn values_of_an_access_list_entry_are_checked() {
    is_accepted(&AccessListEntry { dscp: Some(63), ..permit(None) });
    is_refused(&AccessListEntry { dscp: Some(64), ..permit(None) }, "dscp", "64 is out of range: expected 0 to 63");
    is_accepted(&AccessListEntry { precedence: Some(7), ..permit(None) });
    let beyond = AccessListEntry { precedence: Some(8), ..permit(None) };
    is_refused(&beyond, "precedence", "8 is out of range: expected 0 to 7");
}

/// Each field belongs to some protocols, and to no entry of any protocol.
#[test]
fn fields_of_an_entry_must_fit_its_protocol() {
    let port = || ports(PortOperator::Eq, &[80]);
    let icmp = |icmp_type, icmp_code, protocol| AccessListEntry { icmp_type, icmp_code, ..permit(Some(protocol)) };
    for protocol in [None, Some(1), Some(6), Some(17), Some(47), Some(58)] {
        let plain = permit(protocol);
        let fields: [(&str, AccessListEntry, &[u8]); 4] = [
            ("source_port", AccessListEntry { source_port: port(), ..plain.clone() }, &[6, 17]),
            ("destination_port", AccessListEntry { destination_port: port(), ..plain.clone() }, &[6, 17]),
            ("established", AccessListEntry { established: true, ..plain.clone() }, &[6]),
            ("icmp_type", AccessListEntry { icmp_type: Some(3), ..plain }, &[1]),
        ];
        for (field, entry, protocols) in fields {
            if protocol.is_some_and(|protocol| protocols.contains(&protocol)) {
                is_accepted(&entry);
            } else {
                is_refused(&entry, field, "set the protocol accordingly");
            }
        }
    }
    is_accepted(&icmp(Some(3), Some(1), 1));
    is_refused(&icmp(None, Some(1), 1), "icmp_code", "a code needs a type");
    is_refused(&icmp(Some(3), Some(1), 17), "icmp_type", "only ICMP (1) packets have this field");
    let fragments = || AccessListEntry { fragments: true, ..permit(Some(17)) };
    is_accepted(&fragments());
    is_refused(&AccessListEntry { source_port: port(), ..fragments() }, "fragments", "have no ports");
    is_refused(&AccessListEntry { destination_port: port(), ..fragments() }, "fragments", "have no ports");
}

#[test]
fn number_of_ports_must_fit_the_operator() {
    use PortOperator::{Eq, Gt, Lt, Neq, Range};
    let tables: [(PortOperator, &[u16], bool); 17] = [
        (Eq, &[], false),
        (Eq, &[80], true),
        (Eq, &[80, 443], true),
        (Neq, &[], false),
        (Neq, &[80], true),
        (Gt, &[], false),
        (Gt, &[80], true),
        (Gt, &[80, 81], false),
        (Lt, &[], false),
        (Lt, &[80], true),
        (Lt, &[80, 81], false),
        (Range, &[], false),
        (Range, &[80], false),
        (Range, &[80, 79], false),
        (Range, &[80, 80], true),
        (Range, &[80, 81], true),
        (Range, &[80, 81, 82], false),
    ];
    for (op, numbers, fits) in tables {
        for (field, entry) in [
            ("source_port", AccessListEntry { source_port: ports(op, numbers), ..permit(Some(6)) }),
            ("destination_port", AccessListEntry { destination_port: ports(op, numbers), ..permit(Some(6)) }),
        ] {
            if fits {
                is_accepted(&entry);
            } else {
                is_refused(&entry, &format!("{field}.ports"), "eq and neq take ports, gt and lt one");
            }
        }
    }
}

/// A segment size that TCP may be held to: 500 to 1460 bytes, of an interface and of each subinterface.
#[test]
fn segment_sizes_are_checked() {
    for (size, fits) in [(499, false), (500, true), (1_460, true), (1_461, false)] {
        let own = refusal_of(|config| config.out().tcp_adjust_mss = Some(size));
        assert_eq!(own.map(|(path, _)| path), (!fits).then(|| "interfaces.Out.tcp_adjust_mss".to_owned()), "{size}");
        let below = refusal_of(|config| {
            let subinterface = SubinterfaceConfig { tcp_adjust_mss: Some(size), ..SubinterfaceConfig::new(10, 2_000) };
            config.out().subinterfaces.insert("Out.10".to_owned(), subinterface);
        });
        let path = "interfaces.Out.subinterfaces.Out.10.tcp_adjust_mss";
        assert_eq!(below.map(|(path, _)| path), (!fits).then(|| path.to_owned()), "{size}");
    }
}

/// The path of what is refused in this class-map.
fn in_class_map(class_map: ClassMap) -> Option<String> {
    let found = refusal_of(|config| {
        config.class_maps.insert("asked".to_owned(), class_map);
    });
    found.map(|(path, _)| path)
}

/// Match statements, with the path of what is wrong in them.
#[test]
fn match_statements_are_checked() {
    for (asked, wrong) in [
        (dscp(&[]), Some(".values")),
        (dscp(&[0, 63]), None),
        (dscp(&[0, 64]), Some(".values[1]")),
        (precedence(&[7]), None),
        (precedence(&[8]), Some(".values[0]")),
        (cos(&[7]), None),
        (cos(&[8]), Some(".values[0]")),
        (vlans(&[]), Some(".ranges")),
        (vlans(&[(1, 4_094), (5, 5)]), None),
        (vlans(&[(0, 5)]), Some(".ranges[0]")),
        (vlans(&[(1, 1), (5, 4_095)]), Some(".ranges[1]")),
        (vlans(&[(5, 4)]), Some(".ranges[0]")),
        (packet_length(Some(100), Some(100)), None),
        (packet_length(Some(100), None), None),
        (packet_length(None, Some(100)), None),
        (packet_length(Some(101), Some(100)), Some("")),
        (packet_length(None, None), Some("")),
        (access_group("low"), None),
        (access_group("none"), Some(".name")),
        (input_interface("Out"), None),
        (input_interface("None"), Some(".name")),
        (other_class("class-default"), None),
        (other_class("udp"), None),
        (other_class("none"), Some(".name")),
        (other_class("asked"), Some("")),
    ] {
        let found = in_class_map(match_all(vec![asked.clone()]));
        match wrong {
            None => assert_eq!(found, None, "{asked:?}"),
            Some("") => {
                assert!(found.is_some_and(|path| path.starts_with("class_maps.asked.criteria[0]")), "{asked:?}")
            }
            Some(field) => assert_eq!(found, Some(format!("class_maps.asked.criteria[0]{field}")), "{asked:?}"),
        }
    }
}

/// Class-maps refer to others up to eight times, one in the other, and ask 4096 things at most.
#[test]
fn class_maps_are_bounded() {
    for (references, fits) in [(8, true), (9, false)] {
        let error = refusal_of(|config| {
            for number in 0..references {
                let next = other_class(&format!("m{}", number + 1));
                config.class_maps.insert(format!("m{number}"), match_any(vec![next]));
            }
            config.class_maps.insert(format!("m{references}"), match_any(vec![dscp(&[1])]));
        });
        assert_eq!(error.is_none(), fits, "{references}: {error:?}");
    }
    for (statements, fits) in [(4_096, true), (4_097, false)] {
        let path = in_class_map(match_any(vec![qos_group(1); statements]));
        assert_eq!(path, (!fits).then(|| "class_maps.asked.criteria[4096]".to_owned()));
    }
    let default = refusal_of(|config| {
        config.class_maps.insert("class-default".to_owned(), match_any(vec![]));
    });
    assert_eq!(default.map(|(path, _)| path), Some("class_maps.class-default".to_owned()));
}

/// A number of a line of `rate-limit`.
type Field = fn(&mut RateLimitConfig) -> &mut u64;

/// Lines of `rate-limit`: rates, bursts, what they write, and how many there are.
#[test]
fn values_of_rate_limits_are_checked() {
    use SetField::{Dscp, Precedence, QosGroup};
    let line = || RateLimitConfig::new(8_000, 1_000, 2_000);
    let asked = |lines: Vec<RateLimitConfig>, output: bool| {
        let field = if output { "rate_limit_output" } else { "rate_limit_input" };
        let lines_of = |out: &mut InterfaceConfig| match output {
            true => out.rate_limit_output = lines,
            false => out.rate_limit_input = lines,
        };
        let path = refusal_of(|config| lines_of(config.out())).map(|(path, _)| path)?;
        Some(path.strip_prefix(&format!("interfaces.Out.{field}")).unwrap_or(&path).to_owned())
    };
    let fields: [(&str, u64, u64, Field); 3] = [
        ("rate_bps", 8_000, 2_000_000_000, |line| &mut line.rate_bps),
        ("normal_burst_bytes", 1_000, 512_000_000, |line| &mut line.normal_burst_bytes),
        ("extended_burst_bytes", 2_000, 1_024_000_000, |line| &mut line.extended_burst_bytes),
    ];
    for (name, least, most, field) in fields {
        for (value, fits) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            for output in [false, true] {
                let mut line = line();
                *field(&mut line) = value;
                assert_eq!(asked(vec![line], output), (!fits).then(|| format!("[0].{name}")), "{name} {value}");
            }
        }
    }
    for (field, most) in [(Dscp, 63), (Precedence, 7), (QosGroup, 99)] {
        for (value, fits) in [(most, true), (most + 1, false)] {
            let write = RateLimitAction { set: Some(SetAction { field, value }), then: RateLimitOutcome::Transmit };
            let found = asked(vec![RateLimitConfig { conform: write, ..line() }], false);
            assert_eq!(found, (!fits).then(|| "[0].conform.set.value".to_owned()), "{field:?} {value}");
            let found = asked(vec![RateLimitConfig { exceed: write, ..line() }], false);
            assert_eq!(found, (!fits).then(|| "[0].exceed.set.value".to_owned()), "{field:?} {value}");
        }
    }
    assert_eq!(asked(vec![line(); 100], false), None);
    assert_eq!(asked(vec![line(); 101], false), Some(String::new()));
}

/// Values of an interface, at the ends of what they may be.
#[test]
fn values_of_interfaces_are_checked() {
    let plain = || interface(2_000, None, None);
    let bandwidth = |bandwidth_kbps| InterfaceConfig { bandwidth_kbps, ..plain() };
    let averages = |load_interval_s| InterfaceConfig { load_interval_s, ..plain() };
    let ring = |limit| InterfaceConfig { tx_ring_limit: Some(limit), ..plain() };
    let hold_queue = |limit| InterfaceConfig { hold_queue_out: Some(limit), ..plain() };
    let reserved = |percent| InterfaceConfig { max_reserved_percent: Some(percent), ..plain() };
    let fair = |change: fn(&mut InterfaceFairQueue)| {
        let mut fair_queue = fair_queue();
        change(&mut fair_queue);
        InterfaceConfig { fair_queue: Some(fair_queue), ..plain() }
    };
    for (asked, wrong) in [
        (bandwidth(0), Some("bandwidth_kbps")),
        (bandwidth(1), None),
        (averages(0), Some("load_interval_s")),
        (averages(30), None),
        (averages(45), Some("load_interval_s")),
        (averages(600), None),
        (averages(630), Some("load_interval_s")),
        (ring(0), Some("tx_ring_limit")),
        (ring(1), None),
        (hold_queue(0), Some("hold_queue_out")),
        (hold_queue(1), None),
        (reserved(0), Some("max_reserved_percent")),
        (reserved(1), None),
        (reserved(100), None),
        (reserved(101), Some("max_reserved_percent")),
        (InterfaceConfig { clock_rate_bps: Some(64_000), ..plain() }, Some("clock_rate_bps")),
        (fair(|own| own.discard_threshold = Some(0)), Some("fair_queue.discard_threshold")),
        (fair(|own| own.discard_threshold = Some(1)), None),
        (fair(|own| own.discard_threshold = Some(4_096)), None),
        (fair(|own| own.discard_threshold = Some(4_097)), Some("fair_queue.discard_threshold")),
        (fair(|own| own.dynamic_queues = Some(16)), None),
        (fair(|own| own.dynamic_queues = Some(17)), Some("fair_queue.dynamic_queues")),
        (fair(|own| own.reserved_queues = Some(0)), None),
        (fair(|own| own.reserved_queues = Some(1_000)), None),
        (fair(|own| own.reserved_queues = Some(1_001)), Some("fair_queue.reserved_queues")),
    ] {
        let path = refusal_of(|config| *config.out() = asked.clone()).map(|(path, _)| path);
        assert_eq!(path, wrong.map(|field| format!("interfaces.Out.{field}")), "{asked:?}");
    }
}

/// Invalid marks of a class, and an invalid burst, are also refused in a policy-map that is not attached to an
/// interface.
#[test]
fn policy_maps_are_checked_without_an_interface() {
    use SetField::{Cos, Dscp, Precedence, QosGroup};
    let in_class = |class: PolicyClass| {
        let found = refusal_of(|config| config.policy_maps = maps([("P", vec![class])]));
        found.map(|(path, _)| path.trim_start_matches("policy_maps.P.classes[0].").to_owned())
    };
    for (field, most) in [(Dscp, 63), (Precedence, 7), (Cos, 7), (QosGroup, 99)] {
        assert_eq!(in_class(class_default().set(field, most)), None, "{field:?}");
        assert_eq!(in_class(class_default().set(field, most + 1)).as_deref(), Some("set[0].value"), "{field:?}");
    }
    let shaped = |bc| ShapeConfig { bc: Some(bc), ..ShapeConfig::average(RateSpec::Percent(10)) };
    for none in [ShapeBurst::Bits(0), ShapeBurst::Ms(0)] {
        assert_eq!(in_class(class_default().shape(shaped(none))).as_deref(), Some("shape.bc"));
    }
    assert_eq!(in_class(class_default().shape(shaped(ShapeBurst::Ms(10)))), None);
}
