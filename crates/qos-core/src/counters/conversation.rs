//! Counters of a conversation of classic weighted fair queueing.

use std::net::IpAddr;

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Conversation of an interface with waiting packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ConversationCounters {
    /// Number.
    pub number: u32,
    /// Packets now.
    pub depth_packets: u64,
    /// Factor of the bytes of its next packet: the smaller, the sooner it leaves.
    pub weight: u64,
    /// Dropped packets.
    pub drops: u64,
    /// Next packet.
    pub head: HeadPacket,
}

/// Packet that a conversation sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct HeadPacket {
    /// Counted bytes.
    pub bytes: u32,
    /// Fields of its IP header; null if it has none.
    pub ip: Option<HeadIp>,
}

/// Fields of the packet's IP header, and its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct HeadIp {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Identification; 0 for IPv6.
    pub id: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Type of service, or traffic class.
    pub tos: u8,
    /// IP protocol.
    pub protocol: u8,
    /// Source port of TCP or UDP; null in fragments other than the first.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
}
