//! IPv6 next to IPv4: access lists by family, criteria of one version only, and the bytes that a policer counts.

use std::net::{IpAddr, Ipv6Addr};

use crate::common::build::*;
use crate::common::{self, frames, SECOND};
use proptest::prelude::*;
use qos_core::wire::Framing;
use qos_core::{frame, ConfigErrorKind, Descriptor, Engine, Network, RouterConfig, Time};

fn side(address: Ipv6Addr, length: u32) -> AddressMatch {
    let wildcard = Ipv6Addr::from(u128::MAX.checked_shr(length).unwrap_or(0));
    AddressMatch { address: address.into(), wildcard: wildcard.into() }
}

/// A router with an access list and ordered classes, one for each criterion, on all output.
fn classes(name: &str, list: Vec<AccessListEntry>, criteria: &[Criterion]) -> RouterConfig {
    let mut config =
        RouterConfig::new("R1", Hqf).access_list(name, list).interface("Out", interface(100_000, None, Some("P")));
    let mut classes = Vec::new();
    for (number, criterion) in criteria.iter().enumerate() {
        let class = PolicyClass::new(format!("c{number}"));
        config = config.class_map(&class.name, match_all(vec![criterion.clone()]));
        classes.push(class);
    }
    config.policy_map("P", classes)
}

/// The number of the class that takes a packet.
fn number_of_class(config: &RouterConfig, packet: &Descriptor) -> usize {
    let mut engine: Engine<u64> = common::started(100_000_000, Framing::Ethernet, config);
    engine.transmit(Time(0), common::PORT, *packet, 0);
    let counters = engine.counters(Time(0), None);
    let classes = counters.interfaces["Out"].policy_output.clone().unwrap().classes;
    classes.iter().position(|class| class.packets == 1).unwrap()
}

fn datagram(dscp: u8) -> Descriptor {
    frame::parse(&frames::ipv6(dscp, 17, &[0x9c, 0x40, 0x14, 0x51, 0, 8, 0, 0]), Framing::Ethernet)
}

proptest! {
    /// An entry's prefixes match addresses as prefixes do; IPv4 packets are not tested.
    #[test]
    fn a_list_matches_as_its_prefixes_say(
        source in any::<u128>(), destination in any::<u128>(), lengths in (0u32..=128, 0u32..=128),
        flipped in prop::option::of(0u32..128), of_source in any::<bool>(),
    ) {
        let mut packet = datagram(0);
        // A packet that differs from the entry in at most one bit.
        let bit = flipped.map_or(0, |bit| 1u128 << (127 - bit));
        let (source_bits, destination_bits) =
            if of_source { (source ^ bit, destination) } else { (source, destination ^ bit) };
        packet.source = IpAddr::V6(source_bits.into());
        packet.destination = IpAddr::V6(destination_bits.into());
        let entry = AccessListEntry {
            source: side(source.into(), lengths.0),
            destination: side(destination.into(), lengths.1),
            destination_port: ports(PortOperator::Eq, &[5_201]),
            ..permit(Some(17))
        };
        let config = classes("L", vec![entry], &[access_group("L")]);
        let length = if of_source { lengths.0 } else { lengths.1 };
        let outside = flipped.is_some_and(|bit| bit < length);
        prop_assert_eq!(number_of_class(&config, &packet), usize::from(outside));
        let other = common::datagram(100, 0, 40_000, 5201, Framing::Ethernet);
        prop_assert_eq!(number_of_class(&config, &other), 1);
    }
}

#[test]
fn rules_of_one_ip_version_ignore_the_other() {
    let echo = AccessListEntry { icmp_type: Some(128), ..entry(Permit, Some(58), &any_ipv6()) };
    let config = classes(
        "Echo",
        vec![echo],
        &[
            access_group("Echo"),
            ip_dscp(&[46]),
            ip_precedence(&[4]),
            dscp(&[34, 46]),
            protocol(ProtocolName::Ipv6),
            protocol(ProtocolName::Ip),
        ],
    );
    let ipv4 = |dscp| common::datagram(100, dscp, 1, 2, Framing::Ethernet);
    let echo = frame::parse(&frames::ipv6(46, 58, &[128, 0, 0, 0]), Framing::Ethernet);
    let reply = frame::parse(&frames::ipv6(0, 58, &[129, 0, 0, 0]), Framing::Ethernet);
    assert_eq!(
        (echo.network, number_of_class(&config, &echo), number_of_class(&config, &reply)),
        (Network::Ipv6, 0, 4)
    );
    assert_eq!([46, 34, 0].map(|dscp| number_of_class(&config, &ipv4(dscp))), [1, 2, 5]);
    assert_eq!([46, 34, 0].map(|dscp| number_of_class(&config, &datagram(dscp))), [3, 3, 4]);
}

#[test]
fn a_list_of_both_families_is_refused() {
    let four = address("10.0.0.0", "0.255.255.255");
    let six = address("2001:db8::", "::ffff");
    let odd = address("2001:db8::", "0.0.0.255");
    let entry = |source: &AddressMatch, destination: &AddressMatch| AccessListEntry {
        source: source.clone(),
        destination: destination.clone(),
        ..permit(None)
    };
    for (entries, path) in [
        (vec![entry(&four, &four), entry(&six, &six)], "access_lists.L[1].source.address"),
        (vec![entry(&six, &six), entry(&six, &four)], "access_lists.L[1].destination.address"),
        (vec![entry(&odd, &six)], "access_lists.L[0].source.wildcard"),
    ] {
        let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
        let refused = engine.configure(Time(0), &classes("L", entries, &[])).unwrap_err();
        assert_eq!((refused.path.as_str(), refused.kind), (path, ConfigErrorKind::Impossible));
        assert!(refused.message.contains("use one list per address family"), "{refused}");
    }
    // ICMP of one IP version does not match ICMP of the other.
    let icmp = AccessListEntry { protocol: Some(1), icmp_type: Some(8), ..entry(&six, &six) };
    let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
    let refused = engine.configure(Time(0), &classes("L", vec![icmp], &[])).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "access_lists.L[0].icmp_type: only ICMPv6 (58) packets have this field: set the protocol accordingly"
    );
}

/// A policer counts the IP packet and the 14 bytes of Ethernet, so that the same payload of 200 bytes costs 242 bytes
/// over IPv4 and 262 over IPv6 (RFC 791, RFC 8200): of one rate 242/262 as much payload gets through.
#[test]
fn a_policer_lets_less_payload_through_of_ipv6() {
    let passed = |network, ip_len| {
        let config = common::with_policy(Hqf, 100_000, vec![class_default().police(police(1_000_000).bytes(31_250))]);
        let mut engine: Engine<u64> = common::started(100_000_000, Framing::Ethernet, &config);
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
