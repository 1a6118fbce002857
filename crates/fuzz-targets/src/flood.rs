//! Any bytes as datagrams that arrive at a flood's receiver: read or refused, and every number is received or missing.

use std::collections::BTreeSet;

use flood::datagram::{parse_datagram, parse_packet, Stamp};
use flood::sequence::{Jitter, Sequence};

/// Number of distinct datagram numbers.
const COUNTED: u64 = 300;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    if let Some((_, _, payload)) = parse_packet(bytes) {
        assert!(payload.len() + 28 <= bytes.len());
    }
    if let Some((_, _, payload)) = parse_datagram(bytes) {
        assert!(payload.len() + 8 <= bytes.len());
    }
    let (mut sequence, mut jitter) = (Sequence::default(), Jitter::default());
    let (mut seen, mut arrivals) = (BTreeSet::new(), 0);
    for (place, payload) in bytes.chunks(Stamp::LENGTH).enumerate() {
        let Some(stamp) = Stamp::read(payload) else { continue };
        let mut again = [0; Stamp::LENGTH];
        stamp.write(&mut again);
        assert_eq!(again, payload);
        jitter.record_arrival(stamp.sent_ns, place as u64);
        assert!(jitter.nanoseconds() >= 0.0);
        sequence.record_arrival(stamp.sequence);
        arrivals += 1;
        assert_eq!(sequence.received + sequence.repeated, arrivals);
        seen.insert(stamp.sequence);
    }
    if let Some(greatest) = seen.last().filter(|greatest| **greatest < COUNTED) {
        assert_eq!(sequence.received, seen.len() as u64);
        assert_eq!(sequence.received + sequence.missing(), greatest + 1);
    }
}
