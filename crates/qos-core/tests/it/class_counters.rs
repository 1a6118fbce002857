//! What a class shows of its packets.

use crate::common::{self, class, frames, read, with_policy, MILLI, PORT, SECOND};
use qos_core::wire::Framing::Ethernet;
use qos_core::{frame, Engine, Time};
use serde_json::{json, Value};

/// UDP packets of 100 bytes with these code points, at once, to a class that matches so.
fn criteria(combine: &str, criteria: Value) -> (u64, Vec<u64>) {
    let mut config = serde_json::to_value(with_policy("hqf", 100_000, json!([{"name": "it"}]))).unwrap();
    config["class_maps"]["it"] = json!({"match": combine, "criteria": criteria});
    let mut engine: Engine<u64> = common::engine(100_000_000, Ethernet);
    engine.configure(Time(0), &read(&config)).unwrap();
    for dscp in [10, 10, 10, 18, 18, 0] {
        engine.transmit(Time(0), PORT, frame::parse(&frames::udp(100, dscp, 1, 2), Ethernet), 0);
    }
    engine.audit().unwrap();
    let counters = class(&mut engine, Time(MILLI), 0);
    let counted = counters.criteria.iter().map(|criterion| {
        assert_eq!(criterion.bytes % criterion.packets, 0, "packets of one length");
        criterion.packets
    });
    (counters.packets, counted.collect())
}

/// Where a packet has to match all, each statement matches what the class does; else the first that matches counts it.
#[test]
fn a_class_counts_by_statement() {
    let dscp = |values: &[u8]| json!({"type": "dscp", "values": values});
    let udp = json!({"type": "protocol", "name": "udp"});
    assert_eq!(criteria("all", json!([dscp(&[10]), udp])), (3, vec![3, 3]));
    assert_eq!(criteria("all", json!([dscp(&[10, 18])])), (5, vec![5]));
    assert_eq!(criteria("any", json!([dscp(&[10]), dscp(&[10, 18]), udp])), (6, vec![3, 2, 1]));
    assert_eq!(criteria("any", json!([dscp(&[18])])), (2, vec![2]));
}

/// Packets of 1000 bytes for 10 s, 800 kb/s, to a class; its drop rate, b/s, with how many were dropped.
fn drops(generation: &str, actions: &Value) -> (f64, u64) {
    let mut default = json!({"name": "class-default"});
    default.as_object_mut().unwrap().extend(actions.as_object().unwrap().clone());
    let mut engine: Engine<u64> = common::engine(100_000_000, Ethernet);
    engine.configure(Time(0), &with_policy(generation, 100_000, json!([default]))).unwrap();
    let mut outputs = Vec::new();
    for number in 0..1_000 {
        engine.transmit(Time(number * 10 * MILLI), PORT, common::udp(1_000, 0, Ethernet), 0);
        engine.poll(Time(number * 10 * MILLI), &mut outputs);
    }
    let class = class(&mut engine, Time(10 * SECOND), 0);
    (class.drop_rate_bps, class.drops.police.packets + class.drops.tail.packets)
}

#[test]
fn the_drop_rate_of_the_classic_generation_leaves_out_what_a_policer_drops() {
    let policer = json!({"police": {"cir": {"bps": 100_000}}});
    let shaper = json!({"shape": {"mode": "average", "rate": {"bps": 100_000}}});
    for (generation, actions, counts) in
        [("classic", &policer, false), ("hqf", &policer, true), ("classic", &shaper, true), ("hqf", &shaper, true)]
    {
        let (rate, packets) = drops(generation, actions);
        assert!(packets > 500, "{generation} {actions}: {packets} of 1000 packets dropped");
        assert_eq!(rate > 0.0, counts, "{generation} {actions}: {rate} b/s");
    }
}
