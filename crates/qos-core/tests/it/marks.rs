//! Marks by another field, the discard class, and lengths that a policer accounts for.

use crate::common::{self, class, configuration, frames, interface, load, run, with_policy, Source, PORT, SECOND};
use qos_core::frame::parse;
use qos_core::wire::Framing::Ethernet;
use qos_core::{Departure, Descriptor, Engine, Output, Side, Time};
use serde_json::{json, Value};

/// What comes out of the router, in the order of its going in.
fn passed<P: Copy>(outputs: &[Output<P>], towards: Side) -> Vec<Descriptor> {
    let departed = |output: &Output<P>| match output {
        Output::Departure(Departure { descriptor, side, .. }) if *side == towards => Some(*descriptor),
        _ => None,
    };
    outputs.iter().filter_map(departed).collect()
}

fn values(map: &[(usize, u16)], values: usize) -> Value {
    let mut row = vec![Value::Null; values];
    map.iter().for_each(|(old, new)| row[*old] = json!(new));
    json!(row)
}

/// A map writes what the packet's own field gave when it came to the class, and counts no packet without a value.
#[test]
fn a_mark_is_that_of_another_field() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Ethernet);
    let classes = json!([{"name": "class-default", "set": [{"field": "dscp", "value": 8}], "map": [
        {"field": "qos_group", "source": "dscp", "values": values(&[(46, 5), (10, 7)], 64)},
        {"field": "cos", "source": "precedence", "values": values(&[(5, 3)], 8)}]}]);
    engine.configure(Time(0), &with_policy("hqf", 10_000, classes)).unwrap();
    for (index, dscp) in [46, 10, 0].into_iter().enumerate() {
        engine.transmit(Time(0), PORT, parse(&frames::udp(100, dscp, 1, 2), Ethernet), index as u64);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let marks: Vec<_> = passed(&outputs, Side::Wire).iter().map(|d| (d.dscp, d.qos_group, d.cos)).collect();
    assert_eq!(marks, [(8, 5, 3), (8, 7, 0), (8, 0, 0)]);
    let counted = class(&mut engine, Time(SECOND), 0);
    assert_eq!(counted.map.iter().map(|map| map.packets).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(counted.set[0].packets, 3);
}

/// A policer of the way in sets it, and classes and early drops of the way out tell packets apart by it.
#[test]
fn a_discard_class_is_carried_through_the_router() {
    let mut engine: Engine<u64> = common::engine(10_000_000, Ethernet);
    let policies = json!({
        "I": {"classes": [{"name": "class-default", "police": {"cir": {"bps": 8_000}, "bc": {"bytes": 1_000},
            "exceed": [{"action": "set-discard-class-transmit", "value": 3}]}}]},
        "O": {"classes": [{"name": "third"}, {"name": "class-default"}]}});
    let mut config =
        serde_json::to_value(configuration("hqf", policies, interface(10_000, Some("I"), Some("O")))).unwrap();
    config["class_maps"]["third"] = json!({"match": "all", "criteria": [{"type": "discard_class", "value": 3}]});
    engine.configure(Time(0), &common::read(&config)).unwrap();
    for number in 0..3 {
        engine.receive(Time(0), PORT, parse(&frames::udp(900, 0, 1, 2), Ethernet), number);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    let inside = passed(&outputs, Side::Inside);
    assert_eq!(inside.iter().map(|d| d.discard_class).collect::<Vec<_>>(), [0, 3, 3]);
    for (number, descriptor) in inside.into_iter().enumerate() {
        engine.transmit(Time(SECOND), PORT, descriptor, number as u64);
    }
    run(&mut engine, Time(2 * SECOND), &mut outputs);
    let packets: Vec<_> = (0..2).map(|index| class(&mut engine, Time(2 * SECOND), index).packets).collect();
    assert_eq!(packets, [2, 1]);
}

/// `account` below `police`: the lengths are longer for the meter, and not for its counters.
#[test]
fn a_policer_accounts_for_more_bytes() {
    let rate = |account: Value| {
        let police = json!({"cir": {"bps": 1_000_000}, "account": account});
        let config = with_policy("ios-xe", 10_000, json!([{"name": "class-default", "police": police}]));
        let mut engine = common::engine(10_000_000, Ethernet);
        engine.configure(Time(0), &config).unwrap();
        load(&mut engine, Ethernet, &[Source::new(86, 0, 0, 5_000_000)], Time(20 * SECOND));
        let conformed = class(&mut engine, Time(20 * SECOND), 0).police.unwrap().conformed;
        assert_eq!(conformed.bytes, conformed.packets * 100);
        conformed.packets * 800 / 20 / 1_000
    };
    let (plain, more) = (rate(Value::Null), rate(json!({"user_defined": {"offset": 100}})));
    assert!(plain.abs_diff(1_012) <= 2 && more.abs_diff(506) <= 2, "{plain} {more}");
}

/// By class of service and by discard class early drops have the rows of eight values.
#[test]
fn early_drops_go_by_other_fields() {
    for (basis, field) in [("cos", "cos"), ("discard_class", "discard_class")] {
        let red = json!({"basis": basis, "exponential_weight": 1, "thresholds": [{"value": 5, "min": 1, "max": 2}]});
        let classes = json!([{"name": "c1", "set": [{"field": field, "value": 5}]}, {"name": "class-default"}]);
        let policies = json!({"I": {"classes": classes}, "O": {"classes": [
            {"name": "class-default", "queue_limit": {"packets": 1000}, "random_detect": red}]}});
        let config = configuration("hqf", policies, interface(10_000, Some("I"), Some("O")));
        let mut engine: Engine<u64> = common::engine(10_000_000, Ethernet);
        engine.configure(Time(0), &config).unwrap();
        for number in 0..100 {
            engine.receive(Time(0), PORT, parse(&frames::udp(900, (number % 2) as u8, 1, 2), Ethernet), number);
        }
        let mut outputs = Vec::new();
        run(&mut engine, Time(SECOND), &mut outputs);
        for descriptor in passed(&outputs, Side::Inside) {
            engine.transmit(Time(SECOND), PORT, descriptor, 0);
        }
        let rows = class(&mut engine, Time(SECOND), 0).random_detect.unwrap().classes;
        assert_eq!(rows.len(), 8);
        let drops: Vec<_> = rows.iter().map(|row| row.random_drop.packets + row.tail_drop.packets).collect();
        assert!(drops[5] > 10 && drops[0] == 0, "{basis}: {drops:?}");
    }
}

/// Early detection of an interface drops from its own queue, which no policy has taken.
#[test]
fn an_interface_drops_early() {
    for generation in ["classic", "hqf", "ios-xe"] {
        let mut port = interface(1_000, None, None);
        port["random_detect"] = json!({"basis": "precedence", "exponential_weight": 1});
        let config = configuration(generation, json!({}), port);
        let mut engine = common::engine(1_000_000, Ethernet);
        engine.configure(Time(0), &config).unwrap();
        load(&mut engine, Ethernet, &[Source::new(1_000, 0, 0, 2_000_000)], Time(10 * SECOND));
        let counted = engine.counters(Time(10 * SECOND), None).interfaces["Out"].clone();
        let row = counted.random_detect.unwrap().classes[0];
        assert!(row.random_drop.packets > 0, "{generation}: {row:?}");
        assert_eq!(counted.output.drops, row.random_drop.packets + row.tail_drop.packets);
        assert!(counted.queue.depth <= u64::from(row.max), "{generation}");
    }
}
