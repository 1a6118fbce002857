//! The few fields of a frame that the daemon itself reads. Any bytes are safe input.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use ip_sla::packet::icmp;
use qos_core::wire::bytes::u16_at;
use qos_core::wire::ethernet::{self, ethertype, Layout};
use qos_core::wire::ip::{protocol, Ipv4, Ipv6, IPV6_HEADER, UDP_HEADER};

/// Longest frame that the daemon passes: 1500 bytes of packet, 14 of Ethernet header and two VLAN tags (the FCS is
/// never seen).
pub const LONGEST: usize = 1522;
/// Shortest frame with an Ethernet header.
pub const SHORTEST: usize = ethernet::HEADER;

/// Bytes of the packet above the IP header in a transit key: enough for the headers of TCP and UDP and the sequence
/// numbers that traffic generators put first in their payload.
const KEY_PAYLOAD: usize = 48;

/// The complete IP packet in a frame, and the part above its header.
enum Ip<'a> {
    V4 { header: Ipv4<'a>, payload: &'a [u8] },
    V6 { header: Ipv6<'a>, payload: &'a [u8] },
}

fn ip(frame: &[u8]) -> Option<Ip<'_>> {
    let found = Layout::of(frame)?;
    let packet = frame.get(found.network..)?;
    match found.ethertype {
        ethertype::IPV4 => {
            let header = Ipv4::of(packet)?;
            Some(Ip::V4 { header, payload: packet.get(header.len..header.total_len())? })
        }
        ethertype::IPV6 => {
            let header = Ipv6::of(packet)?;
            Some(Ip::V6 { header, payload: packet.get(IPV6_HEADER..header.total_len())? })
        }
        _ => None,
    }
}

/// Computes the keys of packets in the transit ledger.
///
/// The hash has a random key, so that nobody can send packets that all fall into one bucket.
#[derive(Debug, Default)]
pub struct TransitKeys {
    hash: RandomState,
}

impl TransitKeys {
    /// Returns the key of the IP packet in `frame`, made of fields that forwarding and marking do not change: IPv4
    /// identification or IPv6 flow label, addresses, protocol and the first bytes above the IP header. `None` for
    /// anything but a whole IP packet.
    pub fn key(&self, frame: &[u8]) -> Option<u64> {
        let mut fields = [0u8; 40 + KEY_PAYLOAD];
        let payload = match ip(frame)? {
            Ip::V4 { header, payload } => {
                fields[..2].copy_from_slice(&header.identification());
                fields[2] = header.protocol();
                fields[3] = 4;
                fields[4..8].copy_from_slice(&header.source().octets());
                fields[8..12].copy_from_slice(&header.destination().octets());
                payload
            }
            Ip::V6 { header, payload } => {
                fields[..3].copy_from_slice(&header.flow_label());
                fields[3] = 6;
                fields[4] = header.next_header();
                fields[8..40].copy_from_slice(&header.addresses());
                payload
            }
        };
        let taken = payload.len().min(KEY_PAYLOAD);
        fields[40..40 + taken].copy_from_slice(&payload[..taken]);
        Some(self.hash.hash_one(fields))
    }
}

/// A fragment of an IPv4 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// The key of the packet: the same for all its fragments.
    pub packet: u64,
    /// More of them follow.
    pub more: bool,
}

impl TransitKeys {
    /// Returns the fragment of an IPv4 packet in `frame`. `None` for anything else.
    pub fn fragment(&self, frame: &[u8]) -> Option<Fragment> {
        let found = Layout::of(frame).filter(|found| found.ethertype == ethertype::IPV4)?;
        let header = Ipv4::of(frame.get(found.network..)?)?;
        let more = header.more_fragments();
        (more || header.later_fragment()).then(|| {
            let packet = (header.identification(), header.protocol(), header.source(), header.destination());
            Fragment { packet: self.hash.hash_one(packet), more }
        })
    }
}

/// A packet that may be one of IP SLA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Probe<'a> {
    /// A message of ICMP or ICMPv6, according to `kind`.
    Icmp {
        source: IpAddr,
        destination: IpAddr,
        kind: u8,
        identifier: u16,
        sequence: u16,
    },
    Udp {
        source: IpAddr,
        destination: IpAddr,
        source_port: u16,
        destination_port: u16,
        payload: &'a [u8],
    },
}

/// Returns the ICMP echo or timestamp message or the UDP packet in `frame`. `None` for anything else and for fragments
/// after the first, of IPv6 for any fragment.
pub fn probe(frame: &[u8]) -> Option<Probe<'_>> {
    let (source, destination, protocol, payload) = match ip(frame)? {
        Ip::V4 { header, payload } if !header.later_fragment() => {
            (IpAddr::V4(header.source()), IpAddr::V4(header.destination()), header.protocol(), payload)
        }
        Ip::V4 { .. } => return None,
        Ip::V6 { header, payload } => {
            (IpAddr::V6(header.source()), IpAddr::V6(header.destination()), header.next_header(), payload)
        }
    };
    let kinds: &[u8] = match (protocol, source) {
        (protocol::ICMP, IpAddr::V4(_)) => &[icmp::ECHO_REPLY, icmp::ECHO, icmp::TIMESTAMP, icmp::TIMESTAMP_REPLY],
        (protocol::ICMPV6, IpAddr::V6(_)) => &[icmp::ECHO_V6, icmp::ECHO_REPLY_V6],
        (protocol::UDP, _) => {
            return Some(Probe::Udp {
                source,
                destination,
                source_port: u16_at(payload, 0)?,
                destination_port: u16_at(payload, 2)?,
                payload: payload.get(UDP_HEADER..)?,
            })
        }
        _ => return None,
    };
    let kind = *payload.first().filter(|kind| kinds.contains(kind))?;
    Some(Probe::Icmp { source, destination, kind, identifier: u16_at(payload, 4)?, sequence: u16_at(payload, 6)? })
}

/// Completes a TCP or UDP checksum that the sending kernel left to the hardware, with only the sum of the pseudo-header
/// filled in. Returns false if the frame has no such checksum.
pub fn complete_checksum(frame: &mut [u8]) -> bool {
    let Some((at, field)) = (match ip(frame) {
        // A fragment's checksum covers bytes that are not here; kernels never leave it uncomputed.
        Some(Ip::V4 { header, payload }) if !header.more_fragments() && !header.later_fragment() => {
            checksum_field(header.protocol(), payload).map(|f| (offset(frame, payload), f))
        }
        Some(Ip::V6 { header, payload }) => {
            checksum_field(header.next_header(), payload).map(|f| (offset(frame, payload), f))
        }
        _ => None,
    }) else {
        return false;
    };
    let (start, end) = at;
    // Zero means "no checksum" in UDP and never hurts in TCP's arithmetic as all ones (RFC 768).
    let value = match checksum(&frame[start..end]) {
        0 => 0xffff,
        other => other,
    };
    frame[start + field..start + field + 2].copy_from_slice(&value.to_be_bytes());
    true
}

/// Returns the Internet checksum of these bytes (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Writes the receive and the transmit stamp (milliseconds since midnight UT) of an ICMP timestamp reply (RFC 792).
/// Returns false if the frame has none.
pub fn stamp_reply(frame: &mut [u8], received: u32, sent: u32) -> bool {
    let Some(Ip::V4 { header, payload }) = ip(frame) else { return false };
    if header.protocol() != protocol::ICMP || payload.len() < 20 || payload[0] != icmp::TIMESTAMP_REPLY {
        return false;
    }
    let (start, end) = offset(frame, payload);
    let message = &mut frame[start..end];
    message[2..4].fill(0);
    message[12..16].copy_from_slice(&received.to_be_bytes());
    message[16..20].copy_from_slice(&sent.to_be_bytes());
    let sum = checksum(message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    true
}

fn checksum_field(protocol: u8, payload: &[u8]) -> Option<usize> {
    let (field, header) = match protocol {
        protocol::TCP => (16, 20),
        protocol::UDP => (6, UDP_HEADER),
        _ => return None,
    };
    (payload.len() >= header).then_some(field)
}

/// Returns the start and end of `part`, a sub-slice of `whole`, in it.
fn offset(whole: &[u8], part: &[u8]) -> (usize, usize) {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    (start, start + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns an Ethernet frame with an IPv4 UDP packet.
    fn udp(id: u16, ttl: u8, tos: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0u8; 12];
        frame.extend([0x08, 0x00]);
        let total = (28 + payload.len()) as u16;
        frame.extend([0x45, tos]);
        frame.extend(total.to_be_bytes());
        frame.extend(id.to_be_bytes());
        frame.extend([0, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x13, 0x88, 0x13, 0x89]);
        frame.extend(((8 + payload.len()) as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn forwarding_and_marking_leave_the_key_alone() {
        let keys = TransitKeys::default();
        let mut before = udp(7, 64, 0, b"payload");
        let key = keys.key(&before).unwrap();
        let mut after = udp(7, 63, 184, b"payload");
        after[..12].copy_from_slice(&[9; 12]);
        after[24..26].copy_from_slice(&[0xab, 0xcd]);
        assert_eq!(keys.key(&after), Some(key));
        // The padding of a short frame is not part of the packet.
        before.extend([0; 20]);
        assert_eq!(keys.key(&before), Some(key));
    }

    #[test]
    fn different_packets_have_different_keys() {
        let keys = TransitKeys::default();
        let key = keys.key(&udp(7, 64, 0, b"payload"));
        assert_ne!(keys.key(&udp(8, 64, 0, b"payload")), key);
        assert_ne!(keys.key(&udp(7, 64, 0, b"Payload")), key);
    }

    #[test]
    fn a_tagged_packet_has_the_key_of_the_untagged_one() {
        let keys = TransitKeys::default();
        let plain = udp(7, 64, 0, b"payload");
        let mut tagged = plain[..12].to_vec();
        tagged.extend([0x81, 0x00, 0xa0, 0x0a]);
        tagged.extend(&plain[12..]);
        assert_eq!(keys.key(&tagged), keys.key(&plain));
    }

    #[test]
    fn a_partial_checksum_is_completed() {
        let mut frame = udp(7, 64, 0, b"odd");
        // Pseudo-header: addresses, protocol, length.
        let sum: u32 = [0x0a00, 0x0001, 0x0a00, 0x0002, 17, 11].iter().sum();
        frame[40..42].copy_from_slice(&(sum as u16).to_be_bytes());
        assert!(complete_checksum(&mut frame));
        // A receiver adds everything up, checksum included, and must get all ones (RFC 1071).
        let mut total = sum;
        for pair in frame[34..].chunks(2) {
            total += (u32::from(pair[0]) << 8) | u32::from(pair.get(1).copied().unwrap_or(0));
        }
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        assert_eq!(total, 0xffff);
    }

    #[test]
    fn a_reply_is_stamped_and_its_checksum_holds() {
        let mut frame = udp(7, 64, 0, &[0; 12]);
        frame[23] = protocol::ICMP;
        frame[34..42].copy_from_slice(&[icmp::TIMESTAMP_REPLY, 0, 0xde, 0xad, 0, 1, 0, 2]);
        let untouched = frame[..34].to_vec();
        assert!(stamp_reply(&mut frame, 0x0102_0304, 0x0506_0708));
        assert_eq!(frame[..34], untouched[..]);
        assert_eq!(frame[46..54], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(checksum(&frame[34..]), 0);
        frame[34] = 13;
        assert!(!stamp_reply(&mut frame, 0, 0));
        assert!(!stamp_reply(&mut udp(7, 64, 0, b"payload of some length"), 0, 0));
    }

    /// Returns an Ethernet frame with an IPv6 packet.
    fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0u8; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((payload.len() as u16).to_be_bytes());
        frame.extend([next, 64]);
        for host in [1, 2] {
            frame.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        frame.extend(payload);
        frame
    }

    #[test]
    fn probes_of_both_ip_versions_are_recognised() {
        let ends = |host: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, host]);
        let message = |kind: u8| [kind, 0, 0, 0, 0, 7, 0, 9];
        let icmp = |kind| {
            let (source, destination) = (ends(1), ends(2));
            Some(Probe::Icmp { source, destination, kind, identifier: 7, sequence: 9 })
        };
        assert_eq!(probe(&ipv6(protocol::ICMPV6, &message(128))), icmp(128));
        assert_eq!(probe(&ipv6(protocol::ICMPV6, &message(129))), icmp(129));
        // A neighbour solicitation, the echo of the other version, a truncated message, a fragment.
        for (next, payload) in [(protocol::ICMPV6, 135), (protocol::ICMPV6, 8), (protocol::ICMP, 128), (44, 128)] {
            assert_eq!(probe(&ipv6(next, &message(payload))), None);
        }
        assert_eq!(probe(&ipv6(protocol::ICMPV6, &message(128)[..7])), None);
        let datagram = [0x13, 0x88, 0x07, 0xaf, 0, 9, 0, 0, 5];
        let (source, destination) = (ends(1), ends(2));
        let udp = Probe::Udp { source, destination, source_port: 5000, destination_port: 1967, payload: &[5] };
        assert_eq!(probe(&ipv6(protocol::UDP, &datagram)), Some(udp));
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let keys = TransitKeys::default();
            let _ = keys.key(&bytes);
            let _ = probe(&bytes);
            let _ = stamp_reply(&mut bytes, 1, 2);
            let _ = complete_checksum(&mut bytes);
        }

        #[test]
        fn damaged_packet_never_panics(at in 0usize..49, byte in any::<u8>(), cut in 0usize..49) {
            let mut frame = udp(7, 64, 0, b"payload");
            frame[at] = byte;
            frame.truncate(cut);
            let _ = probe(&frame);
            let _ = TransitKeys::default().key(&frame);
            let _ = complete_checksum(&mut frame);
        }
    }
}
