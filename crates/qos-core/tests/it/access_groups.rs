//! Access lists that filter interfaces: what they let pass, in which order with the rest, and what is counted.

use crate::common::{self, departures, run, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{Count, InterfaceCounters};
use qos_core::frame::parse;
use qos_core::wire::Framing::Ethernet;
use qos_core::{Descriptor, DropReason, Engine, Output, PortId, RouterConfig, Side, Time};
use serde_json::{json, Value};

/// An entry for UDP to ports of a range.
fn entry(action: &str, first: u16, last: u16) -> Value {
    let any = json!({"address": "0.0.0.0", "wildcard": "255.255.255.255"});
    json!({"action": action, "protocol": 17, "source": any, "destination": any,
        "destination_port": {"op": "range", "ports": [first, last]}})
}

fn ipv6_entry(action: &str, protocol: u8) -> Value {
    let any = json!({"address": "::", "wildcard": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"});
    json!({"action": action, "protocol": protocol, "source": any, "destination": any})
}

/// A router with port `Out`, `more` on it, and the lists.
fn router(lists: Value, more: Value) -> Result<Engine<u64>, qos_core::ConfigError> {
    let mut interface = common::interface(10_000, None, None);
    common::extend(&mut interface, &more);
    let mut config = serde_json::to_value(common::configuration("hqf", policies(), interface)).unwrap();
    common::extend(&mut config["access_lists"], &lists);
    let mut engine = common::engine(10_000_000, Ethernet);
    engine.configure(Time(0), &RouterConfig::from_json(&config.to_string()).unwrap())?;
    Ok(engine)
}

fn policies() -> Value {
    json!({"Count": {"classes": [{"name": "class-default", "set": [{"field": "dscp", "value": 46}]}]}})
}

fn udp(port: u16) -> Descriptor {
    parse(&common::frames::udp(100, 0, 40_000, port), Ethernet)
}

/// What goes out of packets in transit to these ports, one a millisecond, by their index.
fn out(engine: &mut Engine<u64>, packets: impl IntoIterator<Item = Descriptor>) -> Vec<Output<u64>> {
    let mut outputs = Vec::new();
    for (index, packet) in (0..).zip(packets) {
        let at = Time(index * SECOND / 1_000);
        run(engine, at, &mut outputs);
        engine.transmit(at, PORT, Descriptor { input_port: Some(PortId(7)), ..packet }, index);
    }
    run(engine, Time(10 * SECOND), &mut outputs);
    outputs
}

fn passed(outputs: &[Output<u64>]) -> Vec<u64> {
    departures(outputs).into_iter().map(|(_, index, _)| index).collect()
}

fn counters(engine: &mut Engine<u64>) -> InterfaceCounters {
    engine.counters(Time(10 * SECOND), None).interfaces["Out"].clone()
}

/// What no entry matches is denied. Denied packets are counted by themselves: neither as drops of the interface, nor by
/// the policy's classes, nor by `rate-limit`, which come behind (Cisco's order of operation).
#[test]
fn a_list_comes_ahead_of_all_else() {
    let limit = json!({"match": null, "rate_bps": 8_000_000, "normal_burst_bytes": 4_000,
        "extended_burst_bytes": 4_000, "conform": {"then": "transmit"}, "exceed": {"then": "drop"}});
    let lists = json!({"web": [entry("deny", 5_001, 5_001), entry("permit", 5_000, 5_009)]});
    let more = json!({"access_groups_output": ["web"], "rate_limit_output": [limit],
        "service_policy_output": "Count"});
    let mut engine = router(lists, more).unwrap();
    let outputs = out(&mut engine, [5_000, 5_001, 5_009, 6_000].map(udp));
    assert_eq!(passed(&outputs), [0, 2]);
    let denied = outputs.iter().filter(|o| matches!(o, Output::Dropped(d) if d.reason == DropReason::Denied));
    assert_eq!(denied.count(), 2);
    let found = counters(&mut engine);
    assert_eq!(found.denied_output, Count { packets: 2, bytes: 228 });
    assert_eq!((found.output.packets, found.output.drops, found.queue.drops), (2, 0, 0));
    assert_eq!(found.rate_limit_output[0].conformed.packets, 2);
    assert_eq!(found.policy_output.unwrap().classes[0].packets, 2);
    let hits: Vec<_> = engine.counters(Time(10 * SECOND), None).access_lists["web"].iter().map(|e| e.packets).collect();
    assert_eq!(hits, [1, 2]);
    engine.audit().unwrap();
    engine.clear(Time(10 * SECOND), None);
    assert_eq!(counters(&mut engine).denied_output, Count::default());
}

/// On input it is for packets of any destination; frames that are not IP pass.
#[test]
fn a_list_filters_what_comes_in() {
    let lists = json!({"web": [entry("permit", 5_000, 5_009)]});
    let mut engine = router(lists, json!({"access_groups_input": ["web"]})).unwrap();
    let arp = parse(&[[0; 12].as_slice(), &[0x08, 0x06], &[0; 46]].concat(), Ethernet);
    for (index, packet) in (0..).zip([udp(5_000), udp(6_000), arp]) {
        engine.receive(Time(index * SECOND / 1_000), PORT, packet, index);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(passed(&outputs), [0, 2]);
    let found = counters(&mut engine);
    assert_eq!((found.denied_input.packets, found.input.packets, found.input.drops), (1, 3, 0));
    assert_eq!(engine.totals(PORT, Side::Inside).dropped[DropReason::Denied as usize].packets, 1);
}

/// Cisco, "ip access-group": a list that does not exist permits all, and what the router itself sends is not filtered.
#[test]
fn an_empty_list_and_the_routers_own_packets_pass() {
    let lists = json!({"none": [], "web": [entry("permit", 5_000, 5_009)]});
    let mut engine = router(lists.clone(), json!({"access_groups_output": ["none"]})).unwrap();
    assert_eq!(passed(&out(&mut engine, [udp(9)])), [0]);
    let mut engine = router(lists, json!({"access_groups_output": ["web"]})).unwrap();
    engine.transmit(Time(0), PORT, udp(9), 0);
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(passed(&outputs), [0]);
}

/// A list is for its family; one of IPv6 permits neighbour discovery where no entry says otherwise (Cisco, "ipv6
/// access-list").
#[test]
fn each_family_has_its_list() {
    let lists = json!({"v4": [entry("permit", 5_000, 5_009)], "v6": [ipv6_entry("permit", 17)],
        "strict": [ipv6_entry("deny", 58)]});
    let icmp = |kind: u8| parse(&common::frames::ipv6(0, 58, &[kind, 0, 0, 0, 0, 0, 0, 0]), Ethernet);
    let v6_udp = parse(&common::frames::ipv6(0, 17, &[0; 8]), Ethernet);
    // Solicitation, advertisement, echo request.
    let packets = || [udp(5_000), udp(9), v6_udp, icmp(135), icmp(136), icmp(128)];
    let both = |first: &str, second: &str| {
        let more = json!({"access_groups_output": [first, second]});
        passed(&out(&mut router(lists.clone(), more).unwrap(), packets()))
    };
    assert_eq!(both("v4", "v6"), [0, 2, 3, 4]);
    assert_eq!(both("v4", "strict"), [0]);
    let refused = |names: Value| router(lists.clone(), json!({"access_groups_input": names})).unwrap_err();
    assert_eq!(refused(json!(["v6", "strict"])).path, "interfaces.Out.access_groups_input[1]");
    assert_eq!(refused(json!(["other"])).path, "interfaces.Out.access_groups_input[0]");
}

/// A subinterface has lists of its own, and not those of its port.
#[test]
fn subinterfaces_have_their_own_lists() {
    let lists = json!({"port": [entry("permit", 1, 1)], "ten": [entry("permit", 10, 10)]});
    let each = |vlan: u16, names: Value| {
        json!({"enabled": true, "vlan": vlan, "bandwidth_kbps": 10_000,
        "access_groups_output": names})
    };
    let more = json!({"access_groups_output": ["port"], "subinterfaces":
        {"Out.10": each(10, json!(["ten"])), "Out.20": each(20, json!([]))}});
    let mut engine = router(lists, more).unwrap();
    let packets = [(None, 1), (None, 10), (Some(10), 10), (Some(10), 1), (Some(20), 99)];
    let outputs = out(&mut engine, packets.map(|(vlan, port)| udp(port).tagged(vlan, 0)));
    assert_eq!(passed(&outputs), [0, 2, 4]);
    // Beside a port that has none.
    let lists = json!({"ten": [entry("permit", 10, 10)]});
    let mut engine = router(lists, json!({"subinterfaces": {"Out.10": each(10, json!(["ten"]))}})).unwrap();
    let outputs = out(&mut engine, packets.map(|(vlan, port)| udp(port).tagged(vlan, 0)));
    assert_eq!(passed(&outputs), [0, 1, 2, 4]);
}

/// What goes on when another configuration comes: the counters of the lists that stay.
#[test]
fn a_change_elsewhere_leaves_the_counters() {
    let lists = json!({"web": [entry("permit", 5_000, 5_009)]});
    let mut engine = router(lists.clone(), json!({"access_groups_output": ["web"]})).unwrap();
    out(&mut engine, [udp(9)]);
    let mut config = serde_json::to_value(engine.config().unwrap()).unwrap();
    config["interfaces"]["Out"]["rate_limit_output"] = json!([{"match": null, "rate_bps": 8_000,
        "normal_burst_bytes": 4_000, "extended_burst_bytes": 4_000, "conform": {"then": "transmit"},
        "exceed": {"then": "drop"}}]);
    engine.configure(Time(10 * SECOND), &common::read(&config)).unwrap();
    assert_eq!(counters(&mut engine).denied_output.packets, 1);
    config["interfaces"]["Out"]["access_groups_output"] = json!([]);
    engine.configure(Time(10 * SECOND), &common::read(&config)).unwrap();
    assert_eq!(counters(&mut engine).denied_output.packets, 0);
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// What passes is what the first entry that matches permits, in both directions alike.
    #[test]
    fn the_first_match_decides(
        entries in prop::collection::vec((any::<bool>(), 0u16..40, 0u16..40), 1..12),
        ports in prop::collection::vec(0u16..50, 1..60),
    ) {
        let entries: Vec<_> = entries.into_iter().map(|(permit, a, b)| (permit, a.min(b), a.max(b))).collect();
        let list: Vec<_> = entries
            .iter()
            .map(|(permit, first, last)| entry(if *permit { "permit" } else { "deny" }, *first, *last))
            .collect();
        let decided = |port: u16| entries.iter().find(|(_, first, last)| (*first..=*last).contains(&port));
        let permitted = |port: u16| decided(port).is_some_and(|(permit, ..)| *permit);
        let expected: Vec<u64> =
            (0..).zip(&ports).filter(|(_, port)| permitted(**port)).map(|(index, _)| index).collect();
        let lists = json!({"web": list});
        let mut engine = router(lists.clone(), json!({"access_groups_output": ["web"]})).unwrap();
        prop_assert_eq!(&passed(&out(&mut engine, ports.iter().copied().map(udp))), &expected);
        let denied = ports.len() - expected.len();
        prop_assert_eq!(counters(&mut engine).denied_output.packets, denied as u64);
        let mut engine = router(lists, json!({"access_groups_input": ["web"]})).unwrap();
        for (index, port) in (0..).zip(&ports) {
            engine.receive(Time(index * SECOND / 1_000), PORT, udp(*port), index);
        }
        let mut outputs = Vec::new();
        run(&mut engine, Time(SECOND), &mut outputs);
        prop_assert_eq!(&passed(&outputs), &expected);
        prop_assert!(engine.audit().is_ok());
    }
}
