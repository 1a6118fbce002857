//! IPv4 and IPv6.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::wire::bytes::u16_at;
use crate::wire::checksum;
use crate::wire::ethernet::{ethertype, Layout};

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER: usize = 20;
/// Bytes of an IPv6 header without extensions.
pub const IPV6_HEADER: usize = 40;
/// Bytes of a UDP header.
pub const UDP_HEADER: usize = 8;

/// IP protocol numbers.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// EIGRP.
    pub const EIGRP: u8 = 88;
    /// OSPF.
    pub const OSPF: u8 = 89;
}

/// Code points of explicit congestion notification (RFC 3168 section 5).
pub mod ecn {
    /// Not ECN-capable.
    pub const NOT_ECT: u8 = 0b00;
    /// ECN-capable transport, ECT(1).
    pub const ECT_1: u8 = 0b01;
    /// ECN-capable transport, ECT(0).
    pub const ECT_0: u8 = 0b10;
    /// Congestion experienced.
    pub const CE: u8 = 0b11;
}

/// The complete header of an IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    fixed: &'a [u8; IPV4_HEADER],
    /// Bytes of the header, options included.
    pub len: usize,
}

impl<'a> Ipv4<'a> {
    /// Parses a packet; none without an IPv4 header.
    pub fn of(packet: &'a [u8]) -> Option<Ipv4<'a>> {
        let fixed = packet.first_chunk::<IPV4_HEADER>()?;
        let len = usize::from(fixed[0] & 0x0f) * 4;
        (fixed[0] >> 4 == 4 && len >= IPV4_HEADER && packet.len() >= len).then_some(Ipv4 { fixed, len })
    }

    /// Returns the length of the packet according to its header.
    pub fn total_len(&self) -> usize {
        usize::from(u16::from_be_bytes([self.fixed[2], self.fixed[3]]))
    }

    /// Returns the differentiated services code point.
    pub fn dscp(&self) -> u8 {
        self.fixed[1] >> 2
    }

    /// Returns the explicit congestion notification, see [`ecn`].
    pub fn ecn(&self) -> u8 {
        self.fixed[1] & 0x03
    }

    /// Returns the identification.
    pub fn identification(&self) -> [u8; 2] {
        [self.fixed[4], self.fixed[5]]
    }

    /// Returns the time to live.
    pub fn ttl(&self) -> u8 {
        self.fixed[8]
    }

    /// Returns whether more fragments follow.
    pub fn more_fragments(&self) -> bool {
        self.fixed[6] & 0x20 != 0
    }

    /// Returns whether it is a fragment other than the first.
    pub fn later_fragment(&self) -> bool {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]]) & 0x1fff != 0
    }

    /// Returns the protocol number.
    pub fn protocol(&self) -> u8 {
        self.fixed[9]
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[12], self.fixed[13], self.fixed[14], self.fixed[15])
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[16], self.fixed[17], self.fixed[18], self.fixed[19])
    }
}

/// The fixed header of an IPv6 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    fixed: &'a [u8; IPV6_HEADER],
}

impl<'a> Ipv6<'a> {
    /// Parses a packet; none without an IPv6 header.
    pub fn of(packet: &'a [u8]) -> Option<Ipv6<'a>> {
        let fixed = packet.first_chunk::<IPV6_HEADER>()?;
        (fixed[0] >> 4 == 6).then_some(Ipv6 { fixed })
    }

    /// Returns the length of the packet according to its header.
    pub fn total_len(&self) -> usize {
        IPV6_HEADER + usize::from(u16::from_be_bytes([self.fixed[4], self.fixed[5]]))
    }

    /// Returns the differentiated services code point.
    pub fn dscp(&self) -> u8 {
        ((self.fixed[0] << 4) | (self.fixed[1] >> 4)) >> 2
    }

    /// Returns the explicit congestion notification, see [`ecn`].
    pub fn ecn(&self) -> u8 {
        (self.fixed[1] >> 4) & 0x03
    }

    /// Returns the flow label, 20 bits.
    pub fn flow_label(&self) -> [u8; 3] {
        [self.fixed[1] & 0x0f, self.fixed[2], self.fixed[3]]
    }

    /// Returns the number of the next header: an extension header or a protocol.
    pub fn next_header(&self) -> u8 {
        self.fixed[6]
    }

    /// Returns the hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.fixed[7]
    }

    /// Returns the bytes of the source and destination addresses.
    pub fn addresses(&self) -> [u8; 32] {
        let mut both = [0; 32];
        both.copy_from_slice(&self.fixed[8..]);
        both
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv6Addr {
        self.address(8)
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv6Addr {
        self.address(24)
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.fixed[at..at + 16]);
        Ipv6Addr::from(octets)
    }
}

/// Writes a code point into a frame and updates the IPv4 header checksum (RFC 1624). Returns whether the frame changed.
///
/// A frame without an IP packet is not changed.
pub fn rewrite_dscp(frame: &mut [u8], dscp: u8) -> bool {
    rewrite_traffic_class(frame, 0xfc, dscp << 2)
}

/// Writes the code point of explicit congestion notification into a frame, like [`rewrite_dscp`].
pub fn rewrite_ecn(frame: &mut [u8], ecn: u8) -> bool {
    rewrite_traffic_class(frame, 0x03, ecn)
}

/// Writes the bits of `mask` into the type of service or traffic class.
fn rewrite_traffic_class(frame: &mut [u8], mask: u8, bits: u8) -> bool {
    let Some(found) = Layout::of(frame) else { return false };
    let Some(packet) = frame.get_mut(found.network..) else { return false };
    let bits = bits & mask;
    match found.ethertype {
        ethertype::IPV4 if packet.len() >= IPV4_HEADER && packet[0] >> 4 == 4 && packet[0] & 0x0f >= 5 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            let tos = bits | packet[1] & !mask;
            if tos == packet[1] {
                return false;
            }
            packet[1] = tos;
            let new = u16::from_be_bytes([packet[0], tos]);
            let sum = checksum::updated(u16::from_be_bytes([packet[10], packet[11]]), old, new);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            true
        }
        ethertype::IPV6 if packet.len() >= IPV6_HEADER && packet[0] >> 4 == 6 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            let new = old & !(u16::from(mask) << 4) | (u16::from(bits) << 4);
            packet[..2].copy_from_slice(&new.to_be_bytes());
            new != old
        }
        _ => false,
    }
}

/// Returns the source and destination port of TCP or UDP; each `None` if it is beyond the end.
pub fn ports(segment: &[u8]) -> (Option<u16>, Option<u16>) {
    (u16_at(segment, 0), u16_at(segment, 2))
}
