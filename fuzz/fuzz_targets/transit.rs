//! Any bytes as a frame in transit: its key does not depend on what forwarding and marking change, and completing a
//! checksum stays in the frame.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qos_core::frame::rewrite_dscp;
use qos_router::frame::{complete_checksum, TransitKeys};

fuzz_target!(|input: (u8, &[u8])| {
    let keys = TransitKeys::default();
    let mut frame = input.1.to_vec();
    let before = keys.key(&frame);
    rewrite_dscp(&mut frame, input.0 & 0x3f);
    assert_eq!(keys.key(&frame), before);
    if let Some(addresses) = frame.get_mut(..12) {
        addresses.fill(input.0);
    }
    assert_eq!(keys.key(&frame), before);
    complete_checksum(&mut frame);
});
