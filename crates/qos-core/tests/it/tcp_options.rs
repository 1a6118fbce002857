//! The maximum segment size in a SYN, lowered by the router.

use crate::common::frames::{checksum, ipv4, ipv6, tagged};
use proptest::prelude::*;
use qos_core::wire::tcp_options::lower_mss;

const SYN: u8 = 0x02;

/// A TCP segment with these options (padded to whole words), flags and payload, and its checksum, in a frame.
fn frame(options: &[u8], flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; 20];
    segment[..4].copy_from_slice(&[0x9c, 0x40, 0x14, 0x51]);
    segment.extend_from_slice(options);
    segment.resize(segment.len().next_multiple_of(4), 0);
    segment[12] = ((segment.len() / 4) as u8) << 4;
    segment[13] = flags;
    segment.extend_from_slice(payload);
    let sum = checksum(&checksum_covers(&segment));
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    ipv4(0, 0, 6, &segment)
}

/// Bytes covered by TCP's checksum: the pseudo-header with the addresses of `ipv4`, and the segment.
fn checksum_covers(segment: &[u8]) -> Vec<u8> {
    let mut bytes = vec![10, 0, 10, 1, 10, 0, 20, 10, 0, 6];
    bytes.extend_from_slice(&(segment.len() as u16).to_be_bytes());
    bytes.extend_from_slice(segment);
    bytes
}

fn valid(frame: &[u8]) -> bool {
    checksum(&checksum_covers(&frame[34..])) == 0
}

fn mss(size: u16) -> Vec<u8> {
    [&[2, 4], size.to_be_bytes().as_slice()].concat()
}

/// Options other than the size, of one to ten bytes.
fn other_segment() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![1]),
        Just(vec![4, 2]),
        Just(vec![3, 3, 7]),
        prop::collection::vec(any::<u8>(), 8).prop_map(|stamps| [&[8, 10], stamps.as_slice()].concat()),
    ]
}

proptest! {
    /// Wherever the option stands, the smaller size is in the frame, the checksum holds, and nothing else has changed.
    #[test]
    fn adjusted_mss_is_the_smaller_one_and_keeps_the_checksum(
        before in prop::collection::vec(other_segment(), 0..3),
        after in prop::collection::vec(other_segment(), 0..2),
        asked in any::<u16>(),
        most in 500u16..1461,
        ack in any::<bool>(),
        payload in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let flags = if ack { SYN | 0x10 } else { SYN };
        let options = |size: u16| [before.concat(), mss(size), after.concat()].concat();
        let mut found = frame(&options(asked), flags, &payload);
        prop_assert!(valid(&found));
        prop_assert_eq!(lower_mss(&mut found, most), asked > most);
        prop_assert!(valid(&found));
        // All ones and zero are the same sum.
        let expected = frame(&options(asked.min(most)), flags, &payload);
        prop_assert_eq!(&found[..50], &expected[..50]);
        prop_assert_eq!(&found[52..], &expected[52..]);
    }

    /// Segments that do not begin a connection keep what they have, and so do other packets.
    #[test]
    fn mss_adjustment_ignores_others(flags in any::<u8>(), payload in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut established = frame(&mss(1_460), flags & !SYN, &payload);
        let before = established.clone();
        prop_assert!(!lower_mss(&mut established, 500));
        prop_assert_eq!(established, before);
        let mut version_six = ipv6(0, 6, &payload);
        prop_assert!(!lower_mss(&mut version_six, 500));
    }

    #[test]
    fn damaged_tcp_options_never_panic(at in 0usize..64, byte in any::<u8>(), cut in 0usize..64, most in any::<u16>()) {
        let mut found = frame(&[mss(1_460), vec![1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]].concat(), SYN, b"");
        if let Some(place) = found.get_mut(at) {
            *place = byte;
        }
        found.truncate(cut);
        let _ = lower_mss(&mut found, most);
    }
}

/// Behind a tag too, and not in a later fragment, which has no header.
#[test]
fn mss_is_adjusted_behind_tags_and_not_in_fragments() {
    let mut behind = tagged(&frame(&mss(1_460), SYN, b""), 0, 10);
    assert!(lower_mss(&mut behind, 1_360));
    assert_eq!(behind[58..62], [2, 4, 0x05, 0x50]);
    let mut fragment = frame(&mss(1_460), SYN, b"");
    fragment[21] = 1;
    assert!(!lower_mss(&mut fragment, 1_360));
}

/// A length of less than its own two bytes ends the reading, and only kind 2 of four bytes is the size.
#[test]
fn tcp_options_are_parsed_by_kind_and_length() {
    for options in [
        &[5, 0, 2, 4, 0x05, 0xb4][..],
        &[5, 1, 2, 4, 0x05, 0xb4],
        &[254, 4, 0x05, 0xb4],
        &[2, 3, 0x05, 1],
        &[0, 0, 2, 4, 0x05, 0xb4],
    ] {
        let mut found = frame(options, SYN, b"");
        let before = found.clone();
        assert!(!lower_mss(&mut found, 500), "{options:?}");
        assert_eq!(found, before, "{options:?}");
    }
    let mut behind = frame(&[[254, 4, 1, 2].as_slice(), &mss(1_460)].concat(), SYN, b"");
    assert!(lower_mss(&mut behind, 500));
    // Setting the current value is no change.
    assert!(!lower_mss(&mut behind, 500));
    assert!(!lower_mss(&mut frame(&mss(1_460), SYN, b""), 1_460));
}
