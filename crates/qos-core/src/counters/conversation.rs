//! What is told of a conversation of classic weighted fair queueing.

use std::net::IpAddr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A conversation of an interface that has packets waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ConversationCounters {
    /// Its number.
    pub number: u32,
    /// Packets now.
    pub depth_packets: u64,
    /// By which the bytes of its next packet are multiplied: the less, the sooner it leaves.
    pub weight: u64,
    /// Packets that it lost.
    pub drops: u64,
    /// Its next packet.
    pub head: HeadPacket,
}

/// The packet that a conversation sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HeadPacket {
    /// Counted bytes.
    pub bytes: u32,
    /// What its IP header says; null where it has none.
    pub ip: Option<HeadIp>,
}

/// Fields of the packet's IP header, and its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HeadIp {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Identification; of IPv6 0.
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
