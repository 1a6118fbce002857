//! Any bytes as a frame: described without a panic, and marking changes nothing but the code point.

use qos_core::frame::{parse, rewrite_cos, rewrite_dscp};
use qos_core::wire::Framing;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let Some((dscp, bytes)) = bytes.split_first() else { return };
    let dscp = dscp & 0x3f;
    for framing in [Framing::Ethernet, Framing::Hdlc, Framing::Pppoe, Framing::Aal5mux] {
        let mut frame = bytes.to_vec();
        let before = parse(&frame, framing);
        assert!(before.network_len as usize <= frame.len());
        let changed = rewrite_dscp(&mut frame, dscp);
        let after = parse(&frame, framing);
        assert_eq!((after.network, after.flow, after.counted_len), (before.network, before.flow, before.counted_len));
        if before.is_ip() {
            assert_eq!((after.dscp, changed), (dscp, before.dscp != dscp));
        }
        rewrite_cos(&mut frame, dscp);
        assert_eq!(frame.len(), bytes.len());
    }
}
