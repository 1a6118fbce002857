//! Access lists on interfaces: packets that they pass, their place in the order of operations, and counters.

use crate::common::build::*;
use crate::common::{self, departures, run, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{Count, InterfaceCounters};
use qos_core::frame::parse;
use qos_core::wire::Framing::Ethernet;
use qos_core::{Descriptor, DropReason, Engine, Output, PortId, Side, Time};

/// An entry for UDP to ports of a range.
fn udp_to(action: AccessAction, first: u16, last: u16) -> AccessListEntry {
    let destination_port = ports(PortOperator::Range, &[first, last]);
    AccessListEntry { destination_port, ..entry(action, Some(17), &any_ipv4()) }
}

fn ipv6_entry(action: AccessAction, protocol: u8) -> AccessListEntry {
    entry(action, Some(protocol), &any_ipv6())
}

/// Access lists by name.
type Lists = Vec<(&'static str, Vec<AccessListEntry>)>;

/// A list `web` for UDP to ten ports.
fn web_packet() -> Lists {
    vec![("web", vec![udp_to(Permit, 5_000, 5_009)])]
}

/// A router with port `Out`, so changed, and the lists.
fn router(lists: Lists, change: impl FnOnce(&mut InterfaceConfig)) -> Result<Engine<u64>, qos_core::ConfigError> {
    let mut interface = interface(10_000, None, None);
    change(&mut interface);
    let count = maps([("Count", vec![class_default().set(SetField::Dscp, 46)])]);
    let mut config = common::configuration(Hqf, count, interface);
    config.access_lists.extend(lists.into_iter().map(|(name, entries)| (name.to_owned(), entries)));
    let mut engine = common::engine(10_000_000, Ethernet);
    engine.configure(Time(0), &config)?;
    Ok(engine)
}

/// Returns the change that filters output by these lists.
fn filter_output(names: &'static [&str]) -> impl FnOnce(&mut InterfaceConfig) {
    |out| out.access_groups_output = owned_lists(names)
}

fn filter_input(names: &'static [&str]) -> impl FnOnce(&mut InterfaceConfig) {
    |out| out.access_groups_input = owned_lists(names)
}

fn owned_lists(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn udp(port: u16) -> Descriptor {
    common::datagram(100, 0, 40_000, port, Ethernet)
}

/// Indexes of the packets in transit to these ports, one a millisecond, that are sent.
fn sent_indexes(engine: &mut Engine<u64>, packets: impl IntoIterator<Item = Descriptor>) -> Vec<Output<u64>> {
    let mut outputs = Vec::new();
    for (index, packet) in (0..).zip(packets) {
        let at = Time(index * SECOND / 1_000);
        run(engine, at, &mut outputs);
        engine.transmit(at, PORT, Descriptor { input_port: Some(PortId(7)), ..packet }, index);
    }
    run(engine, Time(10 * SECOND), &mut outputs);
    outputs
}

fn passed_packets(outputs: &[Output<u64>]) -> Vec<u64> {
    departures(outputs).into_iter().map(|(_, index, _)| index).collect()
}

fn counters(engine: &mut Engine<u64>) -> InterfaceCounters {
    common::out(engine, Time(10 * SECOND))
}

/// Packets without a matching entry are denied. Denied packets are counted separately: neither as drops of the
/// interface, nor by the policy's classes or `rate-limit`, which come after the lists (Cisco's order of operation).
#[test]
fn access_list_filters_before_rate_limit_and_policy() {
    let lists = vec![("web", vec![udp_to(Deny, 5_001, 5_001), udp_to(Permit, 5_000, 5_009)])];
    let behind = |out: &mut InterfaceConfig| {
        out.access_groups_output = owned_lists(&["web"]);
        out.rate_limit_output = vec![RateLimitConfig::new(8_000_000, 4_000, 4_000)];
        out.service_policy_output = Some("Count".to_owned());
    };
    let mut engine = router(lists, behind).unwrap();
    let outputs = sent_indexes(&mut engine, [5_000, 5_001, 5_009, 6_000].map(udp));
    assert_eq!(passed_packets(&outputs), [0, 2]);
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
fn input_list_filters_arriving_packets() {
    let lists = web_packet();
    let mut engine = router(lists, filter_input(&["web"])).unwrap();
    let arp = parse(&[[0; 12].as_slice(), &[0x08, 0x06], &[0; 46]].concat(), Ethernet);
    for (index, packet) in (0..).zip([udp(5_000), udp(6_000), arp]) {
        engine.receive(Time(index * SECOND / 1_000), PORT, packet, index);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(passed_packets(&outputs), [0, 2]);
    let found = counters(&mut engine);
    assert_eq!((found.denied_input.packets, found.input.packets, found.input.drops), (1, 3, 0));
    assert_eq!(engine.totals(PORT, Side::Inside).dropped[DropReason::Denied as usize].packets, 1);
}

/// Cisco, "ip access-group": a list that does not exist permits everything, and the router's own packets are not
/// filtered.
#[test]
fn empty_list_and_router_packets_pass() {
    let lists = [web_packet(), vec![("none", vec![])]].concat();
    let mut engine = router(lists.clone(), filter_output(&["none"])).unwrap();
    assert_eq!(passed_packets(&sent_indexes(&mut engine, [udp(9)])), [0]);
    let mut engine = router(lists, filter_output(&["web"])).unwrap();
    engine.transmit(Time(0), PORT, udp(9), 0);
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(passed_packets(&outputs), [0]);
}

/// A list applies to its family; an IPv6 list permits neighbour discovery unless an entry denies it (Cisco, "ipv6
/// access-list").
#[test]
fn each_address_family_has_its_own_list() {
    let lists = vec![
        ("v4", vec![udp_to(Permit, 5_000, 5_009)]),
        ("v6", vec![ipv6_entry(Permit, 17)]),
        ("strict", vec![ipv6_entry(Deny, 58)]),
    ];
    let icmp = |kind: u8| parse(&common::frames::ipv6(0, 58, &[kind, 0, 0, 0, 0, 0, 0, 0]), Ethernet);
    let v6_udp = parse(&common::frames::ipv6(0, 17, &[0; 8]), Ethernet);
    // Solicitation, advertisement, echo request.
    let packets = || [udp(5_000), udp(9), v6_udp, icmp(135), icmp(136), icmp(128)];
    let both = |first: &str, second: &str| {
        let filtered = |out: &mut InterfaceConfig| out.access_groups_output = owned_lists(&[first, second]);
        passed_packets(&sent_indexes(&mut router(lists.clone(), filtered).unwrap(), packets()))
    };
    assert_eq!(both("v4", "v6"), [0, 2, 3, 4]);
    assert_eq!(both("v4", "strict"), [0]);
    let refused = |names: &'static [&str]| router(lists.clone(), filter_input(names)).unwrap_err();
    assert_eq!(refused(&["v6", "strict"]).path, "interfaces.Out.access_groups_input[1]");
    assert_eq!(refused(&["other"]).path, "interfaces.Out.access_groups_input[0]");
}

/// A subinterface has its own lists, and not those of its port.
#[test]
fn subinterfaces_have_their_own_lists() {
    let ten = ("ten", vec![udp_to(Permit, 10, 10)]);
    let lists = vec![("port", vec![udp_to(Permit, 1, 1)]), ten.clone()];
    let ten_filtered = || {
        let own = SubinterfaceConfig::new(10, 10_000);
        ("Out.10".to_owned(), SubinterfaceConfig { access_groups_output: owned_lists(&["ten"]), ..own })
    };
    let all = |out: &mut InterfaceConfig| {
        out.access_groups_output = owned_lists(&["port"]);
        out.subinterfaces = [ten_filtered(), ("Out.20".to_owned(), SubinterfaceConfig::new(20, 10_000))].into();
    };
    let mut engine = router(lists, all).unwrap();
    let packets = [(None, 1), (None, 10), (Some(10), 10), (Some(10), 1), (Some(20), 99)];
    let outputs = sent_indexes(&mut engine, packets.map(|(vlan, port)| udp(port).tagged(vlan, 0)));
    assert_eq!(passed_packets(&outputs), [0, 2, 4]);
    // Next to a port that has none.
    let mut engine = router(vec![ten], |out| out.subinterfaces = [ten_filtered()].into()).unwrap();
    let outputs = sent_indexes(&mut engine, packets.map(|(vlan, port)| udp(port).tagged(vlan, 0)));
    assert_eq!(passed_packets(&outputs), [0, 1, 2, 4]);
}

/// The counters of unchanged lists survive another configuration.
#[test]
fn unrelated_change_keeps_the_counters_of_lists() {
    let lists = web_packet();
    let mut engine = router(lists.clone(), filter_output(&["web"])).unwrap();
    sent_indexes(&mut engine, [udp(9)]);
    let mut config = engine.config().unwrap().clone();
    config.out().rate_limit_output = vec![RateLimitConfig::new(8_000, 4_000, 4_000)];
    engine.configure(Time(10 * SECOND), &config).unwrap();
    assert_eq!(counters(&mut engine).denied_output.packets, 1);
    config.out().access_groups_output = vec![];
    engine.configure(Time(10 * SECOND), &config).unwrap();
    assert_eq!(counters(&mut engine).denied_output.packets, 0);
}

proptest! {
    #![proptest_config(crate::bounded::cases(64))]

    /// Exactly the packets permitted by the first matching entry pass, in both directions.
    #[test]
    fn first_matching_entry_decides(
        entries in prop::collection::vec((any::<bool>(), 0u16..40, 0u16..40), 1..12),
        ports in prop::collection::vec(0u16..50, 1..60),
    ) {
        let entries: Vec<_> = entries.into_iter().map(|(permit, a, b)| (permit, a.min(b), a.max(b))).collect();
        let list: Vec<_> = entries
            .iter()
            .map(|(permit, first, last)| udp_to(if *permit { Permit } else { Deny }, *first, *last))
            .collect();
        let decided = |port: u16| entries.iter().find(|(_, first, last)| (*first..=*last).contains(&port));
        let permitted = |port: u16| decided(port).is_some_and(|(permit, ..)| *permit);
        let expected: Vec<u64> =
            (0..).zip(&ports).filter(|(_, port)| permitted(**port)).map(|(index, _)| index).collect();
        let lists = vec![("web", list)];
        let mut engine = router(lists.clone(), filter_output(&["web"])).unwrap();
        prop_assert_eq!(&passed_packets(&sent_indexes(&mut engine, ports.iter().copied().map(udp))), &expected);
        let denied = ports.len() - expected.len();
        prop_assert_eq!(counters(&mut engine).denied_output.packets, denied as u64);
        let mut engine = router(lists, filter_input(&["web"])).unwrap();
        for (index, port) in (0..).zip(&ports) {
            engine.receive(Time(index * SECOND / 1_000), PORT, udp(*port), index);
        }
        let mut outputs = Vec::new();
        run(&mut engine, Time(SECOND), &mut outputs);
        prop_assert_eq!(&passed_packets(&outputs), &expected);
        prop_assert!(engine.audit().is_ok());
    }
}
