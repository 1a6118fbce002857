//! Queueing of an interface without a policy-map: generic traffic shaping, priority and custom queueing.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::defaults::{CUSTOM_BYTE_COUNT, CUSTOM_QUEUE_LIMIT, GTS_BUFFERS, PRIORITY_LIST_LIMITS};
use crate::config::policy::ShapeConfig;
use crate::config::tree::TreeNode;

/// Number of queues of `custom-queue-list`, including that of the system (0).
pub const CUSTOM_QUEUES: usize = 17;

/// Number of queues of `priority-group`, from high to low.
pub const PRIORITY_QUEUES: usize = 4;

/// Queueing of an interface without a policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "type", rename_all = "snake_case", deny_unknown_fields))]
pub enum InterfaceQueueing {
    /// `traffic-shape`: packets that a shaper releases share the line with unshaped ones.
    Shaped {
        /// Shapers in order; the first matching one delays a packet.
        shapers: Vec<InterfaceShaper>,
    },
    /// `priority-group`: a queue is served when those before it are empty.
    Priority {
        /// Rules in order; the first matching one decides.
        rules: Vec<QueueRule>,
        /// Queue of all other packets: 0 is high, 3 low.
        #[cfg_attr(feature = "serde", serde(default = "default_priority_queue"))]
        default: u8,
        /// Maximum number of packets of the four queues, from high to low; 0: no limit.
        #[cfg_attr(feature = "serde", serde(default = "default_priority_limits"))]
        limits: [u32; PRIORITY_QUEUES],
    },
    /// `custom-queue-list`: queues take turns, each until it has sent its byte count.
    Custom {
        /// Rules in order; the first matching one decides.
        rules: Vec<QueueRule>,
        /// Queue of all other packets, 0 to 16.
        #[cfg_attr(feature = "serde", serde(default = "default_custom_queue"))]
        default: u8,
        /// First queue that takes turns, 1 to 16; those before it are served ahead of all others, in order.
        #[cfg_attr(feature = "serde", serde(default = "default_custom_queue"))]
        lowest: u8,
        /// Queues with values other than the default.
        #[cfg_attr(feature = "serde", serde(default))]
        queues: Vec<CustomQueue>,
    },
    /// Classes and queues as built by Linux `tc`.
    Tree {
        /// Parents come before their children.
        nodes: Vec<TreeNode>,
        /// Rules in order; the first matching one decides. Queues are numbers of nodes, from 0.
        #[cfg_attr(feature = "serde", serde(default))]
        rules: Vec<QueueRule>,
        /// Node of all other packets.
        #[cfg_attr(feature = "serde", serde(default))]
        default: u8,
    },
}

/// Shaper of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct InterfaceShaper {
    /// Access list of the shaped packets; null for all.
    pub access_list: Option<String>,
    /// Rate and bursts.
    pub shape: ShapeConfig,
    /// Maximum number of packets in its queue.
    #[cfg_attr(feature = "serde", serde(default = "default_buffers"))]
    pub buffers: u32,
}

/// Criteria of packets for a queue; a packet must match all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct QueueRule {
    /// The queue.
    pub queue: u8,
    /// Packets of this network layer.
    pub protocol: Option<QueuedProtocol>,
    /// Packets that arrived at this interface, by IOS name.
    pub interface: Option<String>,
    /// Packets that the access list permits.
    pub access_list: Option<String>,
    /// Packets with more counted bytes.
    pub larger_than: Option<u32>,
    /// Packets with fewer counted bytes.
    pub smaller_than: Option<u32>,
    /// Fragments other than the first.
    #[cfg_attr(feature = "serde", serde(default))]
    pub fragments: bool,
    /// Packets with this port at either end.
    pub port: Option<QueuedPort>,
}

/// Network layer by which packets are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum QueuedProtocol {
    /// IPv4.
    Ip,
    /// IPv6.
    Ipv6,
    /// Neither: all other packets, which the engine does not distinguish.
    Other,
}

/// Port by which packets are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct QueuedPort {
    /// IP protocol number: TCP (6) or UDP (17).
    pub protocol: u8,
    /// The port.
    pub number: u16,
}

/// Queue that takes turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct CustomQueue {
    /// 0 to 16.
    pub number: u8,
    /// Maximum number of packets; 0: no limit.
    #[cfg_attr(feature = "serde", serde(default = "default_custom_limit"))]
    pub limit: u32,
    /// Bytes per turn, 1 to 16 777 215.
    #[cfg_attr(feature = "serde", serde(default = "default_byte_count"))]
    pub byte_count: u32,
}

impl CustomQueue {
    /// Returns a queue with the default values.
    pub fn new(number: u8) -> CustomQueue {
        CustomQueue { number, limit: CUSTOM_QUEUE_LIMIT, byte_count: CUSTOM_BYTE_COUNT }
    }
}

#[cfg(feature = "serde")]
fn default_buffers() -> u32 {
    GTS_BUFFERS
}

#[cfg(feature = "serde")]
fn default_priority_queue() -> u8 {
    2
}

#[cfg(feature = "serde")]
fn default_priority_limits() -> [u32; PRIORITY_QUEUES] {
    PRIORITY_LIST_LIMITS
}

#[cfg(feature = "serde")]
fn default_custom_queue() -> u8 {
    1
}

#[cfg(feature = "serde")]
fn default_custom_limit() -> u32 {
    CUSTOM_QUEUE_LIMIT
}

#[cfg(feature = "serde")]
fn default_byte_count() -> u32 {
    CUSTOM_BYTE_COUNT
}
