//! IEEE 802.1Q subinterfaces: their frames, counted bytes and policies.

use crate::common::build::*;
use crate::common::{self, run, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{Count, PolicyCounters};
use qos_core::wire::Framing::{Ethernet, Ppp};
use qos_core::{Departure, Descriptor, Dropped, Engine, Output, RouterConfig, Side, Time};

const LINE: u64 = 100_000_000;

/// A subinterface of a VLAN, with the number that its name ends with.
type Own = (u16, SubinterfaceConfig);

fn own(vlan: u16) -> Own {
    (vlan, SubinterfaceConfig::new(vlan, 100_000))
}

/// The same with an output policy.
fn with_output(vlan: u16, policy_map: &str) -> Own {
    (vlan, own(vlan).1.output(policy_map))
}

fn native(vlan: u16) -> Own {
    (vlan, SubinterfaceConfig { native: true, ..own(vlan).1 })
}

/// A router with port `Out`, with the policy-maps, and with subinterfaces.
fn config(generation: Generation, policy_maps: Maps, subinterfaces: &[Own], port: InterfaceConfig) -> RouterConfig {
    let named = |(number, own): &Own| (format!("Out.{number}"), own.clone());
    let port = InterfaceConfig { subinterfaces: subinterfaces.iter().map(named).collect(), ..port };
    common::configuration(generation, policy_maps, port)
        .class_map("voice", match_all(vec![dscp(&[46])]))
        .class_map("data", match_all(vec![dscp(&[18])]))
}

fn plain() -> InterfaceConfig {
    interface(LINE / 1_000, None, None)
}

fn frame(ip_len: usize, dscp: u8, vlan: Option<u16>) -> Descriptor {
    common::datagram(ip_len, dscp, 1, 6_000, Ethernet).tagged(vlan, 0)
}

fn made_frame(config: &RouterConfig) -> Engine<usize> {
    common::started(LINE, Ethernet, config)
}

fn refusal_of(config: &RouterConfig) -> String {
    common::engine::<usize>(LINE, Ethernet).configure(Time(0), config).unwrap_err().to_string()
}

/// Sources with their VLANs, until `end`; the payload is the source's number.
fn load(engine: &mut Engine<usize>, sources: &[(Source, Option<u16>)], end: Time) -> Vec<Output<usize>> {
    let descriptors: Vec<_> = sources.iter().map(|(s, vlan)| s.descriptor(Ethernet).tagged(*vlan, 0)).collect();
    let mut next: Vec<u64> = (0..sources.len() as u64).collect();
    let mut outputs = Vec::new();
    loop {
        let (source, at) = next.iter().enumerate().min_by_key(|(_, at)| **at).map(|(s, at)| (s, Time(*at))).unwrap();
        if at > end {
            break;
        }
        run(engine, at, &mut outputs);
        engine.transmit(at, PORT, descriptors[source], source);
        next[source] += sources[source].0.gap_ns;
    }
    run(engine, end, &mut outputs);
    outputs
}

/// A parent that shapes to so many bits a second, with the child `Child`.
fn shaped_policy(bps: u64) -> Vec<PolicyClass> {
    vec![class_default().shape_bps(bps).service_policy("Child")]
}

fn child() -> Vec<PolicyClass> {
    vec![class_of("voice").priority_percent(20), class_of("data").percent(50), class_default()]
}

/// Offered is sent, dropped and queued, in the class and in those below.
fn add_up(policy: &PolicyCounters) {
    for class in &policy.classes {
        if let Some(child) = &class.child {
            let sum = child.classes.iter().map(|class| class.packets).sum::<u64>();
            assert_eq!(class.packets, sum, "class {}", class.name);
            add_up(child);
        }
    }
}

/// The rate of a subinterface's shaper counts the tag: a packet of 1500 bytes is 1518 (14 and 4 above the IP packet;
/// Cisco's QoS FAQ on queueing on Ethernet subinterfaces). Each gets its own rate, regardless of the other's load,
/// in it voice its offer and data its half.
#[test]
fn two_subinterfaces_each_get_their_shape_with_priority_and_bandwidth_below() {
    for generation in [Hqf, Classic] {
        let maps = maps([("Child", child()), ("Ten", shaped_policy(10_000_000)), ("Five", shaped_policy(5_000_000))]);
        let config = config(generation, maps, &[with_output(100, "Ten"), with_output(200, "Five")], plain());
        let mut engine = made_frame(&config);
        let (ten, five) = (Some(100), Some(200));
        let sources = [
            (Source::new(200, 46, 1, 1_000_000), ten),
            (Source::new(1_500, 18, 2, 20_000_000), ten),
            (Source::new(1_500, 0, 3, 20_000_000), ten),
            (Source::new(200, 46, 4, 500_000), five),
            (Source::new(1_500, 18, 5, 20_000_000), five),
            (Source::new(1_500, 0, 6, 20_000_000), five),
            (Source::new(1_500, 0, 7, 5_000_000), None),
        ];
        let outputs = load(&mut engine, &sources, Time(11 * SECOND));
        engine.audit().unwrap();
        // From the second second on, in bits per second.
        let mut rate = [0.0; 7];
        for output in &outputs {
            if let Output::Departure(Departure { time, payload, descriptor, .. }) = output {
                if *time > Time(SECOND) {
                    rate[*payload] += f64::from(descriptor.counted_len) * 8.0 / 10.0;
                }
            }
        }
        let near =
            |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.002, "{found}, not {wanted}: {rate:?}");
        near(rate[..3].iter().sum(), 10_000_000.0);
        near(rate[3..6].iter().sum(), 5_000_000.0);
        near(rate[0], 1_000_000.0 * 218.0 / 200.0);
        near(rate[3], 500_000.0 * 218.0 / 200.0);
        near(rate[6], 5_000_000.0 * 1_514.0 / 1_500.0);
        if generation == Hqf {
            // 20 % priority and 50 % data leave 30 % for class-default; the two share unused priority 50 to 30.
            near(rate[1] / rate[2], 50.0 / 30.0);
        }
        let counters = common::out(&mut engine, Time(11 * SECOND));
        assert!(counters.policy_output.is_none());
        let mut sent = Count::default();
        for (name, vlan) in [("Out.100", 100), ("Out.200", 200)] {
            let own = &counters.subinterfaces[name];
            assert_eq!((own.vlan, own.native, own.enabled), (vlan, false, true));
            let policy = own.policy_output.as_ref().unwrap();
            add_up(policy);
            let class = &policy.classes[0];
            assert_eq!((policy.classes.len(), class.name.as_str()), (1, "class-default"));
            // Frames that have left the shaper are on the wire, or wait in the ring.
            let ahead = class.shape.as_ref().unwrap().sent.packets - own.output.packets;
            assert!(ahead <= u64::from(counters.tx_ring.depth), "{ahead}");
            sent = sent.plus(own.output);
        }
        let untagged = outputs.iter().filter(|output| matches!(output, Output::Departure(d) if d.payload == 6)).count();
        assert_eq!(counters.output.packets - sent.packets, untagged as u64);
    }
}

/// A frame of a VLAN that no subinterface has, or one that is shut down, goes nowhere, and is counted.
#[test]
fn frames_reach_existing_subinterfaces_only() {
    let subinterfaces = [own(100), (200, SubinterfaceConfig { enabled: false, ..own(200).1 }), native(300)];
    let mut engine = made_frame(&config(Hqf, Maps::new(), &subinterfaces, plain()));
    for (number, vlan) in [Some(100), Some(200), Some(300), Some(400), None].into_iter().enumerate() {
        engine.receive(Time(number as u64 * MILLI), PORT, frame(100, 0, vlan), number);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let passed = |output: &Output<usize>| match output {
        Output::Departure(Departure { side: Side::Inside, payload, .. }) => Some(*payload),
        Output::Departure(_) | Output::Dropped(Dropped { .. }) => None,
    };
    assert_eq!(outputs.iter().filter_map(passed).collect::<Vec<_>>(), [0, 2, 4]);
    let counters = common::out(&mut engine, Time(SECOND));
    let input = |name: &str| counters.subinterfaces[name].input;
    let tagged = Count { packets: 1, bytes: 118 };
    assert_eq!((input("Out.100"), input("Out.200")), (tagged, Count::default()));
    assert_eq!(input("Out.300"), tagged.plus(Count { packets: 1, bytes: 114 }));
    assert_eq!((counters.input.packets, counters.input.drops), (5, 2));
    engine.audit().unwrap();
}

/// An input policy of one subinterface marks and polices its own frames alone.
#[test]
fn input_policy_applies_to_its_subinterface_only() {
    let maps = maps([("In", vec![class_default().set(SetField::Dscp, 10).police_bps(8_000_000)])]);
    let subinterfaces = [(100, own(100).1.input("In")), own(200)];
    let mut engine = made_frame(&config(Hqf, maps, &subinterfaces, plain()));
    engine.receive(Time(0), PORT, frame(100, 0, Some(100)), 0);
    engine.receive(Time(MILLI), PORT, frame(100, 0, Some(200)), 1);
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let marks: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Departure(d) => Some((d.payload, d.descriptor.dscp)),
            Output::Dropped(_) => None,
        })
        .collect();
    assert_eq!(marks, [(0, 10), (1, 0)]);
    let counters = common::out(&mut engine, Time(SECOND));
    let policy = counters.subinterfaces["Out.100"].policy_input.clone().unwrap();
    assert_eq!((policy.policy.as_str(), policy.classes[0].packets), ("In", 1));
    assert!(counters.subinterfaces["Out.200"].policy_input.is_none() && counters.policy_input.is_none());
}

/// A policy of the port sees all its VLANs, and distinguishes them by `match vlan`.
#[test]
fn match_vlan_selects_frames_on_the_port() {
    let maps = maps([("P", vec![class_of("vlans").set(SetField::Cos, 5), class_default()])]);
    let config = config(Hqf, maps, &[own(100), own(250)], interface(100_000, None, Some("P")))
        .class_map("vlans", match_any(vec![vlans(&[(90, 95), (200, 300)])]));
    let mut engine = made_frame(&config);
    for (number, vlan) in [Some(100), Some(250), None].into_iter().enumerate() {
        engine.transmit(Time(number as u64 * MILLI), PORT, frame(100, 0, vlan), number);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let marks = outputs.iter().map(|output| match output {
        Output::Departure(d) => (d.payload, d.descriptor.cos, d.descriptor.counted_len),
        Output::Dropped(_) => unreachable!("nothing is dropped"),
    });
    assert_eq!(marks.collect::<Vec<_>>(), [(0, 0, 118), (1, 5, 118), (2, 0, 114)]);
    let port = common::out(&mut engine, Time(SECOND));
    let policy = port.policy_output.unwrap();
    assert_eq!(policy.classes.iter().map(|class| class.packets).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(port.subinterfaces["Out.250"].output, Count { packets: 1, bytes: 118 });
}

#[test]
fn impossible_subinterfaces_are_refused() {
    let unshaped = vec![class_default().service_policy("Child")];
    let policies = maps([("Child", child()), ("Ten", shaped_policy(10_000_000)), ("Unshaped", unshaped)]);
    let with = |subinterfaces: &[Own], port| refusal_of(&config(Hqf, policies.clone(), subinterfaces, port));
    for policy in ["Child", "Unshaped"] {
        let message = with(&[with_output(100, policy)], plain());
        assert!(
            message.starts_with("interfaces.Out.subinterfaces.Out.100.service_policy_output: policy-map"),
            "{message}"
        );
        assert!(message.contains("without a shaper above"), "{message}");
    }
    let both = with(&[with_output(100, "Ten")], interface(100_000, None, Some("Ten")));
    assert!(both.contains("on the port or on its subinterfaces, not both"), "{both}");
    let twice = with(&[own(100), (101, own(100).1)], plain());
    assert!(twice.ends_with("VLAN 100 is already used by Out.100: use another one"), "{twice}");
    let two_native = with(&[native(100), native(101)], plain());
    assert!(two_native.ends_with("Out.100 already has the native VLAN: use false"), "{two_native}");
    let vlan = with(&[(100, own(4_095).1)], plain());
    assert!(vlan.contains("4095 is not a VLAN"), "{vlan}");
    let mut serial: Engine<u64> = common::engine(100_000_000, Ppp);
    let error = serial.configure(Time(0), &config(Hqf, policies.clone(), &[own(100)], plain()));
    let message = error.unwrap_err().to_string();
    assert!(message.contains("only an Ethernet port of a router"), "{message}");
    // A shaper of a class does not make a line of its queues.
    let shaped = || class_of("data").shape_bps(1_000_000);
    for class in [shaped().fair_queue(), shaped().random_detect(red_by_precedence()), shaped().kbps(100)] {
        let message = refusal_of(&config(Hqf, maps([("P", vec![class.clone()])]), &[with_output(100, "P")], plain()));
        assert!(message.contains("without a shaper above"), "{class:?}: {message}");
    }
    // The same policy may be on the input of one port and the output of another.
    made_frame(&config(Hqf, policies.clone(), &[with_output(100, "Ten"), with_output(200, "Ten")], plain()));
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// With any traffic in any VLAN, everything is accounted for, and no subinterface gets more than its shape and
    /// what its shaper may have saved up.
    #[test]
    fn any_load_is_accounted_for_and_within_the_shapes(
        rates in prop::array::uniform2(1_000_000u64..20_000_000),
        packets in prop::collection::vec((28usize..1500, 0u8..64, 0usize..4, 0u64..400_000), 100..600),
        classic: bool,
    ) {
        let maps = maps([("Child", child()), ("A", shaped_policy(rates[0])), ("B", shaped_policy(rates[1]))]);
        let generation = if classic { Classic } else { Hqf };
        let config = config(generation, maps, &[with_output(100, "A"), with_output(200, "B"), own(300)], plain());
        let mut engine = made_frame(&config);
        let mut at = 0;
        let mut outputs = Vec::new();
        for (ip_len, dscp, vlan, gap) in packets {
            at += gap;
            run(&mut engine, Time(at), &mut outputs);
            engine.transmit(Time(at), PORT, frame(ip_len, dscp, [None, Some(100), Some(200), Some(300)][vlan]), vlan);
            engine.audit().unwrap();
        }
        let sent = |vlan: usize| outputs.iter().filter_map(move |output| match output {
            Output::Departure(d) if d.payload == vlan => Some(u64::from(d.descriptor.counted_len) * 8),
            _ => None,
        });
        for (vlan, rate) in [(1, rates[0]), (2, rates[1])] {
            // Bc and Be are at most a fortieth of the rate each; one packet may go into debt.
            let most = rate as f64 * (at as f64 / 1e9 + 0.05) + 1_518.0 * 8.0 * 2.0;
            prop_assert!(sent(vlan).sum::<u64>() as f64 <= most);
        }
        let counters = common::out(&mut engine, Time(at));
        for own in ["Out.100", "Out.200"] {
            add_up(counters.subinterfaces[own].policy_output.as_ref().unwrap());
        }
    }
}

/// Counts of a subinterface stay with its name when others come, and begin again when they are cleared. A frame without
/// a tag is the port's.
#[test]
fn counts_stay_with_their_subinterfaces() {
    let mut engine = made_frame(&config(Hqf, Maps::new(), &[own(200), own(300)], plain()));
    for (number, vlan) in [Some(200), Some(300), Some(300), None].into_iter().enumerate() {
        engine.receive(Time(number as u64 * MILLI), PORT, frame(100, 0, vlan), number);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(outputs.len(), 4);
    let counts = |engine: &mut Engine<usize>| {
        let counters = common::out(engine, Time(SECOND));
        assert_eq!(counters.input.drops, 0);
        counters.subinterfaces.iter().map(|(name, own)| (name.clone(), own.input.packets)).collect::<Vec<_>>()
    };
    let with = |names: &[(&str, u64)]| names.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(counts(&mut engine), with(&[("Out.200", 1), ("Out.300", 2)]));
    let more = config(Hqf, Maps::new(), &[own(100), own(200), own(300)], plain());
    engine.configure(Time(SECOND), &more).unwrap();
    assert_eq!(counts(&mut engine), with(&[("Out.100", 0), ("Out.200", 1), ("Out.300", 2)]));
    engine.clear(Time(SECOND), None);
    assert_eq!(counts(&mut engine), with(&[("Out.100", 0), ("Out.200", 0), ("Out.300", 0)]));
}

/// In the classic generation what the shapers of subinterfaces let go shares the line by the precedence of the packet
/// in front: 5 has six parts where 0 has one, and what belongs to no subinterface with a policy has one.
#[test]
fn classic_subinterfaces_share_the_line_by_precedence() {
    let maps = maps([("P", vec![class_default().shape_bps(100_000_000)])]);
    let subinterfaces = [with_output(100, "P"), with_output(200, "P"), own(300)];
    let mut engine = made_frame(&config(Classic, maps, &subinterfaces, plain()));
    let source = |dscp| Source::new(1_000, dscp, 0, 100_000_000);
    let sources = [(source(0), Some(100)), (source(40), Some(200)), (source(0), Some(300))];
    let bytes = common::bytes_by_source(&load(&mut engine, &sources, Time(SECOND)), 3);
    let parts = [1.0, 6.0, 1.0].map(|part| part / 8.0 * bytes.iter().sum::<u64>() as f64);
    for (found, expected) in bytes.iter().zip(parts) {
        assert!((*found as f64 / expected - 1.0).abs() < 0.03, "{bytes:?} instead of {parts:?}");
    }
}
