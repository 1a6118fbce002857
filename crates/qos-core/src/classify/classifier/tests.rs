//! Class of a packet.

use super::*;
use crate::classify::access_list::LaterFragments;
use crate::config::classification::AccessAction;
use crate::frame::port_number::PortId;
use crate::wire::framing::Framing;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Number of different values: few, so that packets match classes.
const HOSTS: u8 = 3;

fn address(host: u8, ipv6: bool) -> IpAddr {
    if ipv6 {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)).into()
    } else {
        Ipv4Addr::new(10, 0, 0, host).into()
    }
}

fn wanted(ipv6: bool) -> impl Strategy<Value = AddressMatch> {
    (0..HOSTS, any::<bool>()).prop_map(move |(host, any)| {
        let wildcard: IpAddr = match (ipv6, any) {
            (false, true) => Ipv4Addr::BROADCAST.into(),
            (false, false) => Ipv4Addr::UNSPECIFIED.into(),
            (true, any) => Ipv6Addr::from(if any { u128::MAX } else { 0 }).into(),
        };
        AddressMatch { address: address(host, ipv6), wildcard }
    })
}

fn port() -> impl Strategy<Value = Option<PortMatch>> {
    let op = prop::sample::select(vec![
        PortOperator::Eq,
        PortOperator::Neq,
        PortOperator::Gt,
        PortOperator::Lt,
        PortOperator::Range,
    ]);
    prop::option::weighted(0.8, (op, 0u16..6, 0u16..3)).prop_map(|port| {
        let (op, first, more) = port?;
        let ports = if op == PortOperator::Range { vec![first, first + more] } else { vec![first] };
        Some(PortMatch { op, ports })
    })
}

fn entry(ipv6: bool) -> impl Strategy<Value = AccessListEntry> {
    let dscp = prop::option::weighted(0.2, 0u8..64);
    let precedence = prop::option::weighted(0.2, 0u8..8);
    (any::<bool>(), wanted(ipv6), wanted(ipv6), port(), port(), dscp, precedence).prop_map(
        |(permit, source, destination, source_port, destination_port, dscp, precedence)| AccessListEntry {
            action: if permit { AccessAction::Permit } else { AccessAction::Deny },
            protocol: Some(crate::wire::ip::protocol::UDP),
            source,
            destination,
            source_port,
            destination_port,
            dscp,
            precedence,
            established: false,
            icmp_type: None,
            icmp_code: None,
            fragments: false,
        },
    )
}

fn entries() -> impl Strategy<Value = Vec<AccessListEntry>> {
    prop_oneof![prop::collection::vec(entry(false), 0..4), prop::collection::vec(entry(true), 0..4)]
}

fn statement(lists: usize) -> impl Strategy<Value = Statement> {
    let values = prop::collection::vec(0u8..64, 1..4);
    let dscp = values.prop_map(|values| values.iter().fold(0, |set, value| set | (1u64 << value)));
    let test = prop_oneof![
        3 => (0..lists).prop_map(Test::AccessGroup),
        2 => (dscp, any::<bool>()).prop_map(|(values, ip_only)| Test::Dscp { values, ip_only }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(values, ip_only)| Test::Precedence { values, ip_only }),
        1 => any::<u8>().prop_map(|values| Test::Cos { values }),
        2 => (0u16..20).prop_map(Test::QosGroup),
        1 => (0u16..3).prop_map(|port| Test::InputInterface(PortId(port))),
        1 => (0u32..1000).prop_map(|min| Test::PacketLength { min, max: min + 300 }),
    ];
    (prop::bool::weighted(0.1), test).prop_map(|(negate, test)| Statement { negate, test })
}

fn flat(lists: usize) -> impl Strategy<Value = Matcher> {
    (any::<bool>(), prop::collection::vec(statement(lists), 0..4))
        .prop_map(|(any, criteria)| Matcher { combine: if any { MatchMode::Any } else { MatchMode::All }, criteria })
}

fn matcher(lists: usize) -> impl Strategy<Value = Matcher> {
    let nested = prop::option::weighted(0.2, (flat(lists), any::<prop::sample::Index>()));
    (flat(lists), nested).prop_map(|(mut outer, nested)| {
        if let Some((inner, place)) = nested {
            let place = place.index(outer.criteria.len() + 1);
            outer.criteria.insert(place, Statement { negate: false, test: Test::Nested(inner) });
        }
        outer
    })
}

fn packet() -> impl Strategy<Value = Descriptor> {
    let network =
        prop::sample::select(vec![Network::Ipv4, Network::Ipv4, Network::Ipv6, Network::Ipv6, Network::Other]);
    let ports = prop::option::weighted(0.9, (0u16..8, 0u16..8));
    (network, 0..HOSTS, 0..HOSTS, ports, 0u8..64, 0u8..8, 0u16..20, prop::option::of(0u16..3), any::<bool>()).prop_map(
        |(network, source, destination, ports, dscp, cos, qos_group, input, later)| Descriptor {
            network,
            network_len: 500,
            source: address(source, network == Network::Ipv6),
            destination: address(destination, network == Network::Ipv6),
            source_port: ports.map(|(source, _)| source),
            destination_port: ports.map(|(_, destination)| destination),
            protocol: crate::wire::ip::protocol::UDP,
            dscp,
            cos,
            qos_group,
            input_port: input.map(PortId),
            later_fragment: later && ports.is_none(),
            ..crate::frame::descriptor::parse(&[], Framing::Ethernet)
        },
    )
}

proptest! {
    /// The index of any field finds the same class as a test of all classes, and the same entries of access lists
    /// count.
    #[test]
    fn classifier_agrees_with_linear_matching(
        entries in prop::collection::vec(entries(), 6),
        matchers in prop::collection::vec(matcher(6), 1..40),
        packets in prop::collection::vec(packet(), 1..40),
        fragments in prop::sample::select(vec![LaterFragments::ByNetworkLayer, LaterFragments::Unmatched]),
    ) {
        let lists: Vec<_> = entries.iter().map(|entries| AccessList::new("list", entries, fragments)).collect();
        let mut plain = lists.clone();
        let expected: Vec<_> = packets
            .iter()
            .map(|packet| matchers.iter().position(|matcher| matcher.matches(packet, &mut plain).is_some()))
            .collect();
        let hits = |lists: &[AccessList]| lists.iter().map(|list| list.hits.clone()).collect::<Vec<_>>();
        for field in FIELDS {
            let index = ClassIndex::by(field, matchers.iter(), &lists);
            let mut counted = lists.clone();
            let mut tries = |packet: &Descriptor, position: usize| {
                matchers[position].matches(packet, &mut counted).is_some()
            };
            for (packet, expected) in packets.iter().zip(&expected) {
                let found = match index.candidates(packet) {
                    Some(mut candidates) => candidates.find(|position| tries(packet, *position)),
                    None => (0..matchers.len()).find(|position| tries(packet, *position)),
                };
                prop_assert_eq!(&found, expected, "by {:?}", field);
            }
            prop_assert_eq!(hits(&counted), hits(&plain), "by {:?}", field);
        }
    }
}

#[test]
fn classifier_chooses_the_most_selective_field() {
    let groups: Vec<_> = (0..1_000).map(|group| asking(Test::QosGroup(group))).collect();
    let index = ClassIndex::new(groups.iter(), &[]).unwrap();
    assert_eq!((index.field, index.most), (Field::QosGroup, 1));
    let lengths: Vec<_> = (0..1_000).map(|min| asking(Test::PacketLength { min, max: min + 1 })).collect();
    assert!(ClassIndex::new(lengths.iter(), &[]).is_none(), "no field tells them apart");
}

#[test]
fn class_without_possible_packets_is_never_tried() {
    let none = Matcher { combine: MatchMode::All, criteria: Vec::new() };
    let index = ClassIndex::by(Field::Dscp, [none].iter(), &[]);
    assert_eq!(index.candidates(&udp(|_| ())).unwrap().next(), None);
}

/// A table has at most so many places as are said, from the least value to the greatest.
#[test]
fn dense_values_are_stored_in_a_table() {
    for (greatest, dense) in [(5, true), (5 + MOST_DENSE - 1, true), (5 + MOST_DENSE, false)] {
        let by_value = ByValue::of(BTreeMap::from([(5, vec![1]), (greatest, vec![2])]));
        assert_eq!(matches!(by_value, ByValue::Dense { .. }), dense, "{greatest}");
        assert_eq!(by_value.get(greatest), [2]);
        assert_eq!(by_value.get(greatest + 1), [0; 0]);
    }
}

/// A class with more values than the index holds is tried for each packet, since the last of them would be missed.
#[test]
fn class_of_many_vlans_is_a_candidate_for_each() {
    for (vlans, kept) in [(MOST_VALUES, true), (MOST_VALUES + 1, false)] {
        let ranges = [(1, vlans as u16)].into();
        let index = ClassIndex::by(Field::Vlan, [asking(Test::Vlan { ranges })].iter(), &[]);
        let tried = |vlan| index.candidates(&udp(|packet| packet.vlan = vlan)).unwrap().count() == 1;
        assert!(tried(1) && tried(vlans as u16));
        assert_eq!(tried(0), !kept, "{vlans} VLANs");
    }
}

/// An entry that any packet of UDP matches, except what is changed.
fn but(change: impl FnOnce(&mut AccessListEntry)) -> AccessListEntry {
    let any = AddressMatch { address: address(0, false), wildcard: Ipv4Addr::BROADCAST.into() };
    let mut entry = AccessListEntry {
        action: AccessAction::Permit,
        protocol: Some(crate::wire::ip::protocol::UDP),
        source: any.clone(),
        destination: any,
        source_port: None,
        destination_port: None,
        dscp: None,
        precedence: None,
        established: false,
        icmp_type: None,
        icmp_code: None,
        fragments: false,
    };
    change(&mut entry);
    entry
}

fn asking(test: Test) -> Matcher {
    Matcher { combine: MatchMode::All, criteria: vec![Statement { negate: false, test }] }
}

fn udp(change: impl FnOnce(&mut Descriptor)) -> Descriptor {
    let mut packet = Descriptor {
        network: Network::Ipv4,
        network_len: 500,
        source: address(0, false),
        destination: address(0, false),
        protocol: crate::wire::ip::protocol::UDP,
        ..crate::frame::descriptor::parse(&[], Framing::Ethernet)
    };
    change(&mut packet);
    packet
}

/// Each class asks for its own value, and each packet has one of them: it tries that class and no other.
fn tells(field: Field, lists: &[AccessList], classes: &[Matcher], packet: impl Fn(u16, &mut Descriptor)) {
    let index = ClassIndex::new(classes.iter(), lists).unwrap_or_else(|| panic!("{field:?} tells nothing"));
    assert_eq!((index.field, index.most), (field, 1));
    for number in 0..classes.len() {
        let packet = udp(|descriptor| packet(number as u16, descriptor));
        let tried: Vec<_> = index.candidates(&packet).unwrap().collect();
        assert_eq!(tried, [number], "by {field:?}");
    }
}

/// The same of classes that each have an access list of one entry.
fn entries_tell(
    field: Field,
    classes: u16,
    entry: impl Fn(u16, &mut AccessListEntry),
    packet: impl Fn(u16, &mut Descriptor),
) {
    let list = |number| {
        let entries = vec![but(|asked| entry(number, asked))];
        AccessList::new("list", &entries, LaterFragments::ByNetworkLayer)
    };
    let lists: Vec<_> = (0..classes).map(list).collect();
    let classes: Vec<_> = (0..usize::from(classes)).map(|list| asking(Test::AccessGroup(list))).collect();
    tells(field, &lists, &classes, packet);
}

#[test]
fn each_statement_field_distinguishes_classes() {
    let check = |field, classes: u16, test: &dyn Fn(u16) -> Test, packet: &dyn Fn(u16, &mut Descriptor)| {
        let classes: Vec<_> = (0..classes).map(|number| asking(test(number))).collect();
        tells(field, &[], &classes, packet);
    };
    check(Field::Dscp, 64, &|number| Test::Dscp { values: 1 << number, ip_only: false }, &|number, packet| {
        packet.dscp = number as u8;
    });
    check(Field::Dscp, 8, &|number| Test::Precedence { values: 1 << number, ip_only: false }, &|number, packet| {
        packet.dscp = number as u8 * 8 + 3;
    });
    check(Field::Cos, 8, &|number| Test::Cos { values: 1 << number }, &|number, packet| packet.cos = number as u8);
    check(
        Field::Vlan,
        64,
        &|number| Test::Vlan { ranges: [(number * 10, number * 10 + 9)].into() },
        &|number, packet| {
            packet.vlan = number * 10 + number % 10;
        },
    );
    check(Field::QosGroup, 64, &|number| Test::QosGroup(number), &|number, packet| packet.qos_group = number);
    check(Field::InputPort, 64, &|number| Test::InputInterface(PortId(number)), &|number, packet| {
        packet.input_port = Some(PortId(number));
    });
    let inner = |number| asking(Test::QosGroup(number));
    check(Field::QosGroup, 64, &|number| Test::Nested(inner(number)), &|number, packet| packet.qos_group = number);
}

#[test]
fn each_access_list_field_distinguishes_classes() {
    let host = |number: u16| IpAddr::from(Ipv4Addr::from(0x0a00_0000 | (u32::from(number) << 12)));
    let one = |number| AddressMatch { address: host(number), wildcard: Ipv4Addr::UNSPECIFIED.into() };
    entries_tell(
        Field::Source,
        64,
        |number, entry| entry.source = one(number),
        |number, packet| packet.source = host(number),
    );
    entries_tell(
        Field::Destination,
        64,
        |number, entry| entry.destination = one(number),
        |number, packet| packet.destination = host(number),
    );
    entries_tell(
        Field::SourcePort,
        64,
        |number, entry| entry.source_port = Some(PortMatch { op: PortOperator::Eq, ports: vec![number, number + 500] }),
        |number, packet| packet.source_port = Some(number + 500),
    );
    entries_tell(
        Field::DestinationPort,
        64,
        |number, entry| {
            let ports = vec![5_000 + number * 4, 5_003 + number * 4];
            entry.destination_port = Some(PortMatch { op: PortOperator::Range, ports });
        },
        |number, packet| packet.destination_port = Some(5_000 + number * 4 + number % 4),
    );
    entries_tell(
        Field::Dscp,
        64,
        |number, entry| entry.dscp = Some(number as u8),
        |number, packet| packet.dscp = number as u8,
    );
    entries_tell(
        Field::Dscp,
        8,
        |number, entry| entry.precedence = Some(number as u8),
        |number, packet| packet.dscp = number as u8 * 8 + 5,
    );
}

#[test]
fn any_of_several_values_leads_to_a_class() {
    let class = |number: u16| Matcher {
        combine: MatchMode::Any,
        criteria: [number, number + 32].map(|group| Statement { negate: false, test: Test::QosGroup(group) }).to_vec(),
    };
    let classes: Vec<_> = (0..32).map(class).collect();
    for part in [0, 32] {
        tells(Field::QosGroup, &[], &classes, |number, packet| packet.qos_group = number + part);
    }
}

/// A packet other than IP has no address, and a later fragment has no ports; other fields exist.
#[test]
fn packets_without_the_field_match_remaining_classes() {
    let host = |number: u8| AddressMatch { address: address(number, false), wildcard: Ipv4Addr::UNSPECIFIED.into() };
    let list = |number: u8| {
        let entries = vec![but(|entry| entry.source = host(number))];
        AccessList::new("list", &entries, LaterFragments::ByNetworkLayer)
    };
    let lists: Vec<_> = (0..16).map(list).collect();
    let classes: Vec<_> = (0..16).map(|list| asking(Test::AccessGroup(list))).collect();
    let index = ClassIndex::new(classes.iter(), &lists).unwrap();
    let tried = |packet: &Descriptor| index.candidates(packet).map(Iterator::collect::<Vec<_>>);
    let from = |network, later_fragment| {
        udp(|packet| {
            (packet.network, packet.later_fragment) = (network, later_fragment);
            packet.source = address(9, false);
        })
    };
    assert_eq!(tried(&from(Network::Ipv4, false)), Some(vec![9]));
    assert_eq!(tried(&from(Network::Ipv4, true)), Some(vec![9]), "a fragment has addresses");
    assert_eq!(tried(&from(Network::Other, false)), Some(vec![]), "what is no IP packet has none");
    let by_port = ClassIndex::by(Field::SourcePort, classes.iter(), &lists);
    assert!(by_port.candidates(&from(Network::Ipv4, true)).is_none(), "an entry may match it without ports");
}

#[test]
fn class_with_too_many_values_is_always_tried() {
    let values = |many: u32| limited((0..many).collect()).map(|values| values.len());
    assert_eq!((values(MOST_VALUES as u32), values(MOST_VALUES as u32 + 1)), (Some(MOST_VALUES), None));
    let range = |first, last| {
        let wanted = PortMatch { op: PortOperator::Range, ports: vec![first, last] };
        ports(Some(&wanted)).map(|ports| (ports.len(), ports.first().copied(), ports.last().copied()))
    };
    assert_eq!(range(300, 310), Some((11, Some(300), Some(310))));
    assert_eq!(range(1, 256), Some((256, Some(1), Some(256))));
    assert_eq!(range(1, 257), None);
    assert_eq!(range(0, u16::MAX), None);
}

/// Each of the four words counts, and what two of them have in common does not.
#[test]
fn ipv6_addresses_are_folded_over_all_words() {
    let addresses: [[u32; 4]; 11] = [
        [0, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 2, 0],
        [0, 4, 0, 0],
        [8, 0, 0, 0],
        [0, 0, 0, 0x30],
        [0, 0, 0x10, 0x30],
        [0, 0, 0, 0x300],
        [0, 0x100, 0, 0x300],
        [0, 0, 0, 0x3000],
        [0x1000, 0, 0, 0x3000],
    ];
    let values = addresses.map(|words| {
        let bits = words.iter().fold(0u128, |bits, word| (bits << 32) | u128::from(*word));
        folded(Ipv6Addr::from(bits).into())
    });
    assert_eq!(values, [0, 1, 2, 4, 8, 0x30, 0x20, 0x300, 0x200, 0x3000, 0x2000]);
    assert_eq!(folded(Ipv4Addr::new(10, 1, 2, 3).into()), 0x0a01_0203);
}
