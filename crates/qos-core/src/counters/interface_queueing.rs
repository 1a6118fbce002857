//! Counters of queueing without a policy-map.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::counters::count::Count;
use crate::counters::queue::ShapeCounters;

/// Queue of `priority-group` (0 is high, 3 low) or of `custom-queue-list` (0 is that of the system).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct NumberedQueueCounters {
    /// Number.
    pub number: u8,
    /// Packets now.
    pub depth_packets: u64,
    /// Maximum number of packets; 0: no limit.
    pub limit_packets: u32,
    /// Dropped packets.
    pub drops: Count,
    /// Sent packets.
    pub output: Count,
}

/// Shaper of `traffic-shape` with its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct InterfaceShaperCounters {
    /// Shaper.
    pub shape: ShapeCounters,
    /// Packets waiting for it.
    pub depth_packets: u64,
    /// Maximum number of waiting packets.
    pub limit_packets: u32,
    /// Packets dropped by its queue.
    pub drops: Count,
    /// Conversations with packets.
    pub conversations: u32,
    /// Maximum number of conversations.
    pub max_conversations: u32,
}
