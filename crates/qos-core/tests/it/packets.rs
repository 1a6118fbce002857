//! Frames as they come from a network.

use std::net::IpAddr;

use crate::common::{
    self,
    frames::{self, checksum},
};
use proptest::prelude::*;
use qos_core::frame::{flow_key, header_rest, parse, rewrite_cos, rewrite_dscp, rewrite_ecn, HeaderRest};
use qos_core::wire::Framing;
use qos_core::{Descriptor, DropReason, Network};

fn any_framing() -> impl Strategy<Value = Framing> {
    prop::sample::select(vec![Framing::Ethernet, Framing::Ppp, Framing::Hdlc])
}

#[test]
fn frame_lengths_match_the_reference() {
    // A ping of 100 bytes counts 114 on Ethernet; a flood of 256-byte packets counts 260 on PPP and takes 263.
    let d = parse(&frames::udp(100, 0, 1, 2), Framing::Ethernet);
    assert_eq!((d.network_len, d.counted_len, d.line_len), (100, 114, 138));
    let d = parse(&frames::udp(256, 0, 1, 2), Framing::Ppp);
    assert_eq!((d.network_len, d.counted_len, d.line_len), (256, 260, 263));
    let d = parse(&frames::udp(1500, 0, 1, 2), Framing::Ethernet);
    assert_eq!((d.counted_len, d.line_len), (1514, 1538));
    // The shortest frame is padded on the wire; the length in the IP header counts.
    let mut padded = frames::udp(28, 0, 1, 2);
    padded.resize(60, 0);
    for frame in [frames::udp(28, 0, 1, 2), padded] {
        let d = parse(&frame, Framing::Ethernet);
        assert_eq!((d.network_len, d.counted_len, d.line_len), (28, 42, 84));
    }
    let d = parse(&frames::tagged(&frames::udp(100, 0, 1, 2), 5, 7), Framing::Ethernet);
    assert_eq!((d.counted_len, d.line_len, d.cos), (118, 142, 5));
}

#[test]
fn headers_are_read() {
    let d = parse(&frames::udp(200, 46, 1234, 5001), Framing::Ethernet);
    assert_eq!((d.network, d.dscp, d.precedence(), d.protocol), (Network::Ipv4, 46, 5, 17));
    assert_eq!((d.source_port, d.destination_port), (Some(1234), Some(5001)));
    assert_eq!(d.destination, IpAddr::from([10, 0, 20, 10]));
    assert_eq!(d.flow, flow_key(&d));
    let mut tcp = [0; 20];
    tcp[13] = 0x10;
    assert!(parse(&frames::ipv4(60, 0, 6, &tcp), Framing::Ethernet).established);
    tcp[13] = 0x02;
    assert!(!parse(&frames::ipv4(60, 0, 6, &tcp), Framing::Ethernet).established);
    assert_eq!(parse(&frames::ipv4(40, 0, 1, &[13, 0]), Framing::Ethernet).icmp, Some((13, 0)));
    let mut fragment = frames::udp(200, 0, 1, 2);
    fragment[14 + 7] = 8;
    let d = parse(&fragment, Framing::Ethernet);
    assert_eq!((d.later_fragment, d.source_port), (true, None));
    // Hop-by-hop options, then UDP.
    let d = parse(&frames::ipv6(34, 0, &[17, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 9, 0, 8, 0, 0]), Framing::Ethernet);
    assert_eq!(
        (d.network, d.dscp, d.protocol, d.destination_port, d.network_len),
        (Network::Ipv6, 34, 17, Some(9), 56)
    );
    let mut arp = vec![0; 42];
    arp[12..14].copy_from_slice(&[8, 6]);
    let d = parse(&arp, Framing::Ethernet);
    assert_eq!((d.network, d.counted_len, d.line_len), (Network::Other, 42, 84));
}

proptest! {
    #[test]
    fn any_bytes_are_described(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200), framing in any_framing(), dscp in 0u8..64,
        ethertype in prop::sample::select(vec![[8u8, 0], [0x86, 0xdd], [0x81, 0], [8, 6]])
    ) {
        for _ in 0..2 {
            let before = parse(&bytes, framing);
            prop_assert!(before.network_len as usize <= bytes.len());
            prop_assert!(before.line_len > before.network_len);
            let changed = rewrite_dscp(&mut bytes, dscp);
            let after = parse(&bytes, framing);
            if before.is_ip() {
                prop_assert_eq!(after.dscp, dscp);
                prop_assert_eq!(changed, before.dscp != dscp);
                prop_assert_eq!(after.flow, before.flow);
            }
            prop_assert_eq!(after.network, before.network);
            rewrite_cos(&mut bytes, dscp);
            // Again as a frame that is worth parsing.
            if bytes.len() > 34 {
                bytes[12..14].copy_from_slice(&ethertype);
                bytes[14] = if ethertype[0] == 8 { 0x45 } else { 0x60 | bytes[14] & 0x0f };
            }
        }
    }

    #[test]
    fn marking_keeps_the_checksum_valid(
        ip_len in 28usize..1500, old in 0u8..64, new in 0u8..64, ports in any::<(u16, u16)>(),
    ) {
        let mut frame = frames::udp(ip_len, old, ports.0, ports.1);
        rewrite_dscp(&mut frame, new);
        prop_assert_eq!(checksum(&frame[14..34]), 0);
        prop_assert_eq!(frame[15], (new << 2) | 1, "ECN bits stay");
        prop_assert_eq!(parse(&frame, Framing::Ethernet).dscp, new);
    }

    #[test]
    fn ecn_is_written_without_changing_the_code_point(ip_len in 28usize..1500, dscp in 0u8..64, ecn in 0u8..4) {
        for mut frame in [frames::udp(ip_len, dscp, 1, 2), frames::ipv6(dscp, 17, &[0; 8])] {
            let before = parse(&frame, Framing::Ethernet);
            prop_assert_eq!(rewrite_ecn(&mut frame, ecn), ecn != before.ecn);
            let after = parse(&frame, Framing::Ethernet);
            prop_assert_eq!(after, qos_core::Descriptor { ecn, ..before });
            prop_assert!(before.network == Network::Ipv6 || checksum(&frame[14..34]) == 0);
        }
    }

    #[test]
    fn marking_ipv6_changes_the_code_point_only(old in 0u8..64, new in 0u8..64) {
        let before = frames::ipv6(old, 17, &[0; 8]);
        let mut after = before.clone();
        rewrite_dscp(&mut after, new);
        prop_assert_eq!(parse(&after, Framing::Ethernet).dscp, new);
        rewrite_dscp(&mut after, old);
        prop_assert_eq!(after, before);
    }
}

/// Fields of an IPv6 packet's headers: protocol, ports, ICMP, and whether it is a later fragment.
fn read(next: u8, rest: &[u8]) -> (u8, Option<u16>, Option<(u8, u8)>, bool) {
    let d = parse(&frames::ipv6(0, next, rest), Framing::Ethernet);
    (d.protocol, d.destination_port, d.icmp, d.later_fragment)
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let udp = [0, 7, 0, 9, 0, 8, 0, 0];
    let before = |header: &[u8]| [header, &udp].concat();
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    for kind in [0, 43, 60, 135, 139, 140] {
        assert_eq!(read(kind, &before(&options)), (17, Some(9), None, false), "header {kind}");
    }
    // An authentication header counts in 4 bytes, less 2 (RFC 4302).
    assert_eq!(
        read(51, &before(&[17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).1,
        Some(9)
    );
    // The first fragment has ports, an atomic one too (RFC 6946); a later one does not.
    assert_eq!(read(44, &before(&[17, 0, 0, 1, 0, 0, 0, 1])), (17, Some(9), None, false));
    assert_eq!(read(44, &before(&[17, 0, 0, 0, 0, 0, 0, 1])), (17, Some(9), None, false));
    assert_eq!(read(44, &before(&[17, 0, 0, 8, 0, 0, 0, 1])), (17, None, None, true));
    // Nothing follows (59), and an encrypted payload (50) is the protocol.
    assert_eq!(read(59, &[]), (59, None, None, false));
    assert_eq!(read(50, &udp), (50, None, None, false));
    assert_eq!(read(58, &[128, 0, 0, 0]), (58, None, Some((128, 0)), false));
    // Truncated.
    assert_eq!(read(60, &[17]), (60, None, None, false));
}

#[test]
fn ipv6_counts_its_own_length() {
    // 40 bytes of header instead of 20; padding to the shortest frame does not count, even with an empty payload.
    let mut padded = frames::ipv6(0, 17, &[0; 8]);
    padded.resize(64, 0);
    let d = parse(&padded, Framing::Ethernet);
    assert_eq!((d.network_len, d.counted_len, d.line_len), (48, 62, 86));
    let mut empty = frames::ipv6(0, 59, &[]);
    empty.resize(60, 0);
    assert_eq!(parse(&empty, Framing::Ethernet).network_len, 40);
}

#[test]
fn flows_of_ipv6_differ_by_address_protocol_and_port() {
    let flow = |frame: &[u8]| parse(frame, Framing::Ethernet).flow;
    let first = frames::ipv6(0, 17, &[0, 7, 0, 9, 0, 8, 0, 0]);
    let mut marked = first.clone();
    rewrite_dscp(&mut marked, 46);
    assert_eq!(flow(&marked), flow(&first));
    let mut others: Vec<Vec<u8>> = vec![first.clone(); 4];
    for (other, at) in others.iter_mut().zip([14 + 6, 14 + 8, 14 + 39, 14 + 41]) {
        other[at] ^= 1;
        assert_ne!(flow(other), flow(&first), "byte {at}");
    }
}

/// A created descriptor equals that of the frame.
#[test]
fn constructed_descriptor_equals_the_parsed_one() {
    for framing in [Framing::Ethernet, Framing::Ppp, Framing::Aal5snap] {
        let (source, destination) = (([10, 0, 10, 1].into(), 1_234), ([10, 0, 20, 10].into(), 5_001));
        let mut frame = frames::udp(200, 0, 1_234, 5_001);
        rewrite_ecn(&mut frame, 0);
        assert_eq!(Descriptor::ipv4(17, source, destination, 200, framing), parse(&frame, framing));
        for (ip_len, dscp) in [(20, 0), (28, 46), (1_500, 63)] {
            let parsed = parse(&frames::udp(ip_len, dscp, 1_234, 5_001), framing);
            assert_eq!(common::datagram(ip_len, dscp, 1_234, 5_001, framing), parsed);
        }
    }
}

/// Flows differ if a protocol, an address, a port or an EtherType differs.
#[test]
fn flows_of_ipv4_differ_by_protocol_and_address() {
    let ports = [0x04, 0xd2, 0x13, 0x89, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let from = |protocol: u8, host: u8| {
        let mut frame = frames::ipv4(100, 0, protocol, &ports);
        frame[14 + 15] = host;
        parse(&frame, Framing::Ethernet).flow
    };
    let other = |ethertype: [u8; 2]| {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&ethertype);
        parse(&frame, Framing::Ethernet).flow
    };
    let mut flows = vec![from(6, 1), from(17, 1), from(17, 2), from(132, 1), other([0x08, 0x06]), other([0x88, 0xcc])];
    flows.sort_unstable();
    flows.dedup();
    assert_eq!(flows.len(), 6);
}

/// Data of a packet in a capture besides its descriptor.
#[test]
fn header_rest_has_identification_and_time_to_live() {
    let mut four = frames::udp(100, 0, 1, 2);
    four[14 + 4..14 + 6].copy_from_slice(&[0x12, 0x34]);
    assert_eq!(header_rest(&four), HeaderRest { id: 0x1234, ttl: 64 });
    assert_eq!(header_rest(&frames::tagged(&four, 5, 7)), HeaderRest { id: 0x1234, ttl: 64 });
    let mut six = frames::ipv6(0, 17, &[0; 8]);
    six[14 + 7] = 33;
    assert_eq!(header_rest(&six), HeaderRest { id: 0, ttl: 33 });
    assert_eq!(header_rest(&[0; 60]), HeaderRest::default());
}

/// The IPv6 payload length marks the start of padding; a length of 0 with hop-by-hop options has no meaning (RFC 2675).
#[test]
fn ipv6_payload_length_excludes_padding() {
    let len = |next: u8, stated: Option<u16>, bytes: usize| {
        let mut frame = frames::ipv6(0, next, &vec![0; bytes]);
        if let Some(stated) = stated {
            frame[14 + 4..14 + 6].copy_from_slice(&stated.to_be_bytes());
        }
        parse(&frame, Framing::Ethernet).network_len
    };
    assert_eq!(len(17, None, 16), 56);
    assert_eq!(len(17, Some(8), 16), 48, "padded");
    assert_eq!(len(17, Some(0), 16), 40, "nothing but a header, and padding");
    assert_eq!(len(0, Some(8), 16), 48, "padded, with options");
    assert_eq!(len(0, Some(0), 16), 56, "a jumbogram");
    assert_eq!(len(17, Some(17), 16), 56, "cut off");
}

#[test]
fn drop_reasons_equal_counter_names() {
    let names =
        ["police", "denied", "tail", "flow", "priority", "random", "random_tail", "aqm", "disabled", "overrun", "lost"];
    assert_eq!(DropReason::ALL.map(DropReason::name), names);
}
