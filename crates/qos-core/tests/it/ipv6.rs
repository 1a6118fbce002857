//! IPv6 beside IPv4: access lists of each family, what is of one version alone, bytes that a policer counts.

use std::net::{IpAddr, Ipv6Addr};

use crate::common::{self, frames, interface, read, SECOND};
use proptest::prelude::*;
use qos_core::wire::Framing;
use qos_core::{frame, ConfigErrorKind, Descriptor, Engine, Network, RouterConfig, Time};
use serde_json::{json, Value};

const ANY: &str = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";

fn side(address: Ipv6Addr, length: u32) -> Value {
    let wildcard = Ipv6Addr::from(u128::MAX.checked_shr(length).unwrap_or(0));
    json!({"address": address, "wildcard": wildcard})
}

/// A router whose classes are asked in order, one for each set of criteria, all on what goes out.
fn classes(lists: Value, criteria: &[Value]) -> RouterConfig {
    let names: Vec<_> = (0..criteria.len()).map(|number| format!("c{number}")).collect();
    let maps: serde_json::Map<_, _> = names
        .iter()
        .zip(criteria)
        .map(|(name, criterion)| (name.clone(), json!({"match": "all", "criteria": [criterion]})))
        .collect();
    let classes: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    read(&json!({"format": 1, "router": "R1", "generation": "hqf", "access_lists": lists, "class_maps": maps,
        "policy_maps": {"P": {"classes": classes}}, "interfaces": {"Out": interface(100_000, None, Some("P"))}}))
}

/// The number of the class that takes a packet.
fn class_of(config: &RouterConfig, packet: &Descriptor) -> usize {
    let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
    engine.configure(Time(0), config).unwrap();
    engine.transmit(Time(0), common::PORT, *packet, 0);
    let counters = engine.counters(Time(0), None);
    let classes = counters.interfaces["Out"].policy_output.clone().unwrap().classes;
    classes.iter().position(|class| class.packets == 1).unwrap()
}

fn datagram(dscp: u8) -> Descriptor {
    frame::parse(&frames::ipv6(dscp, 17, &[0x9c, 0x40, 0x14, 0x51, 0, 8, 0, 0]), Framing::Ethernet)
}

proptest! {
    /// An entry's prefixes decide as prefixes do, whatever the addresses; packets of IPv4 are not asked.
    #[test]
    fn a_list_matches_as_its_prefixes_say(
        source in any::<u128>(), destination in any::<u128>(), lengths in (0u32..=128, 0u32..=128),
        flipped in prop::option::of(0u32..128), of_source in any::<bool>(),
    ) {
        let mut packet = datagram(0);
        // A packet that differs from the entry in one bit at most.
        let bit = flipped.map_or(0, |bit| 1u128 << (127 - bit));
        let (source_bits, destination_bits) =
            if of_source { (source ^ bit, destination) } else { (source, destination ^ bit) };
        packet.source = IpAddr::V6(source_bits.into());
        packet.destination = IpAddr::V6(destination_bits.into());
        let list = json!([{"action": "permit", "protocol": 17, "destination_port": {"op": "eq", "ports": [5201]},
            "source": side(source.into(), lengths.0), "destination": side(destination.into(), lengths.1)}]);
        let config = classes(json!({"L": list}), &[json!({"type": "access_group", "name": "L"})]);
        let length = if of_source { lengths.0 } else { lengths.1 };
        let outside = flipped.is_some_and(|bit| bit < length);
        prop_assert_eq!(class_of(&config, &packet), usize::from(outside));
        let other = frame::parse(&frames::udp(100, 0, 40_000, 5201), Framing::Ethernet);
        prop_assert_eq!(class_of(&config, &other), 1);
    }
}

#[test]
fn what_is_of_one_version_leaves_the_other_alone() {
    let any = json!({"address": "::", "wildcard": ANY});
    let echo = json!([{"action": "permit", "protocol": 58, "source": any, "destination": any, "icmp_type": 128}]);
    let config = classes(
        json!({"Echo": echo}),
        &[
            json!({"type": "access_group", "name": "Echo"}),
            json!({"type": "dscp", "values": [46], "ip_only": true}),
            json!({"type": "precedence", "values": [4], "ip_only": true}),
            json!({"type": "dscp", "values": [34, 46]}),
            json!({"type": "protocol", "name": "ipv6"}),
            json!({"type": "protocol", "name": "ip"}),
        ],
    );
    let ipv4 = |dscp| frame::parse(&frames::udp(100, dscp, 1, 2), Framing::Ethernet);
    let echo = frame::parse(&frames::ipv6(46, 58, &[128, 0, 0, 0]), Framing::Ethernet);
    let reply = frame::parse(&frames::ipv6(0, 58, &[129, 0, 0, 0]), Framing::Ethernet);
    assert_eq!((echo.network, class_of(&config, &echo), class_of(&config, &reply)), (Network::Ipv6, 0, 4));
    assert_eq!([46, 34, 0].map(|dscp| class_of(&config, &ipv4(dscp))), [1, 2, 5]);
    assert_eq!([46, 34, 0].map(|dscp| class_of(&config, &datagram(dscp))), [3, 3, 4]);
}

#[test]
fn a_list_of_both_families_is_refused() {
    let four = json!({"address": "10.0.0.0", "wildcard": "0.255.255.255"});
    let six = json!({"address": "2001:db8::", "wildcard": "::ffff"});
    let odd = json!({"address": "2001:db8::", "wildcard": "0.0.0.255"});
    let entry =
        |source: &Value, destination: &Value| json!({"action": "permit", "source": source, "destination": destination});
    for (entries, path) in [
        (json!([entry(&four, &four), entry(&six, &six)]), "access_lists.L[1].source.address"),
        (json!([entry(&six, &six), entry(&six, &four)]), "access_lists.L[1].destination.address"),
        (json!([entry(&odd, &six)]), "access_lists.L[0].source.wildcard"),
    ] {
        let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
        let refused = engine.configure(Time(0), &classes(json!({"L": entries}), &[])).unwrap_err();
        assert_eq!((refused.path.as_str(), refused.kind), (path, ConfigErrorKind::Impossible));
        assert!(refused.message.contains("give each family its own list"), "{refused}");
    }
    // ICMP of one family is no ICMP of the other.
    let icmp = json!([{"action": "permit", "protocol": 1, "source": six, "destination": six, "icmp_type": 8}]);
    let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
    let refused = engine.configure(Time(0), &classes(json!({"L": icmp}), &[])).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "access_lists.L[0].icmp_type: only ICMPv6 (58) packets have it: set the protocol accordingly"
    );
}

/// A policer counts the IP packet and the 14 bytes of Ethernet, so that the same payload of 200 bytes costs 242 bytes
/// over IPv4 and 262 over IPv6 (RFC 791, RFC 8200): of one rate 242/262 as much payload gets through.
#[test]
fn a_policer_lets_less_payload_through_of_ipv6() {
    let passed = |network, ip_len| {
        let config = common::with_policy(
            "hqf",
            100_000,
            json!([{"name": "class-default",
            "police": {"cir": {"bps": 1_000_000}, "bc": {"bytes": 31_250}}}]),
        );
        let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
        engine.configure(Time(0), &config).unwrap();
        let mut packet = common::udp(ip_len, 0, Framing::Ethernet);
        packet.network = network;
        for number in 0..40_000u64 {
            engine.transmit(Time(number * SECOND / 2_000), common::PORT, packet, number);
        }
        let class = common::class(&mut engine, Time(20 * SECOND), 0);
        class.police.unwrap().conformed.packets
    };
    // 20 s at 1 Mb/s and the full bucket, in whole packets.
    let expected = |counted: u64| (2_500_000 - 62 + 31_250) / counted;
    assert_eq!(passed(Network::Ipv4, 228), expected(242));
    assert_eq!(passed(Network::Ipv6, 248), expected(262));
}
