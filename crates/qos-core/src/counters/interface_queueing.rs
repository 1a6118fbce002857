//! What queueing without a policy-map counts.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::counters::count::Count;
use crate::counters::queue::ShapeCounters;

/// A queue of `priority-group` (0 is high, 3 low) or of `custom-queue-list` (0 is the system's).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct NumberedQueueCounters {
    /// Its number.
    pub number: u8,
    /// Packets now.
    pub depth_packets: u64,
    /// Most packets; 0: no limit.
    pub limit_packets: u32,
    /// What it dropped.
    pub drops: Count,
    /// What left it.
    pub output: Count,
}

/// A shaper of `traffic-shape` with its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct InterfaceShaperCounters {
    /// The shaper.
    pub shape: ShapeCounters,
    /// Packets that wait for it.
    pub depth_packets: u64,
    /// Most packets that may.
    pub limit_packets: u32,
    /// What its queue dropped.
    pub drops: Count,
    /// Conversations with packets.
    pub conversations: u32,
    /// Most conversations.
    pub max_conversations: u32,
}
