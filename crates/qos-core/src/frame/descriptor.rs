//! What the engine knows of a frame: [`Descriptor`], read from the bytes of an Ethernet frame by [`parse`].
//!
//! Frames come from a network, so nothing about them is believed: lengths are checked and a frame that makes no sense
//! is described as not IP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::wire::framing::{framed, Framing};

/// Length of an Ethernet II header without tags.
pub const ETHERNET_HEADER: usize = 14;

const ETHERTYPE_IPV4: u16 = 0x0800;

const ETHERTYPE_IPV6: u16 = 0x86dd;

const ETHERTYPE_VLAN: u16 = 0x8100;

const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;

/// Tags deeper than this are not looked behind.
const MAX_TAGS: usize = 2;

/// Extension headers beyond this many are not looked behind.
const MAX_EXTENSION_HEADERS: usize = 8;

/// IP protocol numbers.
pub mod protocol {
    #![allow(missing_docs)]
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ICMPV6: u8 = 58;
    pub const EIGRP: u8 = 88;
    pub const OSPF: u8 = 89;
}

/// The network layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Anything else (ARP, CDP, malformed IP). Classified and queued, but neither policed nor marked.
    Other,
}

/// What the engine knows of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The network layer.
    pub network: Network,
    /// Length of the IP packet in bytes (of the frame's payload when it is not IP).
    pub network_len: u32,
    /// Bytes that counters, policers, shapers and queues count: IP packet plus layer-2 header (Ethernet 14, each VLAN tag 4 more, PPP and HDLC 4).
    pub counted_len: u32,
    /// Bytes that the frame takes on the wire: Ethernet 38 above the IP packet and padding, PPP and HDLC 7.
    pub line_len: u32,
    /// Differentiated services code point, 0 to 63. The engine rewrites this; the caller applies it with [`rewrite_dscp`].
    pub dscp: u8,
    /// Class of service of the outermost VLAN tag, 0 to 7; 0 without a tag. The engine rewrites this; the caller applies it with [`rewrite_cos`].
    pub cos: u8,
    /// VLAN tags.
    pub tags: u8,
    /// What the frame is inside a switch. The engine sets it in `receive`; the caller carries it from [`crate::frame::port::Side::Inside`] to [`crate::engine::Engine::transmit`].
    pub label: Option<crate::frame::label::Label>,
    /// The router's own group number. The engine's input policy sets it; the caller carries it from [`crate::frame::port::Side::Inside`] to [`crate::engine::Engine::transmit`].
    pub qos_group: u16,
    /// The port by which the packet entered the router; the engine sets it in `receive`, the caller carries it on.
    pub input_port: Option<crate::frame::port::PortId>,
    /// IP protocol number (the last header's with IPv6); 0 when not IP.
    pub protocol: u8,
    /// Source address; unspecified when not IP.
    pub source: IpAddr,
    /// Destination address; unspecified when not IP.
    pub destination: IpAddr,
    /// TCP or UDP source port; null in fragments other than the first.
    pub source_port: Option<u16>,
    /// TCP or UDP destination port.
    pub destination_port: Option<u16>,
    /// ICMP type and code.
    pub icmp: Option<(u8, u8)>,
    /// A fragment other than the first.
    pub later_fragment: bool,
    /// TCP with ACK or RST set.
    pub established: bool,
    /// Key of the flow: a hash of addresses, protocol and ports without a seed. Fair queueing mixes its own seed in.
    pub flow: u64,
}

impl Descriptor {
    /// Of a frame of which nothing is known yet.
    pub const UNKNOWN: Descriptor = Descriptor {
        network: Network::Other,
        network_len: 0,
        counted_len: 0,
        line_len: 0,
        dscp: 0,
        cos: 0,
        tags: 0,
        label: None,
        qos_group: 0,
        input_port: None,
        protocol: 0,
        source: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        destination: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        source_port: None,
        destination_port: None,
        icmp: None,
        later_fragment: false,
        established: false,
        flow: 0,
    };

    /// IP precedence, 0 to 7.
    pub fn precedence(&self) -> u8 {
        self.dscp >> 3
    }

    /// Whether the frame carries IPv4 or IPv6.
    pub fn is_ip(&self) -> bool {
        self.network != Network::Other
    }

    /// The same packet as it counts on a link with `framing`, as [`parse`] would describe its frame there.
    #[must_use]
    pub fn framed(mut self, framing: Framing) -> Descriptor {
        (self.counted_len, self.line_len) = framed(self.network_len, usize::from(self.tags), framing);
        self
    }
}

/// Where the parts of a frame are.
struct Layout {
    ethertype: u16,
    network: usize,
    tags: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn layout(frame: &[u8]) -> Option<Layout> {
    let mut at = 12;
    for tags in 0..=MAX_TAGS {
        let ethertype = u16_at(frame, at)?;
        if tags == MAX_TAGS || (ethertype != ETHERTYPE_VLAN && ethertype != ETHERTYPE_SERVICE_VLAN) {
            return Some(Layout { ethertype, network: at + 2, tags });
        }
        at += 4;
    }
    None
}

/// Describes an Ethernet frame (without frame check sequence) as it counts on a link with `framing`.
///
/// Any bytes are accepted, even none. The frame may be longer than the link's largest (segmentation offload): then its
/// lengths are those of the bytes given.
pub fn parse(frame: &[u8], framing: Framing) -> Descriptor {
    let mut descriptor = Descriptor::UNKNOWN;
    let mut tags = 0;
    let mut payload = frame.get(ETHERNET_HEADER..).unwrap_or(&[]);
    if let Some(found) = layout(frame) {
        payload = frame.get(found.network..).unwrap_or(&[]);
        tags = found.tags;
        descriptor.tags = tags as u8;
        if tags > 0 {
            descriptor.cos = frame[14] >> 5;
        }
        descriptor.network_len = length(payload.len());
        match found.ethertype {
            ETHERTYPE_IPV4 => ipv4(payload, &mut descriptor),
            ETHERTYPE_IPV6 => ipv6(payload, &mut descriptor),
            _ => {}
        }
        if descriptor.network == Network::Other {
            descriptor.flow = mix(u64::from(found.ethertype) | (1 << 32));
        } else {
            descriptor.flow = flow_key(&descriptor);
        }
    }
    if descriptor.network == Network::Other {
        descriptor.network_len = length(payload.len());
    }
    let (counted, line) = framed(descriptor.network_len, tags, framing);
    descriptor.counted_len = counted;
    descriptor.line_len = line;
    descriptor
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX / 2)
}

fn ipv4(packet: &[u8], descriptor: &mut Descriptor) {
    let Some(header) = packet.get(..20) else { return };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 || packet.len() < header_len {
        return;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // Ethernet pads short packets, so that the header's length is the one that counts; where it cannot be true the bytes at hand do.
    let packet = if (header_len..=packet.len()).contains(&total) { &packet[..total] } else { packet };
    descriptor.network = Network::Ipv4;
    descriptor.network_len = length(packet.len());
    descriptor.dscp = header[1] >> 2;
    descriptor.protocol = header[9];
    descriptor.source = IpAddr::V4(Ipv4Addr::new(header[12], header[13], header[14], header[15]));
    descriptor.destination = IpAddr::V4(Ipv4Addr::new(header[16], header[17], header[18], header[19]));
    descriptor.later_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    if !descriptor.later_fragment {
        transport(&packet[header_len..], descriptor);
    }
}

fn ipv6(packet: &[u8], descriptor: &mut Descriptor) {
    let Some(header) = packet.get(..40) else { return };
    if header[0] >> 4 != 6 {
        return;
    }
    let total = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = if (41..=packet.len()).contains(&total) { &packet[..total] } else { packet };
    descriptor.network = Network::Ipv6;
    descriptor.network_len = length(packet.len());
    descriptor.dscp = ((header[0] << 4) | (header[1] >> 4)) >> 2;
    descriptor.source = ipv6_address(header, 8);
    descriptor.destination = ipv6_address(header, 24);
    let mut next = header[6];
    let mut at = 40;
    for _ in 0..MAX_EXTENSION_HEADERS {
        let len = match next {
            // Hop-by-hop, routing, destination options.
            0 | 43 | 60 => match packet.get(at + 1) {
                Some(&units) => (usize::from(units) + 1) * 8,
                None => break,
            },
            // Fragment.
            44 => {
                if u16_at(packet, at + 2).is_some_and(|field| field & 0xfff8 != 0) {
                    descriptor.later_fragment = true;
                }
                8
            }
            // Authentication.
            51 => match packet.get(at + 1) {
                Some(&units) => (usize::from(units) + 2) * 4,
                None => break,
            },
            _ => break,
        };
        match packet.get(at) {
            Some(&following) => next = following,
            None => break,
        }
        at += len;
        if descriptor.later_fragment {
            break;
        }
    }
    descriptor.protocol = next;
    if !descriptor.later_fragment {
        transport(packet.get(at..).unwrap_or(&[]), descriptor);
    }
}

fn ipv6_address(header: &[u8], at: usize) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&header[at..at + 16]);
    IpAddr::V6(Ipv6Addr::from(octets))
}

fn transport(segment: &[u8], descriptor: &mut Descriptor) {
    match descriptor.protocol {
        protocol::TCP | protocol::UDP => {
            descriptor.source_port = u16_at(segment, 0);
            descriptor.destination_port = u16_at(segment, 2);
            if descriptor.protocol == protocol::TCP {
                const ACK_OR_RST: u8 = 0x14;
                descriptor.established = segment.get(13).is_some_and(|flags| flags & ACK_OR_RST != 0);
            }
        }
        protocol::ICMP | protocol::ICMPV6 => {
            if let [kind, code, ..] = *segment {
                descriptor.icmp = Some((kind, code));
            }
        }
        _ => {}
    }
}

/// A bijection that spreads every bit (the finaliser of SplitMix64).
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Key of a descriptor's flow, from its addresses, protocol and ports. [`parse`] has filled it in; who makes descriptors otherwise calls this.
pub fn flow_key(descriptor: &Descriptor) -> u64 {
    let words = |address: IpAddr| match address {
        IpAddr::V4(address) => (0, u64::from(u32::from(address))),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            ((bits >> 64) as u64, bits as u64)
        }
    };
    let (source_high, source_low) = words(descriptor.source);
    let (destination_high, destination_low) = words(descriptor.destination);
    let ports =
        (u64::from(descriptor.source_port.unwrap_or(0)) << 16) | u64::from(descriptor.destination_port.unwrap_or(0));
    [source_high, source_low, destination_high, destination_low, ports | (u64::from(descriptor.protocol) << 32)]
        .into_iter()
        .fold(0x9e37_79b9_7f4a_7c15, |key, word| mix(key ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// Writes a code point into a frame and keeps the IPv4 header checksum right (RFC 1624). Returns whether the frame changed.
///
/// A frame that [`parse`] does not take for IP is left alone.
pub fn rewrite_dscp(frame: &mut [u8], dscp: u8) -> bool {
    let Some(found) = layout(frame) else { return false };
    let Some(packet) = frame.get_mut(found.network..) else { return false };
    let dscp = dscp & 0x3f;
    match found.ethertype {
        ETHERTYPE_IPV4 if packet.len() >= 20 && packet[0] >> 4 == 4 && packet[0] & 0x0f >= 5 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            let tos = (dscp << 2) | packet[1] & 0x03;
            if tos == packet[1] {
                return false;
            }
            packet[1] = tos;
            let new = u16::from_be_bytes([packet[0], tos]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            true
        }
        ETHERTYPE_IPV6 if packet.len() >= 40 && packet[0] >> 4 == 6 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            let new = old & 0xf03f | (u16::from(dscp) << 6);
            packet[..2].copy_from_slice(&new.to_be_bytes());
            new != old
        }
        _ => false,
    }
}

/// Writes a class of service into the outermost VLAN tag. Returns whether the frame changed; one without a tag does not.
pub fn rewrite_cos(frame: &mut [u8], cos: u8) -> bool {
    match layout(frame) {
        Some(found) if found.tags > 0 => {
            let byte = frame[14] & 0x1f | ((cos & 0x07) << 5);
            let changed = byte != frame[14];
            frame[14] = byte;
            changed
        }
        _ => false,
    }
}
