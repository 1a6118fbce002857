//! Packet fields that forwarding reads and changes. Any bytes are safe input.

use std::net::IpAddr;

use qos_core::wire::bytes::u16_at;
use qos_core::wire::ethernet::{ethertype, ADDRESSES, HEADER};
use qos_core::wire::ip::{Ipv4, Ipv6, IPV4_HEADER, IPV6_HEADER};

/// A hardware address.
pub type Mac = [u8; 6];

/// Offsets of IPv4's time to live and header checksum and of IPv6's hop limit in a packet.
const TTL: usize = 8;
const CHECKSUM: usize = 10;
const HOP_LIMIT: usize = 7;
/// Hop-by-hop options.
const HOP_BY_HOP: u8 = 0;

/// A plain packet, which can be forwarded without regard to anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The destination hardware address.
    pub to: Mac,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same version.
    pub destination: IpAddr,
    /// Bytes of the packet, without padding.
    pub length: usize,
}

impl Packet {
    /// Returns the packet in a frame, or `None` if the kernel must handle it: not IP, damaged, with a tag, with
    /// options, with an expiring time to live, or with an address that is not that of a single host.
    pub fn of(frame: &[u8]) -> Option<Packet> {
        let to = *frame.first_chunk()?;
        let packet = frame.get(HEADER..)?;
        let (source, destination, length) = match u16_at(frame, ADDRESSES)? {
            ethertype::IPV4 => {
                let header = Ipv4::of(packet).filter(|header| header.len == IPV4_HEADER)?;
                if packet[TTL] <= 1 || !header_checksum_holds(packet.first_chunk()?) {
                    return None;
                }
                (header.source().into(), header.destination().into(), header.total_len())
            }
            ethertype::IPV6 => {
                let header = Ipv6::of(packet)?;
                if packet[HOP_LIMIT] <= 1 || header.next_header() == HOP_BY_HOP {
                    return None;
                }
                (header.source().into(), header.destination().into(), header.total_len())
            }
            _ => return None,
        };
        let whole = (IPV4_HEADER..=packet.len()).contains(&length);
        (whole && is_usual(source) && is_usual(destination)).then_some(Packet { to, source, destination, length })
    }
}

/// Returns whether it is the address of one host that other hosts may know.
fn is_usual(address: IpAddr) -> bool {
    match address {
        // This network, loopback, multicast and reserved (RFC 6890).
        IpAddr::V4(address) => !matches!(address.octets()[0], 0 | 127 | 224..),
        // Unspecified, loopback, IPv4-mapped, link-local, multicast (RFC 4291).
        IpAddr::V6(address) => !matches!(address.segments()[0], 0 | 0xfe80..=0xfebf | 0xff00..),
    }
}

fn header_checksum_holds(header: &[u8; IPV4_HEADER]) -> bool {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

/// Rewrites the frame of a [`Packet`] for its departure: new addresses (`header`: destination, then source), one hop
/// less to live. Returns its length without padding.
///
/// The checksum is updated as in Linux: all ones becomes zero.
pub fn rewrite(frame: &mut [u8], packet: &Packet, header: &[u8; ADDRESSES]) -> usize {
    frame[..ADDRESSES].copy_from_slice(header);
    let bytes = &mut frame[HEADER..];
    match packet.destination {
        IpAddr::V4(_) => {
            bytes[TTL] -= 1;
            // The time to live is the upper byte of its word.
            let sum = u32::from(u16::from_be_bytes([bytes[CHECKSUM], bytes[CHECKSUM + 1]])) + 0x0100;
            let sum = (sum + u32::from(sum >= 0xffff)) as u16;
            bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        }
        IpAddr::V6(_) => bytes[HOP_LIMIT] -= 1,
    }
    debug_assert!(packet.length >= IPV4_HEADER.min(IPV6_HEADER));
    HEADER + packet.length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ipv4(ttl: u8, identification: u16, padding: usize) -> Vec<u8> {
        let mut frame = vec![2; ADDRESSES];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 24]);
        frame.extend(identification.to_be_bytes());
        frame.extend([0, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4]);
        let sum: u32 = frame[14..34].chunks(2).map(|p| u32::from(u16::from_be_bytes([p[0], p[1]]))).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.resize(frame.len() + padding, 0);
        frame
    }

    #[test]
    fn frames_for_the_kernel_are_not_forwarded() {
        assert!(Packet::of(&ipv4(64, 7, 0)).is_some());
        assert!(Packet::of(&ipv4(1, 7, 0)).is_none());
        // Frames with a tag, another EtherType, version, options, length, checksum or multicast, or a source in
        // 127.0.0.0/8.
        for (at, byte) in [(12, 0x81), (13, 6), (14, 0x65), (14, 0x46), (17, 25), (25, 0xee), (30, 224), (26, 127)] {
            let mut frame = ipv4(64, 7, 0);
            frame[at] = byte;
            if at >= 26 {
                let fixed = frame[14..34].chunks(2).map(|p| u32::from(u16::from_be_bytes([p[0], p[1]])));
                let sum: u32 = fixed.enumerate().filter(|(at, _)| *at != 5).map(|(_, word)| word).sum();
                frame[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
            }
            assert!(Packet::of(&frame).is_none(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn rewrite_keeps_the_checksum_and_removes_padding(ttl in 2u8.., id in any::<u16>(), padding in 0usize..30) {
            let mut frame = ipv4(ttl, id, padding);
            let packet = Packet::of(&frame).unwrap();
            let length = rewrite(&mut frame, &packet, &[9; ADDRESSES]);
            prop_assert_eq!(length, 38);
            frame.truncate(length);
            prop_assert_eq!(frame[22], ttl - 1);
            prop_assert!(header_checksum_holds(frame[14..34].first_chunk().unwrap()));
            prop_assert_eq!(&frame[34..], [1, 2, 3, 4]);
        }

        #[test]
        fn any_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), six in any::<bool>()) {
            if let Some(version) = bytes.get_mut(12..15) {
                version.copy_from_slice(if six { &[0x86, 0xdd, 0x60] } else { &[0x08, 0x00, 0x45] });
            }
            if let Some(packet) = Packet::of(&bytes) {
                let length = rewrite(&mut bytes, &packet, &[1; ADDRESSES]);
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
