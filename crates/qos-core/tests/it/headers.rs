//! Reading and writing of header fields, against bytes written by hand.

use crate::common::frames::{self, tagged};
use qos_core::frame::{rewrite_cos, rewrite_dscp, rewrite_ecn};
use qos_core::wire::ethernet::Tag;
use qos_core::wire::ip::{Ipv4, Ipv6};
use qos_core::wire::{counted_header, Framing};

/// A frame with only addresses, followed by these bytes.
fn behind_addresses(rest: &[u8]) -> Vec<u8> {
    [&[0; 12], rest].concat()
}

/// IEEE 802.1Q: EtherType 8100, then three bits of priority, one of drop eligibility, twelve of the VLAN.
#[test]
fn vlan_tags_are_read_and_written() {
    let tag = Tag { cos: 5, vlan: 0x064 };
    assert_eq!(Tag::of(&behind_addresses(&[0x81, 0x00, 0xb0, 0x64, 0x08, 0x00])), Some(tag));
    assert_eq!(tag.bytes(), [0x81, 0x00, 0xa0, 0x64]);
    assert_eq!(Tag { cos: 7, vlan: 0xfff }.bytes(), [0x81, 0x00, 0xef, 0xff]);
    assert_eq!(Tag::of(&behind_addresses(&[0x81, 0x00, 0xef, 0xff])), Some(Tag { cos: 7, vlan: 0xfff }));
    for none in [&[0x08, 0x00, 0xb0, 0x64][..], &[0x88, 0xa8, 0xb0, 0x64], &[0x81, 0x00, 0xb0], &[0x81], &[]] {
        assert_eq!(Tag::of(&behind_addresses(none)), None, "{none:?}");
    }
}

/// The class of service is written into the outermost tag, of either kind, and nothing else with it.
#[test]
fn a_class_of_service_is_written_into_a_tag() {
    for kind in [[0x81, 0x00], [0x88, 0xa8]] {
        let with = |control: u8| behind_addresses(&[kind[0], kind[1], control, 0x64, 0x08, 0x00, 0xff]);
        for (before, cos, after) in [(0xb3, 2, 0x53), (0x1f, 7, 0xff), (0xff, 0, 0x1f), (0xa0, 0x0d, 0xa0)] {
            let mut frame = with(before);
            assert_eq!(rewrite_cos(&mut frame, cos), before != after, "{before:x} {cos}");
            assert_eq!(frame, with(after), "{before:x} {cos}");
        }
    }
    let mut plain = frames::udp(100, 0, 1, 2);
    let before = plain.clone();
    assert!(!rewrite_cos(&mut plain, 5));
    assert_eq!(plain, before);
}

/// RFC 791: version, header length in words, flags. Incomplete headers are rejected.
#[test]
fn truncated_ipv4_headers_are_refused() {
    let mut header = [0u8; 24];
    header[0] = 0x45;
    assert_eq!(Ipv4::of(&header).map(|header| header.len), Some(20));
    assert_eq!(Ipv4::of(&header[..20]).map(|header| header.len), Some(20));
    assert!(Ipv4::of(&header[..19]).is_none());
    for (first, bytes, len) in [
        (0x46, 24, Some(24)),
        (0x46, 23, None),
        (0x44, 24, None),
        (0x55, 24, None),
        (0x65, 24, None),
        (0x35, 24, None),
        (0x4f, 24, None),
    ] {
        header[0] = first;
        assert_eq!(Ipv4::of(&header[..bytes]).map(|header| header.len), len, "{first:x} of {bytes}");
    }
    header[0] = 0x45;
    // Reserved, don't fragment, more fragments, and an offset.
    for (flags, more, later) in
        [([0x00, 0], false, false), ([0xc0, 0], false, false), ([0x20, 0], true, false), ([0x1f, 1], false, true)]
    {
        header[6..8].copy_from_slice(&flags);
        let found = Ipv4::of(&header).unwrap();
        assert_eq!((found.more_fragments(), found.later_fragment()), (more, later), "{flags:?}");
    }
}

/// RFC 8200: four bits of version, eight of traffic class, twenty of the flow label; the addresses from byte 8 on.
#[test]
fn ipv6_fields_are_read() {
    let mut header = [0u8; 40];
    header[..4].copy_from_slice(&[0x6b, 0xa1, 0x23, 0x45]);
    for (byte, number) in header[8..].iter_mut().zip(1..) {
        *byte = number;
    }
    let found = Ipv6::of(&header).unwrap();
    assert_eq!((found.dscp(), found.ecn(), found.flow_label()), (0xba >> 2, 0x02, [0x01, 0x23, 0x45]));
    assert_eq!(found.addresses()[..], header[8..]);
    assert!(Ipv6::of(&header[..39]).is_none());
    header[0] = 0x4b;
    assert!(Ipv6::of(&header).is_none());
}

/// Code points are written into whole headers of the version that the EtherType says, and the other two bits stay.
#[test]
fn code_points_are_written_into_whole_headers() {
    let whole = frames::udp(100, 10, 1, 2);
    let six = frames::ipv6(10, 17, &[0; 8]);
    let mut damaged =
        vec![whole[..14 + 19].to_vec(), six[..14 + 39].to_vec(), whole[..14].to_vec(), six[..14].to_vec()];
    for (frame, first) in [(&whole, 0x44), (&whole, 0x55), (&whole, 0x65), (&six, 0x40), (&six, 0x50), (&six, 0x70)] {
        let mut frame = frame.clone();
        frame[14] = first;
        damaged.push(frame);
    }
    for frame in damaged {
        let mut found = frame.clone();
        assert!(!rewrite_dscp(&mut found, 46) && !rewrite_ecn(&mut found, 3), "{frame:x?}");
        assert_eq!(found, frame);
    }
    let mut four = whole.clone();
    assert!(rewrite_dscp(&mut four, 46) && rewrite_ecn(&mut four, 2));
    assert_eq!(four[15], (46 << 2) | 2);
    let mut found = six.clone();
    assert!(rewrite_dscp(&mut found, 46) && rewrite_ecn(&mut found, 2));
    // The version before it and the flow label behind it stay.
    assert_eq!(found[14..16], [0x6b, 0xa5]);
    assert_eq!(found[16..], six[16..]);
}

/// A checksum carries twice: ff48, baff and 45b8 are 1ffff, of which ffff and 1 are 10000 and those 1.
#[test]
fn checksum_update_carries_twice() {
    let mut frame = frames::udp(100, 0, 1, 2);
    frame[15] = 0;
    frame[24..26].copy_from_slice(&[0x00, 0xb7]);
    assert!(rewrite_dscp(&mut frame, 46));
    assert_eq!(frame[24..26], [0xff, 0xfe]);
    let mut behind = tagged(&frames::udp(100, 0, 1, 2), 0, 10);
    assert!(rewrite_dscp(&mut behind, 46));
    assert_eq!(frames::checksum(&behind[18..38]), 0);
}

/// RFC 2516: PPPoE's six bytes and the two of PPP's protocol, behind an Ethernet header.
#[test]
fn a_session_counts_eight_bytes_more() {
    let headers = [Framing::Ethernet, Framing::Pppoe, Framing::Ppp, Framing::Hdlc].map(counted_header);
    assert_eq!(headers, [14, 22, 4, 4]);
}
