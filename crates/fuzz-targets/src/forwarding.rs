//! Any bytes as a frame in transit, and as a message of the kernel: the forwarded frame has one hop less, is no longer,
//! and is otherwise unchanged.

use qos_router::forwarding::kernel::Kernel;
use qos_router::forwarding::packet::{rewrite, Packet};

const ADDRESSES: usize = 12;
const HEADER: usize = 14;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    message(bytes);
    let Some(packet) = Packet::of(bytes) else { return };
    let mut frame = bytes.to_vec();
    let length = rewrite(&mut frame, &packet, &[7; ADDRESSES]);
    assert!(length <= bytes.len() && length >= HEADER + 20);
    frame.truncate(length);
    assert_eq!(frame[..ADDRESSES], [7; ADDRESSES]);
    let (ttl, changed) = if packet.destination.is_ipv4() { (22, &[22, 24, 25][..]) } else { (21, &[21][..]) };
    assert_eq!(frame[ttl], bytes[ttl] - 1);
    for at in (ADDRESSES..length).filter(|at| !changed.contains(at)) {
        assert_eq!(frame[at], bytes[at]);
    }
    // The packet is unchanged, unless its TTL has expired.
    let next = Packet::of(&frame);
    assert_eq!(next.is_some(), frame[ttl] > 1);
    if let Some(next) = next {
        assert_eq!((next.source, next.destination), (packet.source, packet.destination));
        assert_eq!(next.length, packet.length);
    }
}

/// Checks that any bytes are a message that is understood or refused.
fn message(bytes: &[u8]) {
    let Some(([kind, flags], body)) = bytes.split_first_chunk() else { return };
    let mut kernel = Kernel::default();
    for dumping in [true, false] {
        let _ = kernel.take(u16::from(*kind), u16::from(*flags) << 8, body, dumping);
    }
}
