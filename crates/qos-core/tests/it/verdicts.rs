//! Verdicts written by hand, packet by packet, as IOS gives them: access list entries, protocols, marking, and exact
//! equality. Each line fails with a mistake in its comparison.

use crate::common::build::*;
use crate::common::frames::{self, ipv4};
use crate::common::{self, class, departures, run, PORT, SECOND};
use qos_core::config::defaults::LINK_BACKLOG_FRAMES;
use qos_core::frame::parse;
use qos_core::link::Serialiser;
use qos_core::meter::{Colour, TokenBuckets};
use qos_core::wire::Framing::Ethernet;
use qos_core::{Departure, Descriptor, DropReason, Engine, Output, Rate, Side, Time};

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut header = [0; 20];
    header[..2].copy_from_slice(&source.to_be_bytes());
    header[2..4].copy_from_slice(&destination.to_be_bytes());
    header[13] = flags;
    ipv4(40, 0, 6, &header)
}

fn icmp(kind: u8, code: u8) -> Vec<u8> {
    ipv4(60, 0, 1, &[kind, code])
}

/// The same packet as a fragment other than the first.
fn later_fragment(mut frame: Vec<u8>) -> Vec<u8> {
    frame[14 + 7] = 8;
    frame
}

fn from_host(mut frame: Vec<u8>, host: u8) -> Vec<u8> {
    frame[14 + 15] = host;
    frame
}

fn arp() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&[0x08, 0x06]);
    frame
}

/// The packets that the entries are asked about, from 10.0.10.1 to 10.0.20.10 where no name says otherwise.
fn packets() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("udp 4999 > 53", frames::udp(100, 0, 4_999, 53)),
        ("udp 5000 > 53", frames::udp(100, 0, 5_000, 53)),
        ("udp 5001 > 54", frames::udp(100, 0, 5_001, 54)),
        ("udp ef", frames::udp(100, 46, 6_000, 55)),
        ("udp cs5", frames::udp(100, 40, 6_000, 55)),
        ("udp from .2", from_host(frames::udp(100, 0, 6_000, 55), 2)),
        ("udp later", later_fragment(frames::udp(100, 0, 5_000, 53))),
        ("tcp syn", tcp(40_000, 80, SYN)),
        ("tcp ack", tcp(40_000, 80, ACK)),
        ("tcp rst", tcp(40_000, 80, RST)),
        ("tcp syn ack", tcp(80, 40_000, SYN | ACK)),
        ("tcp later", later_fragment(tcp(40_000, 80, SYN))),
        ("echo", icmp(8, 0)),
        ("echo reply", icmp(0, 0)),
        ("host unreachable", icmp(3, 1)),
        ("port unreachable", icmp(3, 3)),
        ("icmp later", later_fragment(icmp(8, 0))),
        ("arp", arp()),
        ("ipv6 udp", frames::ipv6(0, 17, &[0x13, 0x88, 0, 53, 0, 8, 0, 0])),
    ]
}

/// The class that is asked for.
fn class_of_packet() -> PolicyClass {
    class_of("asked")
}

/// A router with this list `asked`, whose only class is the one with this criterion.
fn router(list: &[AccessListEntry], criterion: Criterion, class: PolicyClass) -> Engine<u64> {
    let policies = maps([("P", vec![class, class_default()])]);
    let config = common::with_policies(Hqf, 10_000, policies)
        .access_list("asked", list.to_vec())
        .class_map("asked", match_all(vec![criterion]));
    common::started(10_000_000, Ethernet, &config)
}

/// The same without actions.
fn counting_policy(list: &[AccessListEntry], criterion: Criterion) -> Engine<u64> {
    router(list, criterion, class_of_packet())
}

/// The packets that are in the class, by their names.
fn in_class(engine: &mut Engine<u64>, packets: &[(&'static str, Vec<u8>)]) -> Vec<&'static str> {
    let mut outputs = Vec::new();
    let mut found = Vec::new();
    for (index, (name, frame)) in (0..).zip(packets) {
        let at = Time(index * SECOND / 100);
        run(engine, at, &mut outputs);
        let before = class(engine, at, 0).packets;
        engine.transmit(at, PORT, parse(frame, Ethernet), index);
        if class(engine, at, 0).packets > before {
            found.push(*name);
        }
    }
    found
}

fn matched_packets(entries: &[AccessListEntry]) -> Vec<&'static str> {
    in_class(&mut counting_policy(entries, access_group("asked")), &packets())
}

const UDP: [&str; 7] =
    ["udp 4999 > 53", "udp 5000 > 53", "udp 5001 > 54", "udp ef", "udp cs5", "udp from .2", "udp later"];
const LATER: [&str; 3] = ["udp later", "tcp later", "icmp later"];

/// Ports, at the ports themselves and their neighbours. A permit with ports lets a later fragment of its protocol and
/// addresses match, which has none (Cisco, "Access Control Lists and IP Fragments").
#[test]
fn entries_with_ports_match_ports_and_later_fragments() {
    use PortOperator::{Eq, Gt, Lt, Neq, Range};
    let source = |op, numbers: &[u16]| {
        matched_packets(&[AccessListEntry { source_port: ports(op, numbers), ..permit(Some(17)) }])
    };
    assert_eq!(source(Eq, &[5_000]), ["udp 5000 > 53", "udp later"]);
    assert_eq!(source(Eq, &[4_999, 5_001]), ["udp 4999 > 53", "udp 5001 > 54", "udp later"]);
    let without_5000 = ["udp 4999 > 53", "udp 5001 > 54", "udp ef", "udp cs5", "udp from .2", "udp later"];
    assert_eq!(source(Neq, &[5_000]), without_5000);
    assert_eq!(source(Gt, &[5_000]), ["udp 5001 > 54", "udp ef", "udp cs5", "udp from .2", "udp later"]);
    assert_eq!(source(Gt, &[5_001]), ["udp ef", "udp cs5", "udp from .2", "udp later"]);
    assert_eq!(source(Lt, &[5_000]), ["udp 4999 > 53", "udp later"]);
    assert_eq!(source(Lt, &[4_999]), ["udp later"]);
    assert_eq!(source(Range, &[4_999, 5_000]), ["udp 4999 > 53", "udp 5000 > 53", "udp later"]);
    assert_eq!(source(Range, &[5_000, 5_000]), ["udp 5000 > 53", "udp later"]);
    let destination =
        |port: u16| matched_packets(&[AccessListEntry { destination_port: ports(Eq, &[port]), ..permit(Some(17)) }]);
    assert_eq!(destination(53), ["udp 4999 > 53", "udp 5000 > 53", "udp later"]);
    assert_eq!(destination(54), ["udp 5001 > 54", "udp later"]);
    assert_eq!(destination(56), ["udp later"]);
}

/// A deny with ports says nothing of a later fragment; one without ports does.
#[test]
fn deny_with_ports_ignores_later_fragments() {
    let all = permit(None);
    let below = AccessListEntry { destination_port: ports(PortOperator::Lt, &[60_000]), ..deny(Some(17)) };
    let ip: Vec<_> =
        packets().into_iter().map(|(name, _)| name).filter(|name| !["arp", "ipv6 udp"].contains(name)).collect();
    let without = |left: &[&str]| ip.iter().copied().filter(|name| !left.contains(name)).collect::<Vec<_>>();
    assert_eq!(matched_packets(&[below, all.clone()]), without(&UDP[..6]));
    assert_eq!(matched_packets(&[deny(Some(17)), all.clone()]), without(&UDP));
    let kinds = AccessListEntry { icmp_type: Some(8), ..deny(Some(1)) };
    assert_eq!(matched_packets(&[kinds, all.clone()]), without(&["echo"]));
    let established = AccessListEntry { established: true, ..deny(Some(6)) };
    assert_eq!(matched_packets(&[established, all.clone()]), without(&["tcp ack", "tcp rst", "tcp syn ack"]));
    let fragments = AccessListEntry { fragments: true, ..deny(None) };
    assert_eq!(matched_packets(&[fragments, all]), without(&LATER));
    // A packet that no entry matches is denied.
    assert_eq!(matched_packets(&[]), [""; 0]);
}

/// Protocols, flags, ICMP's types and codes, code points, precedences, fragments, addresses.
#[test]
fn entries_without_ports_match_their_fields() {
    let permitted = |entry: AccessListEntry| matched_packets(&[entry]);
    let icmp = |kind, icmp_code| AccessListEntry { icmp_type: Some(kind), icmp_code, ..permit(Some(1)) };
    assert_eq!(permitted(permit(Some(17))), UDP);
    assert_eq!(permitted(permit(Some(6))), ["tcp syn", "tcp ack", "tcp rst", "tcp syn ack", "tcp later"]);
    assert_eq!(
        permitted(AccessListEntry { established: true, ..permit(Some(6)) }),
        ["tcp ack", "tcp rst", "tcp syn ack", "tcp later"],
        "ACK or RST"
    );
    assert_eq!(permitted(icmp(8, None)), ["echo", "icmp later"]);
    assert_eq!(permitted(icmp(0, None)), ["echo reply", "icmp later"]);
    assert_eq!(permitted(icmp(3, None)), ["host unreachable", "port unreachable", "icmp later"]);
    assert_eq!(permitted(icmp(3, Some(1))), ["host unreachable", "icmp later"]);
    assert_eq!(permitted(AccessListEntry { dscp: Some(46), ..permit(None) }), ["udp ef"]);
    assert_eq!(permitted(AccessListEntry { dscp: Some(40), ..permit(None) }), ["udp cs5"]);
    assert_eq!(permitted(AccessListEntry { precedence: Some(5), ..permit(None) }), ["udp ef", "udp cs5"]);
    assert_eq!(permitted(AccessListEntry { precedence: Some(4), ..permit(None) }), [""; 0]);
    assert_eq!(permitted(AccessListEntry { fragments: true, ..permit(None) }), LATER);
    let from = |source: &str, wildcard: &str, protocol| AccessListEntry {
        source: address(source, wildcard),
        ..permit(protocol)
    };
    assert_eq!(permitted(from("10.0.10.2", "0.0.0.0", None)), ["udp from .2"]);
    assert_eq!(permitted(from("10.0.10.0", "0.0.0.254", Some(17))), ["udp from .2"], "even hosts");
    assert_eq!(permitted(from("10.0.10.1", "0.0.0.254", Some(17))).len(), 6, "odd hosts");
    let destination = address("10.0.20.11", "0.0.0.0");
    assert_eq!(permitted(AccessListEntry { destination, ..permit(None) }), [""; 0]);
}

/// `match protocol` goes by the protocol's number or by its port at either end, and by no neighbouring port.
#[test]
fn match_protocol_uses_protocol_number_or_port() {
    use ProtocolName::{Bgp, Http, Rip, SecureHttp, Smtp};
    for (name, number, port) in [(Bgp, 6, 179), (Http, 6, 80), (SecureHttp, 6, 443), (Smtp, 6, 25), (Rip, 17, 520)] {
        for of_packet in [6, 17] {
            let frame = |source: u16, destination: u16| match of_packet {
                6 => tcp(source, destination, ACK),
                _ => frames::udp(100, 0, source, destination),
            };
            let asked = [
                ("to", frame(40_000, port)),
                ("from", frame(port, 40_000)),
                ("below", frame(40_000, port - 1)),
                ("above", frame(40_000, port + 1)),
            ];
            let mut engine = counting_policy(&[], protocol(name));
            let expected: &[&str] = if of_packet == number { &["to", "from"] } else { &[] };
            assert_eq!(in_class(&mut engine, &asked), expected, "{name:?} over {of_packet}");
        }
    }
    let by_number = [
        ("icmp", icmp(8, 0)),
        ("tcp", tcp(1, 2, ACK)),
        ("udp", frames::udp(100, 0, 1, 2)),
        ("ospf", ipv4(60, 0, 89, &[])),
        ("eigrp", ipv4(60, 0, 88, &[])),
        ("arp", arp()),
    ];
    let names = [ProtocolName::Icmp, ProtocolName::Tcp, ProtocolName::Udp, ProtocolName::Ospf, ProtocolName::Eigrp];
    for (name, (frame, _)) in names.into_iter().zip(&by_number) {
        assert_eq!(in_class(&mut counting_policy(&[], protocol(name)), &by_number), [*frame]);
    }
    let versions = [("ip", by_number[2].1.clone()), ("ipv6", frames::ipv6(0, 17, &[0; 8])), ("arp", arp())];
    for (name, frame) in [(ProtocolName::Ip, "ip"), (ProtocolName::Ipv6, "ipv6")] {
        assert_eq!(in_class(&mut counting_policy(&[], protocol(name)), &versions), [frame]);
    }
}

/// Lengths at their limits.
#[test]
fn match_packet_length_includes_its_limits() {
    let asked =
        [99, 100, 200, 201].map(|length| (if length == 99 { "99" } else { "more" }, frames::udp(length, 0, 1, 2)));
    let mut engine = counting_policy(&[], packet_length(Some(100), Some(200)));
    in_class(&mut engine, &asked);
    assert_eq!(class(&mut engine, Time(SECOND), 0).packets, 2);
    let mut engine = counting_policy(&[], packet_length(None, Some(99)));
    assert_eq!(in_class(&mut engine, &asked), ["99"]);
}

/// `set precedence` and `set-prec-transmit` leave the three low bits of the code point as they are.
#[test]
fn setting_precedence_keeps_the_low_bits_of_the_code_point() {
    let marked = |class: PolicyClass, dscp: u8| {
        let mut engine = router(&[], any_packet(), class);
        engine.transmit(Time(0), PORT, common::datagram(100, dscp, 1, 2, Ethernet), 0);
        let mut outputs = Vec::new();
        run(&mut engine, Time(SECOND), &mut outputs);
        let [Output::Departure(Departure { descriptor: Descriptor { dscp, .. }, .. })] = outputs[..] else {
            panic!("{outputs:?}")
        };
        dscp
    };
    let police = police(64_000).bytes(1_500).conform(PoliceAction::SetPrecTransmit { value: 2 });
    for (dscp, set, policed) in [(0b001_011, 0b101_011, 0b010_011), (0b111_111, 0b101_111, 0b010_111), (0, 40, 16)] {
        assert_eq!(marked(class_of_packet().set(SetField::Precedence, 5), dscp), set);
        assert_eq!(marked(class_of_packet().set(SetField::Dscp, 5), dscp), 5);
        assert_eq!(marked(class_of_packet().police(police.clone()), dscp), policed);
    }
}

/// Each field is set, and counted as marked, where a frame has it: code points of both versions of IP, or of version 4.
#[test]
fn a_field_is_set_where_a_frame_has_it() {
    let kinds = [frames::udp(100, 11, 1, 2), frames::ipv6(11, 17, &[0; 8]), arp()];
    let table = [
        (SetField::Dscp, 21, [(21, 0, 0, 1), (21, 0, 0, 1), (0, 0, 0, 0)]),
        (SetField::IpDscp, 21, [(21, 0, 0, 1), (11, 0, 0, 0), (0, 0, 0, 0)]),
        (SetField::Precedence, 5, [(0b101_011, 0, 0, 1), (0b101_011, 0, 0, 1), (0, 0, 0, 0)]),
        (SetField::IpPrecedence, 5, [(0b101_011, 0, 0, 1), (11, 0, 0, 0), (0, 0, 0, 0)]),
        (SetField::Cos, 5, [(11, 5, 0, 1), (11, 5, 0, 1), (0, 5, 0, 1)]),
        (SetField::QosGroup, 21, [(11, 0, 21, 1), (11, 0, 21, 1), (0, 0, 21, 1)]),
    ];
    for (field, value, expected) in table {
        for (frame, expected) in kinds.iter().zip(expected) {
            let mut engine = router(&[], any_packet(), class_of_packet().set(field, value));
            engine.transmit(Time(0), PORT, parse(frame, Ethernet), 0);
            let mut outputs = Vec::new();
            run(&mut engine, Time(SECOND), &mut outputs);
            let [Output::Departure(Departure { descriptor, .. })] = outputs[..] else { panic!("{outputs:?}") };
            let marked = class(&mut engine, Time(SECOND), 0).set[0].packets;
            let found = (descriptor.dscp, descriptor.cos, descriptor.qos_group, marked);
            assert_eq!(found, expected, "{field:?} of {} bytes", frame.len());
        }
    }
}

/// Packets other than IP are in their class, and are not policed.
#[test]
fn frames_that_are_not_ip_are_not_policed() {
    let police = police(8_000).bytes(1_000).conform(PoliceAction::Drop {}).exceed(PoliceAction::Drop {});
    let mut engine = router(&[], any_packet(), class_of_packet().police(police));
    for (index, frame) in (0..).zip([arp(), frames::udp(100, 0, 1, 2), arp()]) {
        engine.transmit(Time(index), PORT, parse(&frame, Ethernet), index);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(departures(&outputs).into_iter().map(|(_, index, _)| index).collect::<Vec<_>>(), [0, 2]);
    let found = class(&mut engine, Time(SECOND), 0);
    let police = found.police.unwrap();
    assert_eq!((found.packets, police.conformed.packets + police.exceeded.packets), (3, 1));
}

/// A packet that needs exactly what a bucket has gets it, of each kind of policer; one byte more does not.
#[test]
fn packet_equal_to_the_tokens_conforms() {
    use Colour::{Conform, Exceed, Violate};
    let colours = |mut buckets: TokenBuckets, packets: &[u32]| {
        let colours: Vec<_> = packets.iter().map(|bytes| buckets.colour(Time(0), *bytes)).collect();
        (colours, buckets.tokens())
    };
    let single = || TokenBuckets::single_bucket(8_000, 1_000, Time(0));
    assert_eq!(colours(single(), &[1_000]), (vec![Conform], (0, 0)));
    assert_eq!(colours(single(), &[1_001, 1_000]), (vec![Exceed, Conform], (0, 0)));
    let one_rate = || TokenBuckets::single_rate(8_000, 1_000, 500, Time(0));
    assert_eq!(colours(one_rate(), &[1_000, 500, 1]), (vec![Conform, Exceed, Violate], (0, 0)));
    assert_eq!(colours(one_rate(), &[1_000, 501]), (vec![Conform, Violate], (0, 500)));
    let two_rates = || TokenBuckets::two_rate(8_000, 1_000, 16_000, 2_000, Time(0));
    assert_eq!(colours(two_rates(), &[1_000, 1_000]), (vec![Conform, Exceed], (0, 0)));
    assert_eq!(colours(two_rates(), &[2_000]), (vec![Exceed], (1_000, 0)));
    assert_eq!(colours(two_rates(), &[2_001]), (vec![Violate], (1_000, 2_000)));
    // A bucket becomes full at exactly this nanosecond, not one before.
    for (nanos, colour) in [(SECOND, Conform), (SECOND - 1, Exceed)] {
        let mut buckets = single();
        assert_eq!(buckets.colour(Time(0), 1_000), Conform);
        assert_eq!(buckets.colour(Time(nanos), 1_000), colour);
    }
}

/// The remainder of a nanosecond is carried over to a frame that becomes ready in the nanosecond in which the link is
/// free.
#[test]
fn back_to_back_frame_waits_for_the_rest_of_the_nanosecond() {
    let ends = |late: u64| {
        // 8 bits at 3 b/s take 2 666 666 666 and two thirds nanoseconds.
        let mut link = Serialiser::new(Rate(3), Time(0));
        let first = link.take(Time(0), 1);
        (first, link.take(Time(first.0 + late), 1))
    };
    assert_eq!(ends(0), (Time(2_666_666_666), Time(5_333_333_333)));
    assert_eq!(ends(1), (Time(2_666_666_666), Time(5_333_333_333)), "nothing is carried: it starts one later");
}

/// A sender gets so many frames ahead of its link, and not one more.
#[test]
fn link_backlog_drops_frames_beyond_its_limit() {
    let mut engine: Engine<u64> =
        common::started(1_000_000, Ethernet, &common::with_policy(Hqf, 1_000, vec![class_default()]));
    let most = LINK_BACKLOG_FRAMES as u64;
    assert_eq!(most, 16_384);
    for frame in 0..most + 3 {
        engine.receive(Time(0), PORT, common::datagram(100, 0, 1, 2, Ethernet), frame);
    }
    let mut outputs = Vec::new();
    run(&mut engine, Time(20 * SECOND), &mut outputs);
    assert_eq!(engine.totals(PORT, Side::Inside).dropped[DropReason::Overrun as usize].packets, 3);
    assert_eq!(departures(&outputs).len() as u64, most);
}
