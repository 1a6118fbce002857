//! Any bytes as a frame in transit: its key does not depend on fields that forwarding and marking change, and
//! completing a checksum stays within the frame.

use qos_core::frame::rewrite_dscp;
use qos_router::frame::{complete_checksum, TransitKeys};

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let keys = TransitKeys::default();
    let mut frame = bytes.to_vec();
    let before = keys.key(&frame);
    rewrite_dscp(&mut frame, first & 0x3f);
    assert_eq!(keys.key(&frame), before);
    if let Some(addresses) = frame.get_mut(..12) {
        addresses.fill(*first);
    }
    assert_eq!(keys.key(&frame), before);
    complete_checksum(&mut frame);
}
