//! Packets in transit: the properties for the engines ([`Descriptor`]) and for the ends. There are no payload bytes.

use std::net::IpAddr;

use qos_core::frame::flow_key;
use qos_core::wire::ethernet::Tag;
use qos_core::wire::{ip, protocol, Framing};
use qos_core::{Descriptor, Network, Time};

use crate::tcp::Segment;

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER: u32 = ip::IPV4_HEADER as u32;
/// Bytes of an IPv6 header without extensions.
pub const IPV6_HEADER: u32 = ip::IPV6_HEADER as u32;
/// Bytes of a UDP header.
pub const UDP_HEADER: u32 = ip::UDP_HEADER as u32;
/// Bytes of the longest IP packet on every link.
pub const MTU: u32 = 1500;
/// Time to live, or hop limit, of a packet that a host sends: Linux' default.
pub const INITIAL_TTL: u8 = 64;

/// Number of a packet in the [`Pool`], carried by the engines.
pub(crate) type PacketId = u32;

/// Direction of a packet of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the flow's source to its destination.
    Forward,
    /// Back.
    Backward,
}

impl Way {
    /// Returns the opposite direction.
    pub fn back(self) -> Way {
        match self {
            Way::Forward => Way::Backward,
            Way::Backward => Way::Forward,
        }
    }
}

/// Contents of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// A datagram of a flood, by the number of its stream among those of UDP.
    Udp { stream: u32, number: u64, sent: Time, payload: u32 },
    /// TCP segment.
    Tcp { transfer: u32, segment: Segment },
    /// Message of IP SLA; its bytes after the IP header, or with UDP after the UDP header, are in the [`Pool`].
    Message { protocol: u8, bytes: u32 },
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Stream of a flow's packet. A message has none.
    pub stream: u32,
    pub way: Way,
    /// Numbers of the source and destination addresses.
    pub source: u32,
    pub destination: u32,
    /// Whether the packet has an IPv6 header.
    pub ipv6: bool,
    /// Hop limit with IPv6.
    pub ttl: u8,
    /// Value set by the last hop.
    pub dscp: u8,
    /// Field of explicit congestion notification (RFC 3168).
    pub ecn: u8,
    /// VLAN tag on the present link.
    pub tag: Option<Tag>,
    pub source_port: u16,
    pub destination_port: u16,
    pub content: Content,
}

impl Packet {
    /// Returns the IP protocol.
    pub fn protocol(&self) -> u8 {
        match &self.content {
            Content::Udp { .. } => protocol::UDP,
            Content::Tcp { .. } => protocol::TCP,
            Content::Message { protocol, .. } => *protocol,
        }
    }

    /// Returns the number of bytes of the IP packet.
    pub fn length(&self) -> u32 {
        ip_header(self.ipv6)
            + match &self.content {
                Content::Udp { payload, .. } => UDP_HEADER + payload,
                Content::Tcp { segment, .. } => segment.header_bytes() + segment.len,
                Content::Message { protocol: protocol::UDP, bytes } => UDP_HEADER + bytes,
                Content::Message { bytes, .. } => *bytes,
            }
    }
}

/// Returns the number of bytes of an IP header.
pub(crate) fn ip_header(ipv6: bool) -> u32 {
    if ipv6 {
        IPV6_HEADER
    } else {
        IPV4_HEADER
    }
}

/// All packets of the network.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
    /// Bytes of messages, by packet; may be shorter than the packets.
    messages: Vec<Vec<u8>>,
}

impl Pool {
    #[inline]
    pub fn put(&mut self, packet: Packet) -> PacketId {
        match self.free.pop() {
            Some(id) => {
                self.packets[id as usize] = packet;
                id
            }
            None => {
                self.packets.push(packet);
                (self.packets.len() - 1) as PacketId
            }
        }
    }

    /// Returns a packet that carries a message.
    pub fn put_message(&mut self, packet: Packet, bytes: Vec<u8>) -> PacketId {
        let id = self.put(packet);
        let at = id as usize;
        if at >= self.messages.len() {
            self.messages.resize_with(at + 1, Vec::new);
        }
        self.messages[at] = bytes;
        id
    }

    /// Returns the message of a packet that carries one.
    pub fn message(&self, id: PacketId) -> &[u8] {
        self.messages.get(id as usize).map_or(&[], Vec::as_slice)
    }

    pub fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id as usize]
    }

    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// Frees the number of a packet that has arrived or is lost.
    pub fn release(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Returns the number of packets in transit.
    pub fn live(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}

/// Returns the description of a message between two addresses.
pub(crate) fn describe_message(
    packet: &Packet,
    message: &[u8],
    source: IpAddr,
    destination: IpAddr,
    framing: Framing,
) -> Descriptor {
    let protocol = packet.protocol();
    let udp = protocol == protocol::UDP;
    let mut descriptor = Descriptor {
        network: if packet.ipv6 { Network::Ipv6 } else { Network::Ipv4 },
        network_len: packet.length(),
        protocol,
        source,
        destination,
        source_port: udp.then_some(packet.source_port),
        destination_port: udp.then_some(packet.destination_port),
        icmp: message.get(..2).filter(|_| !udp).map(|start| (start[0], start[1])),
        dscp: packet.dscp,
        ecn: packet.ecn,
        ..Descriptor::UNKNOWN
    };
    descriptor.flow = flow_key(&descriptor);
    descriptor.framed(framing)
}

/// Returns the common properties of all packets of a stream in one direction.
pub(crate) fn descriptor(protocol: u8, source: (IpAddr, u16), destination: (IpAddr, u16)) -> Descriptor {
    let mut descriptor = Descriptor {
        network: if source.0.is_ipv6() { Network::Ipv6 } else { Network::Ipv4 },
        protocol,
        source: source.0,
        destination: destination.0,
        source_port: Some(source.1),
        destination_port: Some(destination.1),
        ..Descriptor::UNKNOWN
    };
    descriptor.flow = flow_key(&descriptor);
    descriptor
}

/// Returns the description of one packet, from that of its stream.
#[inline]
pub(crate) fn describe(stream: &Descriptor, packet: &Packet, framing: Framing) -> Descriptor {
    let established = matches!(&packet.content, Content::Tcp { segment, .. } if segment.has_ack);
    let (network_len, dscp, ecn) = (packet.length(), packet.dscp, packet.ecn);
    let mut descriptor = Descriptor { network_len, dscp, ecn, established, ..*stream };
    if descriptor.destination_port != Some(packet.destination_port) {
        descriptor.destination_port = Some(packet.destination_port);
        descriptor.flow = flow_key(&descriptor);
    }
    descriptor.framed(framing)
}
