//! Arbitrary bytes as a capture: reading ends without a panic at the first malformed byte, and no packet is longer than
//! the file.

use qos_pcap::capture::Capture;
use qos_pcap::columns::Columns;
use qos_pcap::packet::{describe, Facts};

/// Length of the shortest record of the older format.
const LEAST_RECORD: usize = 16;
/// Limit on decompressed bytes: more highly compressed input is not read to its end.
const MOST: usize = 100_000;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let Ok(mut capture) = Capture::new(bytes, &[]) else { return };
    let (mut columns, mut room, mut packets) = (Columns::new(64), Vec::new(), 0);
    let compressed = bytes.starts_with(&[0x1f, 0x8b]);
    while let Ok(Some(packet)) = capture.next_packet() {
        packets += 1;
        assert!(compressed || packets * LEAST_RECORD <= bytes.len());
        assert!(compressed || packet.frame.len() < bytes.len());
        let facts = describe(packet, 64, &mut room);
        assert_eq!(facts, describe(packet, 64, &mut Vec::new()));
        assert!((facts.version == -1) == (Facts { vlan: -1, ..facts } == Facts::NOT_IP));
        assert!(facts.behind < 64 && (facts.source_port == -1) == (facts.destination_port == -1));
        columns.push(packet);
        if packets == MOST {
            break;
        }
    }
    let mut written = Vec::new();
    columns.write(&mut written).unwrap_or_else(|error| panic!("a vector takes everything: {error}"));
    assert!(columns.is_empty() && written.len() >= packets * 70);
}
