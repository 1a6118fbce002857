//! What an access list, a class-map or an interface may not ask for is refused with the path of what is wrong; what is
//! just within is taken.

use crate::common::{self, configuration, interface};
use qos_core::wire::Framing::Ethernet;
use qos_core::{Engine, RouterConfig, Time};
use serde_json::{json, Value};

/// The path of what is refused in a configuration that was changed so, with the reason.
fn refused(change: impl FnOnce(&mut Value)) -> Option<(String, String)> {
    let mut config = serde_json::to_value(configuration("hqf", json!({}), interface(2_000, None, None))).unwrap();
    change(&mut config);
    let mut engine: Engine<()> = common::engine(100_000_000, Ethernet);
    let error = engine.configure(Time(0), &RouterConfig::from_json(&config.to_string()).unwrap()).err()?;
    assert!(engine.config().is_none(), "a refused configuration changes nothing");
    Some((error.path, error.message))
}

fn entry(protocol: Option<u8>, more: &Value) -> Option<(String, String)> {
    let any = json!({"address": "0.0.0.0", "wildcard": "255.255.255.255"});
    let mut entry = json!({"action": "permit", "protocol": protocol, "source": any, "destination": any});
    common::extend(&mut entry, more);
    refused(|config| config["access_lists"]["asked"] = json!([entry]))
}

fn taken(protocol: Option<u8>, more: Value) {
    assert_eq!(entry(protocol, &more), None, "{more}");
}

fn not_taken(protocol: Option<u8>, more: Value, field: &str, reason: &str) {
    let (path, message) = entry(protocol, &more).unwrap_or_else(|| panic!("accepted: {more}"));
    assert_eq!(path, format!("access_lists.asked[0].{field}"), "{message}");
    assert!(message.contains(reason), "{message}");
}

#[test]
fn figures_of_an_entry_are_checked() {
    taken(None, json!({"dscp": 63}));
    not_taken(None, json!({"dscp": 64}), "dscp", "64 is out of range: give 0 to 63");
    taken(None, json!({"precedence": 7}));
    not_taken(None, json!({"precedence": 8}), "precedence", "8 is out of range: give 0 to 7");
}

/// Each field belongs to some protocols, and to no entry of any protocol.
#[test]
fn fields_of_an_entry_go_with_its_protocol() {
    let port = json!({"op": "eq", "ports": [80]});
    let fields: [(&str, Value, &[u8]); 4] = [
        ("source_port", port.clone(), &[6, 17]),
        ("destination_port", port, &[6, 17]),
        ("established", json!(true), &[6]),
        ("icmp_type", json!(3), &[1]),
    ];
    for (field, value, protocols) in fields {
        for protocol in [None, Some(1), Some(6), Some(17), Some(47), Some(58)] {
            if protocol.is_some_and(|protocol| protocols.contains(&protocol)) {
                taken(protocol, json!({field: value}));
            } else {
                not_taken(protocol, json!({field: value}), field, "set the protocol accordingly");
            }
        }
    }
    taken(Some(1), json!({"icmp_type": 3, "icmp_code": 1}));
    not_taken(Some(1), json!({"icmp_code": 1}), "icmp_code", "a code belongs to a type");
    not_taken(Some(17), json!({"icmp_type": 3, "icmp_code": 1}), "icmp_type", "only ICMP (1) packets have it");
    taken(Some(17), json!({"fragments": true}));
    for field in ["source_port", "destination_port"] {
        let both = json!({"fragments": true, field: {"op": "eq", "ports": [80]}});
        not_taken(Some(17), both, "fragments", "have no ports");
    }
}

#[test]
fn ports_go_with_their_operator() {
    for (op, ports, fits) in [
        ("eq", json!([]), false),
        ("eq", json!([80]), true),
        ("eq", json!([80, 443]), true),
        ("neq", json!([]), false),
        ("neq", json!([80]), true),
        ("gt", json!([]), false),
        ("gt", json!([80]), true),
        ("gt", json!([80, 81]), false),
        ("lt", json!([]), false),
        ("lt", json!([80]), true),
        ("lt", json!([80, 81]), false),
        ("range", json!([]), false),
        ("range", json!([80]), false),
        ("range", json!([80, 79]), false),
        ("range", json!([80, 80]), true),
        ("range", json!([80, 81]), true),
        ("range", json!([80, 81, 82]), false),
    ] {
        for field in ["source_port", "destination_port"] {
            let asked = json!({field: {"op": op, "ports": ports}});
            if fits {
                taken(Some(6), asked);
            } else {
                not_taken(Some(6), asked, &format!("{field}.ports"), "eq and neq take ports, gt and lt one");
            }
        }
    }
}

/// A segment size that TCP may be held to: 500 to 1460 bytes, of an interface and of each subinterface.
#[test]
fn segment_sizes_are_checked() {
    for (size, fits) in [(499, false), (500, true), (1_460, true), (1_461, false)] {
        let own = refused(|config| config["interfaces"]["Out"]["tcp_adjust_mss"] = json!(size));
        assert_eq!(own.map(|(path, _)| path), (!fits).then(|| "interfaces.Out.tcp_adjust_mss".to_owned()), "{size}");
        let below = refused(|config| {
            let subinterface = json!({"enabled": true, "vlan": 10, "bandwidth_kbps": 2_000, "tcp_adjust_mss": size});
            config["interfaces"]["Out"]["subinterfaces"] = json!({"Out.10": subinterface});
        });
        let path = "interfaces.Out.subinterfaces.Out.10.tcp_adjust_mss";
        assert_eq!(below.map(|(path, _)| path), (!fits).then(|| path.to_owned()), "{size}");
    }
}

fn criterion(criterion: &Value) -> Option<String> {
    let asked = json!({"match": "all", "criteria": [criterion]});
    refused(|config| config["class_maps"]["asked"] = asked).map(|(path, _)| path)
}

/// Match statements, with the path of what is wrong in them.
#[test]
fn match_statements_are_checked() {
    for (asked, wrong) in [
        (json!({"type": "dscp", "values": []}), Some(".values")),
        (json!({"type": "dscp", "values": [0, 63]}), None),
        (json!({"type": "dscp", "values": [0, 64]}), Some(".values[1]")),
        (json!({"type": "precedence", "values": [7]}), None),
        (json!({"type": "precedence", "values": [8]}), Some(".values[0]")),
        (json!({"type": "cos", "values": [7]}), None),
        (json!({"type": "cos", "values": [8]}), Some(".values[0]")),
        (json!({"type": "vlan", "ranges": []}), Some(".ranges")),
        (json!({"type": "vlan", "ranges": [[1, 4_094], [5, 5]]}), None),
        (json!({"type": "vlan", "ranges": [[0, 5]]}), Some(".ranges[0]")),
        (json!({"type": "vlan", "ranges": [[1, 1], [5, 4_095]]}), Some(".ranges[1]")),
        (json!({"type": "vlan", "ranges": [[5, 4]]}), Some(".ranges[0]")),
        (json!({"type": "packet_length", "min": 100, "max": 100}), None),
        (json!({"type": "packet_length", "min": 100}), None),
        (json!({"type": "packet_length", "max": 100}), None),
        (json!({"type": "packet_length", "min": 101, "max": 100}), Some("")),
        (json!({"type": "packet_length"}), Some("")),
        (json!({"type": "access_group", "name": "low"}), None),
        (json!({"type": "access_group", "name": "none"}), Some(".name")),
        (json!({"type": "input_interface", "name": "Out"}), None),
        (json!({"type": "input_interface", "name": "None"}), Some(".name")),
        (json!({"type": "class_map", "name": "class-default"}), None),
        (json!({"type": "class_map", "name": "udp"}), None),
        (json!({"type": "class_map", "name": "none"}), Some(".name")),
        (json!({"type": "class_map", "name": "asked"}), Some("")),
    ] {
        let found = criterion(&asked);
        match wrong {
            None => assert_eq!(found, None, "{asked}"),
            Some("") => assert!(found.is_some_and(|path| path.starts_with("class_maps.asked.criteria[0]")), "{asked}"),
            Some(field) => assert_eq!(found, Some(format!("class_maps.asked.criteria[0]{field}")), "{asked}"),
        }
    }
}

/// Class-maps refer to others up to eight times, one in the other, and ask 4096 things at most.
#[test]
fn class_maps_are_bounded() {
    for (references, fits) in [(8, true), (9, false)] {
        let error = refused(|config| {
            for number in 0..references {
                let next = json!({"type": "class_map", "name": format!("m{}", number + 1)});
                config["class_maps"][format!("m{number}")] = json!({"match": "any", "criteria": [next]});
            }
            let last = json!({"match": "any", "criteria": [{"type": "dscp", "values": [1]}]});
            config["class_maps"][format!("m{references}")] = last;
        });
        assert_eq!(error.is_none(), fits, "{references}: {error:?}");
    }
    for (statements, fits) in [(4_096, true), (4_097, false)] {
        let error = refused(|config| {
            let criteria = vec![json!({"type": "qos_group", "value": 1}); statements];
            config["class_maps"]["asked"] = json!({"match": "any", "criteria": criteria});
        });
        let path = error.map(|(path, _)| path);
        assert_eq!(path, (!fits).then(|| "class_maps.asked.criteria[4096]".to_owned()));
    }
    let default = refused(|config| config["class_maps"]["class-default"] = json!({"match": "any", "criteria": []}));
    assert_eq!(default.map(|(path, _)| path), Some("class_maps.class-default".to_owned()));
}

/// Lines of `rate-limit`: rates, bursts, what they write, and how many there are.
#[test]
fn figures_of_rate_limits_are_checked() {
    let line = |more: Value| {
        let mut line = json!({"rate_bps": 8_000, "normal_burst_bytes": 1_000, "extended_burst_bytes": 2_000,
            "conform": {"then": "transmit"}, "exceed": {"then": "drop"}});
        common::extend(&mut line, &more);
        line
    };
    let asked = |lines: Vec<Value>, output: bool| {
        let field = if output { "rate_limit_output" } else { "rate_limit_input" };
        let path = refused(|config| config["interfaces"]["Out"][field] = json!(lines)).map(|(path, _)| path)?;
        Some(path.strip_prefix(&format!("interfaces.Out.{field}")).unwrap_or(&path).to_owned())
    };
    for (field, least, most) in [
        ("rate_bps", 8_000u64, 2_000_000_000u64),
        ("normal_burst_bytes", 1_000, 512_000_000),
        ("extended_burst_bytes", 2_000, 1_024_000_000),
    ] {
        for (value, fits) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            for output in [false, true] {
                let found = asked(vec![line(json!({field: value}))], output);
                assert_eq!(found, (!fits).then(|| format!("[0].{field}")), "{field} {value}");
            }
        }
    }
    for (field, most) in [("dscp", 63), ("precedence", 7), ("qos_group", 99)] {
        for (value, fits) in [(most, true), (most + 1, false)] {
            for action in ["conform", "exceed"] {
                let write = json!({"set": {"field": field, "value": value}, "then": "transmit"});
                let found = asked(vec![line(json!({action: write}))], false);
                assert_eq!(found, (!fits).then(|| format!("[0].{action}.set.value")), "{field} {value}");
            }
        }
    }
    assert_eq!(asked(vec![line(json!({})); 100], false), None);
    assert_eq!(asked(vec![line(json!({})); 101], false), Some(String::new()));
}

/// The path of what is refused of the interface, relative to it.
fn on_interface(change: &Value) -> Option<String> {
    let found = refused(|config| {
        common::extend(&mut config["interfaces"]["Out"], change);
    });
    found.map(|(path, _)| path.trim_start_matches("interfaces.Out.").to_owned())
}

/// Figures of an interface, at the ends of what they may be.
#[test]
fn figures_of_interfaces_are_checked() {
    let fair = |field: &str, value: u32| json!({"fair_queue": {"enabled": true, field: value}});
    for (asked, wrong) in [
        (json!({"bandwidth_kbps": 0}), Some("bandwidth_kbps")),
        (json!({"bandwidth_kbps": 1}), None),
        (json!({"load_interval_s": 0}), Some("load_interval_s")),
        (json!({"load_interval_s": 30}), None),
        (json!({"load_interval_s": 45}), Some("load_interval_s")),
        (json!({"load_interval_s": 600}), None),
        (json!({"load_interval_s": 630}), Some("load_interval_s")),
        (json!({"tx_ring_limit": 0}), Some("tx_ring_limit")),
        (json!({"tx_ring_limit": 1}), None),
        (json!({"hold_queue_out": 0}), Some("hold_queue_out")),
        (json!({"hold_queue_out": 1}), None),
        (json!({"max_reserved_percent": 0}), Some("max_reserved_percent")),
        (json!({"max_reserved_percent": 1}), None),
        (json!({"max_reserved_percent": 100}), None),
        (json!({"max_reserved_percent": 101}), Some("max_reserved_percent")),
        (json!({"clock_rate_bps": 64_000}), Some("clock_rate_bps")),
        (fair("discard_threshold", 0), Some("fair_queue.discard_threshold")),
        (fair("discard_threshold", 1), None),
        (fair("discard_threshold", 4_096), None),
        (fair("discard_threshold", 4_097), Some("fair_queue.discard_threshold")),
        (fair("dynamic_queues", 16), None),
        (fair("dynamic_queues", 17), Some("fair_queue.dynamic_queues")),
        (fair("reserved_queues", 0), None),
        (fair("reserved_queues", 1_000), None),
        (fair("reserved_queues", 1_001), Some("fair_queue.reserved_queues")),
    ] {
        assert_eq!(on_interface(&asked).as_deref(), wrong, "{asked}");
    }
}

/// What a class sets, and a burst that is none, are refused of a policy-map that is attached to no interface, too.
#[test]
fn policy_maps_are_checked_without_an_interface() {
    let class = |field: &str, value: &Value| {
        let classes = json!([{"name": "class-default", field: value}]);
        let found = refused(|config| config["policy_maps"]["P"] = json!({"classes": classes}));
        found.map(|(path, _)| path.trim_start_matches("policy_maps.P.classes[0].").to_owned())
    };
    for (field, most) in [("dscp", 63), ("precedence", 7), ("cos", 7), ("qos_group", 99)] {
        assert_eq!(class("set", &json!([{"field": field, "value": most}])), None, "{field}");
        let beyond = class("set", &json!([{"field": field, "value": most + 1}]));
        assert_eq!(beyond.as_deref(), Some("set[0].value"), "{field}");
    }
    let shape = |bc: Value| json!({"mode": "average", "rate": {"percent": 10}, "bc": bc});
    for none in [json!({"bits": 0}), json!({"ms": 0})] {
        assert_eq!(class("shape", &shape(none)).as_deref(), Some("shape.bc"));
    }
    assert_eq!(class("shape", &shape(json!({"ms": 10}))), None);
}
