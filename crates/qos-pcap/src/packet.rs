//! Packet properties for the analysis: its flow, fields that routers change, and its identity.

use std::net::IpAddr;

use qos_core::frame::{parse, Descriptor, Network};
use qos_core::wire::ethernet::{ethertype, Layout, ADDRESSES};
use qos_core::wire::ip::{Ipv4, Ipv6, IPV6_HEADER, UDP_HEADER};
use qos_core::wire::{protocol, Framing};
use twox_hash::XxHash3_64;

use crate::capture::Packet;
use crate::link::Link;

/// Offset in a TCP segment of the octet with the header length.
const TCP_DATA_OFFSET: usize = 12;

/// Properties of a packet. Missing numbers are -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// IP version: 4 or 6.
    pub version: i8,
    /// Bytes of the IP packet, as its header says.
    pub network_bytes: i32,
    /// Type of service or traffic class: DSCP and ECN.
    pub tos: i16,
    /// Time to live or hop limit.
    pub ttl: i16,
    /// Identifier of the outermost VLAN tag.
    pub vlan: i16,
    /// IP protocol; with IPv6, that after the extension headers.
    pub protocol: i16,
    /// Halves of the addresses, with the bits of unsigned numbers; the upper ones are 0 for IPv4.
    pub source_high: i64,
    /// See above.
    pub source: i64,
    /// See above.
    pub destination_high: i64,
    /// See above.
    pub destination: i64,
    /// TCP and UDP, in the first fragment only.
    pub source_port: i32,
    /// See above.
    pub destination_port: i32,
    /// Bytes of TCP or UDP payload of the original packet, if the header was captured; not after extension headers.
    pub payload: i32,
    /// TCP sequence number of its first byte, under the same condition.
    pub sequence: i64,
    /// Identity of the packet across routers: a hash of the fields that they leave unchanged, almost unique. 0 without
    /// an IP packet.
    pub identity: i64,
    /// Number of captured bytes after the IP header, among those that `identity` covers; -1 if all were captured.
    pub behind: i16,
}

impl Facts {
    /// Facts of a frame without an IP packet.
    pub const NOT_IP: Facts = Facts {
        version: -1,
        network_bytes: -1,
        tos: -1,
        ttl: -1,
        vlan: -1,
        protocol: -1,
        source_high: -1,
        source: -1,
        destination_high: -1,
        destination: -1,
        source_port: -1,
        destination_port: -1,
        payload: -1,
        sequence: -1,
        identity: 0,
        behind: -1,
    };
}

/// Describes a packet. Its identity covers `behind` bytes after the IP header; `room` is a reusable buffer of the
/// caller.
pub fn describe(Packet { link, frame, length, .. }: Packet<'_>, behind: usize, room: &mut Vec<u8>) -> Facts {
    let Some((ethertype, start)) = link.network(frame) else { return Facts::NOT_IP };
    // The capture may have saved any part of the packet.
    let (packet, whole) = (&frame[start..], (length as usize).max(frame.len()) - start);
    let plain = link == Link::Ethernet && Layout::of(frame).is_some_and(|found| found.network == start);
    let descriptor = if plain {
        parse(frame, Framing::Ethernet)
    } else {
        // The engine's parser knows frames of Ethernet.
        room.clear();
        room.resize(ADDRESSES, 0);
        room.extend_from_slice(&ethertype.to_be_bytes());
        room.extend_from_slice(packet);
        parse(room, Framing::Ethernet)
    };
    let vlan = if descriptor.tags > 0 { descriptor.vlan as i16 } else { -1 };
    let facts = match ethertype {
        ethertype::IPV4 => ipv4(packet, whole, &descriptor, (room, behind)),
        ethertype::IPV6 => ipv6(packet, whole, &descriptor, (room, behind)),
        _ => None,
    };
    Facts { vlan, ..facts.unwrap_or(Facts::NOT_IP) }
}

/// Input of an identity: its buffer, and the number of bytes after the IP header that belong to it.
type Identity<'a> = (&'a mut Vec<u8>, usize);

fn ipv4(packet: &[u8], whole: usize, descriptor: &Descriptor, identity: Identity<'_>) -> Option<Facts> {
    let header = Ipv4::of(packet)?;
    let stated = header.total_len();
    // Segmentation offload leaves 0 there.
    let total = if stated < header.len { whole } else { stated };
    // Identification, and the parts of flags and offset that distinguish fragments.
    identity.0.clear();
    identity.0.extend([packet[4], packet[5], packet[6] & 0x3f, packet[7]]);
    let sum = (!header.later_fragment()).then_some(header.protocol());
    Some(facts(packet, (header.len, total), descriptor, sum, identity))
}

fn ipv6(packet: &[u8], whole: usize, descriptor: &Descriptor, identity: Identity<'_>) -> Option<Facts> {
    let header = Ipv6::of(packet)?;
    let stated = header.total_len();
    let total = if stated == IPV6_HEADER { whole } else { stated };
    identity.0.clear();
    identity.0.extend(header.flow_label());
    Some(facts(packet, (IPV6_HEADER, total), descriptor, Some(header.next_header()), identity))
}

fn facts(
    packet: &[u8],
    (header, total): (usize, usize),
    descriptor: &Descriptor,
    directly: Option<u8>,
    (identity, behind): Identity<'_>,
) -> Facts {
    let wanted = behind.min(total - header);
    let kept = packet.len().min(total) - header;
    let above = &packet[header..header + wanted.min(kept)];
    // Checksums of packets sent by the capturing host are often not calculated yet.
    let sum = match directly {
        Some(protocol::TCP) => 16..18,
        Some(protocol::UDP) => 6..8,
        _ => 0..0,
    };
    identity.extend_from_slice(&above[..sum.start.min(above.len())]);
    identity.extend_from_slice(above.get(sum.end..).unwrap_or(&[]));
    let [(source_high, source), (destination_high, destination)] =
        [descriptor.source, descriptor.destination].map(halves);
    for word in [source_high, source, destination_high, destination] {
        identity.extend(word.to_le_bytes());
    }
    identity.extend((total as u64 | (u64::from(descriptor.protocol) << 32)).to_le_bytes());
    let (source_port, destination_port) = match (descriptor.source_port, descriptor.destination_port) {
        (Some(source), Some(destination)) => (source.into(), destination.into()),
        _ => (-1, -1),
    };
    let (payload, sequence) = payload(packet.get(header..).unwrap_or(&[]), total - header, directly, source_port >= 0);
    let version = if descriptor.network == Network::Ipv6 { 6 } else { 4 };
    Facts {
        version,
        network_bytes: i32::try_from(total).unwrap_or(i32::MAX),
        tos: i16::from((descriptor.dscp << 2) | descriptor.ecn),
        ttl: i16::from(packet[if version == 6 { 7 } else { 8 }]),
        vlan: -1,
        protocol: descriptor.protocol.into(),
        source_high,
        source,
        destination_high,
        destination,
        source_port,
        destination_port,
        payload,
        sequence,
        identity: XxHash3_64::oneshot(identity) as i64,
        behind: if kept < wanted { kept as i16 } else { -1 },
    }
}

/// Returns the payload bytes and TCP sequence number of a segment of `total` bytes, with known or unknown ports.
fn payload(segment: &[u8], total: usize, directly: Option<u8>, ports: bool) -> (i32, i64) {
    let less = |header: usize| i32::try_from(total as i64 - header as i64).unwrap_or(i32::MAX);
    match directly {
        Some(protocol::UDP) if ports => (less(UDP_HEADER), -1),
        Some(protocol::TCP) if ports && segment.len() > TCP_DATA_OFFSET => {
            let number = segment[4..8].iter().fold(0, |number, byte| (number << 8) | i64::from(*byte));
            (less(usize::from(segment[TCP_DATA_OFFSET] >> 4) * 4), number)
        }
        _ => (-1, -1),
    }
}

fn halves(address: IpAddr) -> (i64, i64) {
    match address {
        IpAddr::V4(address) => (0, u32::from(address).into()),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            ((bits >> 64) as i64, bits as i64)
        }
    }
}
