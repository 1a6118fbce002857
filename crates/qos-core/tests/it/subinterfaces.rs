//! IEEE 802.1Q subinterfaces: which frames they have, what their bytes are, and a policy on each.

use crate::common::{self, ports, run, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{Count, PolicyCounters};
use qos_core::frame::parse;
use qos_core::wire::Framing::{Ethernet, Ppp};
use qos_core::{Departure, Descriptor, Dropped, Engine, Output, RouterConfig, Side, Time};
use serde_json::{json, Value};

const LINE: u64 = 100_000_000;

/// A router with port `Out`, with the policy-maps, and with subinterfaces by VLAN.
fn config(generation: &str, policy_maps: Value, subinterfaces: &[(u16, Value)], port: Value) -> Value {
    let each = subinterfaces.iter().map(|(vlan, more)| {
        let mut own = json!({"enabled": true, "vlan": vlan, "bandwidth_kbps": 100_000});
        common::extend(&mut own, more);
        (format!("Out.{vlan}"), own)
    });
    let mut config = serde_json::to_value(common::configuration(generation, policy_maps, port)).unwrap();
    config["interfaces"]["Out"]["subinterfaces"] = Value::Object(each.collect());
    config["class_maps"]["voice"] = json!({"match": "all", "criteria": [{"type": "dscp", "values": [46]}]});
    config["class_maps"]["data"] = json!({"match": "all", "criteria": [{"type": "dscp", "values": [18]}]});
    config
}

fn plain() -> Value {
    common::interface(LINE / 1_000, None, None)
}

fn frame(ip_len: usize, dscp: u8, vlan: Option<u16>) -> Descriptor {
    parse(&common::frames::udp(ip_len, dscp, 1, 6_000), Ethernet).tagged(vlan, 0)
}

fn made(config: &Value) -> Engine<usize> {
    let mut engine = Engine::new(&ports(LINE, Ethernet), Time(0)).unwrap();
    engine.configure(Time(0), &RouterConfig::from_json(&config.to_string()).unwrap()).unwrap();
    engine
}

fn refused(config: &Value) -> String {
    let mut engine: Engine<usize> = Engine::new(&ports(LINE, Ethernet), Time(0)).unwrap();
    engine.configure(Time(0), &RouterConfig::from_json(&config.to_string()).unwrap()).unwrap_err().to_string()
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
fn shaped(bps: u64) -> Value {
    json!({"classes": [{"name": "class-default",
        "shape": {"mode": "average", "rate": {"bps": bps}}, "service_policy": "Child"}]})
}

fn child() -> Value {
    json!({"classes": [
        {"name": "voice", "priority": {"unit": "percent", "number": 20}},
        {"name": "data", "bandwidth": {"percent": 50}},
        {"name": "class-default"}]})
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
/// what Cisco's QoS FAQ says of queueing on Ethernet subinterfaces). Each gets its own rate, whatever the other offers,
/// in it voice its offer and data its half.
#[test]
fn two_subinterfaces_each_get_their_shape_with_priority_and_bandwidth_below() {
    for generation in ["hqf", "classic"] {
        let maps = json!({"Child": child(), "Ten": shaped(10_000_000), "Five": shaped(5_000_000)});
        let on = |policy: &str| json!({"service_policy_output": policy});
        let config = config(generation, maps, &[(100, on("Ten")), (200, on("Five"))], plain());
        let mut engine = made(&config);
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
        // From the second second on, in bits a second.
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
        if generation == "hqf" {
            // 20 % priority and 50 % data leave 30 % for class-default; what voice leaves goes by their 50 to 30.
            near(rate[1] / rate[2], 50.0 / 30.0);
        }
        let counters = engine.counters(Time(11 * SECOND), None).interfaces["Out"].clone();
        assert!(counters.policy_output.is_none());
        let mut sent = Count::default();
        for (name, vlan) in [("Out.100", 100), ("Out.200", 200)] {
            let own = &counters.subinterfaces[name];
            assert_eq!((own.vlan, own.native, own.enabled), (vlan, false, true));
            let policy = own.policy_output.as_ref().unwrap();
            add_up(policy);
            let class = &policy.classes[0];
            assert_eq!((policy.classes.len(), class.name.as_str()), (1, "class-default"));
            // What has left the shaper is on the wire, or waits in the ring.
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
fn frames_reach_the_subinterfaces_that_there_are() {
    let subinterfaces = [(100, json!({})), (200, json!({"enabled": false})), (300, json!({"native": true}))];
    let mut engine = made(&config("hqf", json!({}), &subinterfaces, plain()));
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
    let counters = engine.counters(Time(SECOND), None).interfaces["Out"].clone();
    let input = |name: &str| counters.subinterfaces[name].input;
    let tagged = Count { packets: 1, bytes: 118 };
    assert_eq!((input("Out.100"), input("Out.200")), (tagged, Count::default()));
    assert_eq!(input("Out.300"), tagged.plus(Count { packets: 1, bytes: 114 }));
    assert_eq!((counters.input.packets, counters.input.drops), (5, 2));
    engine.audit().unwrap();
}

/// An input policy of one subinterface marks and polices its own frames alone.
#[test]
fn an_input_policy_is_the_subinterface_s_own() {
    let maps = json!({"In": {"classes": [{"name": "class-default", "set": [{"field": "dscp", "value": 10}],
        "police": {"cir": {"bps": 8_000_000}}}]}});
    let subinterfaces = [(100, json!({"service_policy_input": "In"})), (200, json!({}))];
    let mut engine = made(&config("hqf", maps, &subinterfaces, plain()));
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
    let counters = engine.counters(Time(SECOND), None).interfaces["Out"].clone();
    let policy = counters.subinterfaces["Out.100"].policy_input.clone().unwrap();
    assert_eq!((policy.policy.as_str(), policy.classes[0].packets), ("In", 1));
    assert!(counters.subinterfaces["Out.200"].policy_input.is_none() && counters.policy_input.is_none());
}

/// A policy of the port sees all its VLANs, and tells them apart by `match vlan`.
#[test]
fn match_vlan_tells_frames_apart_on_the_port() {
    let vlans = json!({"name": "vlans", "set": [{"field": "cos", "value": 5}]});
    let maps = json!({"P": {"classes": [vlans, {"name": "class-default"}]}});
    let mut config =
        config("hqf", maps, &[(100, json!({})), (250, json!({}))], common::interface(100_000, None, Some("P")));
    config["class_maps"]["vlans"] =
        json!({"match": "any", "criteria": [{"type": "vlan", "ranges": [[90, 95], [200, 300]]}]});
    let mut engine = made(&config);
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
    let port = engine.counters(Time(SECOND), None).interfaces["Out"].clone();
    let policy = port.policy_output.unwrap();
    assert_eq!(policy.classes.iter().map(|class| class.packets).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(port.subinterfaces["Out.250"].output, Count { packets: 1, bytes: 118 });
}

#[test]
fn what_a_subinterface_cannot_have_is_refused() {
    let maps = json!({"Child": child(), "Ten": shaped(10_000_000),
        "Unshaped": {"classes": [{"name": "class-default", "service_policy": "Child"}]}});
    let with = |subinterfaces: &[(u16, Value)], port: Value| refused(&config("hqf", maps.clone(), subinterfaces, port));
    let output = |policy: &str| json!({"service_policy_output": policy});
    for policy in ["Child", "Unshaped"] {
        let message = with(&[(100, output(policy))], plain());
        assert!(
            message.starts_with("interfaces.Out.subinterfaces.Out.100.service_policy_output: policy-map"),
            "{message}"
        );
        assert!(message.contains("without a shaper above"), "{message}");
    }
    let both = with(&[(100, output("Ten"))], common::interface(100_000, None, Some("Ten")));
    assert!(both.contains("on the port or those of its subinterfaces"), "{both}");
    let twice = with(&[(100, json!({})), (101, json!({"vlan": 100}))], plain());
    assert!(twice.ends_with("100 is the VLAN of Out.100 already: give another one"), "{twice}");
    let native = with(&[(100, json!({"native": true})), (101, json!({"native": true}))], plain());
    assert!(native.ends_with("Out.100 has the native VLAN already: give false"), "{native}");
    let vlan = with(&[(100, json!({"vlan": 4_095}))], plain());
    assert!(vlan.contains("4095 is no VLAN"), "{vlan}");
    let mut serial: Engine<u64> = common::engine(100_000_000, Ppp);
    let error = serial.configure(Time(0), &common::read(&config("hqf", maps.clone(), &[(100, json!({}))], plain())));
    let message = error.unwrap_err().to_string();
    assert!(message.contains("only an Ethernet port of a router"), "{message}");
    // A shaper of a class does not make a line of its queues.
    for more in [
        json!({"fair_queue": {}}),
        json!({"random_detect": {"basis": "precedence"}}),
        json!({"bandwidth": {"kbps": 100}}),
    ] {
        let mut class = json!({"name": "data", "shape": {"mode": "average", "rate": {"bps": 1_000_000}}});
        common::extend(&mut class, &more);
        let maps = json!({"P": {"classes": [class]}});
        let message = refused(&config("hqf", maps, &[(100, output("P"))], plain()));
        assert!(message.contains("without a shaper above"), "{more}: {message}");
    }
    // The same policy on the input of one and the output of another is fine.
    made(&config("hqf", maps.clone(), &[(100, output("Ten")), (200, output("Ten"))], plain()));
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// Whatever comes in whatever VLAN, everything is accounted for, and no subinterface gets more than its shape and
    /// what its shaper may have saved up.
    #[test]
    fn any_load_is_accounted_for_and_within_the_shapes(
        rates in prop::array::uniform2(1_000_000u64..20_000_000),
        packets in prop::collection::vec((28usize..1500, 0u8..64, 0usize..4, 0u64..400_000), 100..600),
        classic: bool,
    ) {
        let maps = json!({"Child": child(), "A": shaped(rates[0]), "B": shaped(rates[1])});
        let on = |policy: &str| json!({"service_policy_output": policy});
        let generation = if classic { "classic" } else { "hqf" };
        let config = config(generation, maps, &[(100, on("A")), (200, on("B")), (300, json!({}))], plain());
        let mut engine = made(&config);
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
        let counters = engine.counters(Time(at), None).interfaces["Out"].clone();
        for own in ["Out.100", "Out.200"] {
            add_up(counters.subinterfaces[own].policy_output.as_ref().unwrap());
        }
    }
}

/// Counts of a subinterface stay with its name when others come, and begin again when they are cleared. A frame without
/// a tag is the port's.
#[test]
fn counts_stay_with_their_subinterfaces() {
    let mut engine = made(&config("hqf", json!({}), &[(200, json!({})), (300, json!({}))], plain()));
    for (number, vlan) in [Some(200), Some(300), Some(300), None].into_iter().enumerate() {
        engine.receive(Time(number as u64 * MILLI), PORT, frame(100, 0, vlan), number);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(outputs.len(), 4);
    let counts = |engine: &mut Engine<usize>| {
        let counters = engine.counters(Time(SECOND), None).interfaces["Out"].clone();
        assert_eq!(counters.input.drops, 0);
        counters.subinterfaces.iter().map(|(name, own)| (name.clone(), own.input.packets)).collect::<Vec<_>>()
    };
    let with = |names: &[(&str, u64)]| names.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(counts(&mut engine), with(&[("Out.200", 1), ("Out.300", 2)]));
    let more = config("hqf", json!({}), &[(100, json!({})), (200, json!({})), (300, json!({}))], plain());
    engine.configure(Time(SECOND), &RouterConfig::from_json(&more.to_string()).unwrap()).unwrap();
    assert_eq!(counts(&mut engine), with(&[("Out.100", 0), ("Out.200", 1), ("Out.300", 2)]));
    engine.clear(Time(SECOND), None);
    assert_eq!(counts(&mut engine), with(&[("Out.100", 0), ("Out.200", 0), ("Out.300", 0)]));
}

/// In the classic generation what the shapers of subinterfaces let go shares the line by the precedence of the packet
/// in front: 5 has six parts where 0 has one, and what belongs to no subinterface with a policy has one.
#[test]
fn classic_subinterfaces_share_the_line_by_precedence() {
    let class = json!({"name": "class-default", "shape": {"mode": "average", "rate": {"bps": 100_000_000}}});
    let maps = json!({"P": {"classes": [class]}});
    let policy = || json!({"service_policy_output": "P"});
    let subinterfaces = [(100, policy()), (200, policy()), (300, json!({}))];
    let mut engine = made(&config("classic", maps, &subinterfaces, plain()));
    let source = |dscp| Source::new(1_000, dscp, 0, 100_000_000);
    let sources = [(source(0), Some(100)), (source(40), Some(200)), (source(0), Some(300))];
    let bytes = common::bytes_by_source(&load(&mut engine, &sources, Time(SECOND)), 3);
    let parts = [1.0, 6.0, 1.0].map(|part| part / 8.0 * bytes.iter().sum::<u64>() as f64);
    for (found, expected) in bytes.iter().zip(parts) {
        assert!((*found as f64 / expected - 1.0).abs() < 0.03, "{bytes:?} instead of {parts:?}");
    }
}
