//! Properties of a frame known to the engine: [`Descriptor`], parsed from the bytes of an Ethernet frame by [`parse`].
//!
//! Frames come from a network, so they are not trusted: lengths are checked, and a malformed frame is described as not
//! IP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::frame::label::Label;
use crate::frame::port_number::PortId;
use crate::wire::bytes::u16_at;
use crate::wire::ethernet::{self, ethertype, Layout};
use crate::wire::framing::{framed, Framing};
use crate::wire::ip::{ecn, ports, protocol, Ipv4, Ipv6, IPV6_HEADER};

/// Maximum number of parsed extension headers.
const MAX_EXTENSION_HEADERS: usize = 8;

/// Fields of a packet's IP header that are not in a descriptor: identification and time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderRest {
    /// Identification; of IPv6 0.
    pub id: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
}

/// Returns the header fields of an Ethernet frame that are not in its descriptor; 0 without an IP packet.
pub fn header_rest(frame: &[u8]) -> HeaderRest {
    let rest = Layout::of(frame).and_then(|layout| {
        let packet = frame.get(layout.network..)?;
        match layout.ethertype {
            ethertype::IPV4 => {
                Ipv4::of(packet).map(|ip| HeaderRest { id: u16::from_be_bytes(ip.identification()), ttl: ip.ttl() })
            }
            ethertype::IPV6 => Ipv6::of(packet).map(|ip| HeaderRest { id: 0, ttl: ip.hop_limit() }),
            _ => None,
        }
    });
    rest.unwrap_or_default()
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

/// Properties of a frame known to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The network layer.
    pub network: Network,
    /// Length of the IP packet in bytes (of the frame's payload if it is not IP).
    pub network_len: u32,
    /// Bytes that counters, policers, shapers and queues count: IP packet plus layer-2 header (Ethernet 14, each VLAN
    /// tag 4 more, PPP and HDLC 4, others as [`crate::wire::counted_header`] says).
    pub counted_len: u32,
    /// Bytes that the frame takes on the wire: Ethernet 38 above the IP packet and padding, PPP and HDLC 7, on ATM 53 a
    /// cell.
    pub line_len: u32,
    /// Differentiated services code point, 0 to 63. The engine rewrites this; the caller applies it with
    /// [`crate::frame::rewrite_dscp`].
    pub dscp: u8,
    /// Explicit congestion notification, 0 to 3 (RFC 3168; see [`crate::wire::ip::ecn`]). The engine rewrites this; the
    /// caller applies it with [`crate::frame::rewrite_ecn`].
    pub ecn: u8,
    /// Class of service of the outermost VLAN tag, 0 to 7; 0 without a tag. The engine rewrites this; the caller
    /// applies it with [`crate::frame::rewrite_cos`].
    pub cos: u8,
    /// VLAN tags.
    pub tags: u8,
    /// VLAN of the outermost tag; 0 without a tag, and for a priority tag.
    pub vlan: u16,
    /// Label of the frame inside a switch. The engine sets it in `receive`; the caller carries it from
    /// [`crate::frame::port_number::Side::Inside`] to [`crate::engine::Engine::transmit`].
    pub label: Option<Label>,
    /// The router's own group number. The engine's input policy sets it; the caller carries it from
    /// [`crate::frame::port_number::Side::Inside`] to [`crate::engine::Engine::transmit`].
    pub qos_group: u16,
    /// The router's discard class, 0 to 7. Set and carried like the group number.
    pub discard_class: u8,
    /// The port by which the packet entered the router. The engine sets it in `receive`; the caller passes it on.
    pub input_port: Option<PortId>,
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
    /// Key of the flow: a hash of addresses, protocol and ports without a seed. Fair queueing adds its own seed.
    pub flow: u64,
}

impl Descriptor {
    /// Descriptor of an unknown frame.
    pub const UNKNOWN: Descriptor = Descriptor {
        network: Network::Other,
        network_len: 0,
        counted_len: 0,
        line_len: 0,
        dscp: 0,
        ecn: ecn::NOT_ECT,
        cos: 0,
        tags: 0,
        vlan: 0,
        label: None,
        qos_group: 0,
        discard_class: 0,
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

    /// Returns an IPv4 packet of `network_len` bytes from one address and port to another, as [`parse`] would describe
    /// its frame on a link with `framing`.
    pub fn ipv4(
        protocol: u8,
        (source, source_port): (Ipv4Addr, u16),
        (destination, destination_port): (Ipv4Addr, u16),
        network_len: u32,
        framing: Framing,
    ) -> Descriptor {
        let mut descriptor = Descriptor {
            network: Network::Ipv4,
            network_len,
            protocol,
            source: IpAddr::V4(source),
            destination: IpAddr::V4(destination),
            source_port: Some(source_port),
            destination_port: Some(destination_port),
            ..Descriptor::UNKNOWN
        };
        descriptor.flow = flow_key(&descriptor);
        descriptor.framed(framing)
    }

    /// Returns the IP precedence, 0 to 7.
    pub fn precedence(&self) -> u8 {
        self.dscp >> 3
    }

    /// Returns whether the frame carries IPv4 or IPv6.
    pub fn is_ip(&self) -> bool {
        self.network != Network::Other
    }

    /// Returns the same packet with its lengths on a link with `framing`, as [`parse`] would describe its frame there.
    #[inline]
    #[must_use]
    pub fn framed(mut self, framing: Framing) -> Descriptor {
        (self.counted_len, self.line_len) = framed(self.network_len, usize::from(self.tags), framing);
        self
    }

    /// Returns the same packet on a link with Ethernet framing behind the tag of a VLAN with that class of service, or
    /// without a tag.
    #[must_use]
    pub fn tagged(mut self, vlan: Option<u16>, cos: u8) -> Descriptor {
        self.tags = u8::from(vlan.is_some());
        self.vlan = vlan.unwrap_or(0);
        self.cos = vlan.map_or(0, |_| cos & 7);
        self.framed(Framing::Ethernet)
    }
}

/// Describes an Ethernet frame (without the FCS) with its lengths on a link with `framing`.
///
/// Any bytes are accepted, even none. The frame may be longer than the link allows (segmentation offload); its lengths
/// are then those of the given bytes.
pub fn parse(frame: &[u8], framing: Framing) -> Descriptor {
    let mut descriptor = Descriptor::UNKNOWN;
    describe(frame, framing, &mut descriptor);
    descriptor
}

/// Writes the description of a frame to `descriptor`. A separate function, so that the result is not copied.
#[inline(never)]
fn describe(frame: &[u8], framing: Framing, descriptor: &mut Descriptor) {
    let mut tags = 0;
    let mut payload = frame.get(ethernet::HEADER..).unwrap_or(&[]);
    if let Some(found) = Layout::of(frame) {
        payload = frame.get(found.network..).unwrap_or(&[]);
        tags = found.tags;
        descriptor.tags = tags as u8;
        if tags > 0 {
            descriptor.cos = frame[ethernet::HEADER] >> 5;
            descriptor.vlan = u16_at(frame, ethernet::HEADER).unwrap_or(0) & 0x0fff;
        }
        descriptor.network_len = length(payload.len());
        match found.ethertype {
            ethertype::IPV4 => ipv4(payload, descriptor),
            ethertype::IPV6 => ipv6(payload, descriptor),
            _ => {}
        }
        if descriptor.network == Network::Other {
            descriptor.flow = mix(u64::from(found.ethertype) | (1 << 32));
        }
    }
    if descriptor.network == Network::Other {
        descriptor.network_len = length(payload.len());
    }
    let (counted, line) = framed(descriptor.network_len, tags, framing);
    descriptor.counted_len = counted;
    descriptor.line_len = line;
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX / 2)
}

fn ipv4(packet: &[u8], descriptor: &mut Descriptor) {
    let Some(header) = Ipv4::of(packet) else { return };
    let total = header.total_len();
    // Ethernet pads short packets, so the length in the header counts; if it cannot be true, the received bytes count.
    let packet = if (header.len..=packet.len()).contains(&total) { &packet[..total] } else { packet };
    descriptor.network = Network::Ipv4;
    descriptor.network_len = length(packet.len());
    descriptor.dscp = header.dscp();
    descriptor.ecn = header.ecn();
    descriptor.protocol = header.protocol();
    descriptor.source = IpAddr::V4(header.source());
    descriptor.destination = IpAddr::V4(header.destination());
    descriptor.later_fragment = header.later_fragment();
    if !descriptor.later_fragment {
        transport(&packet[header.len..], descriptor);
    }
    let halves = |address: Ipv4Addr| (0, u64::from(u32::from(address)));
    descriptor.flow = key_of(halves(header.source()), halves(header.destination()), descriptor);
}

fn ipv6(packet: &[u8], descriptor: &mut Descriptor) {
    let Some(header) = Ipv6::of(packet) else { return };
    let total = header.total_len();
    // A payload length of 0 with hop-by-hop options may belong to a jumbogram (RFC 2675), whose options give the
    // length.
    let stated = total > IPV6_HEADER || header.next_header() != 0;
    let packet = if stated && total <= packet.len() { &packet[..total] } else { packet };
    descriptor.network = Network::Ipv6;
    descriptor.network_len = length(packet.len());
    descriptor.dscp = header.dscp();
    descriptor.ecn = header.ecn();
    descriptor.source = IpAddr::V6(header.source());
    descriptor.destination = IpAddr::V6(header.destination());
    let mut next = header.next_header();
    let mut at = IPV6_HEADER;
    for _ in 0..MAX_EXTENSION_HEADERS {
        let len = match next {
            // Hop-by-hop, routing, destination options, mobility, host identity, shim6 (RFC 8200, 6275, 7401, 5533).
            0 | 43 | 60 | 135 | 139 | 140 => match packet.get(at + 1) {
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
    descriptor.flow = key_of(halves(header.source()), halves(header.destination()), descriptor);
}

fn transport(segment: &[u8], descriptor: &mut Descriptor) {
    match descriptor.protocol {
        protocol::TCP | protocol::UDP => {
            (descriptor.source_port, descriptor.destination_port) = ports(segment);
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

/// Returns a bijection that spreads every bit (the finaliser of SplitMix64).
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the key of a descriptor's flow, from its addresses, protocol and ports. [`parse`] fills it in; code that
/// creates descriptors otherwise calls this.
pub fn flow_key(descriptor: &Descriptor) -> u64 {
    let words = |address: IpAddr| match address {
        IpAddr::V4(address) => (0, u64::from(u32::from(address))),
        IpAddr::V6(address) => halves(address),
    };
    key_of(words(descriptor.source), words(descriptor.destination), descriptor)
}

fn halves(address: Ipv6Addr) -> (u64, u64) {
    let bits = u128::from(address);
    ((bits >> 64) as u64, bits as u64)
}

/// Returns the key of a flow between addresses with known halves. Inlined, so that the compiler can evaluate the first
/// half of an IPv4 address, which is 0.
#[inline(always)]
fn key_of(source: (u64, u64), destination: (u64, u64), descriptor: &Descriptor) -> u64 {
    let ports = match (descriptor.source_port, descriptor.destination_port) {
        _ if mistaken!(FlowsByAddress) => 0,
        (source, destination) => (u64::from(source.unwrap_or(0)) << 16) | u64::from(destination.unwrap_or(0)),
    };
    [source.0, source.1, destination.0, destination.1, ports | (u64::from(descriptor.protocol) << 32)]
        .into_iter()
        .fold(0x9e37_79b9_7f4a_7c15, |key, word| mix(key ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of SplitMix64 from 0 on, as its authors print them.
    #[test]
    fn hash_mixing_equals_splitmix64() {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        for (number, spread) in [(1, 0xe220_a839_7b1d_cdaf), (2, 0x6e78_9e6a_a1b9_65f4), (3, 0x06c4_5d18_8009_454f)] {
            assert_eq!(mix(GOLDEN.wrapping_mul(number)), spread);
        }
    }

    /// A frame that is not IP is a flow by its EtherType, which no IP packet's key begins with.
    #[test]
    fn other_frames_are_a_flow_by_ethertype() {
        let mut arp = [0; 60];
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(parse(&arp, Framing::Ethernet).flow, mix(0x1_0000_0806));
    }
}
