//! Counters of queues, shapers and random early detection.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::policy::ShapeMode;
use crate::config::queueing::RandomDetectBasis;
use crate::counters::count::Count;

/// Queue that priority classes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct PriorityQueueCounters {
    /// 1 is served before 2.
    pub level: u8,
    /// Maximum number of packets; 0 if the limit is in bytes.
    pub limit_packets: u32,
    /// Maximum number of bytes, if the limit is in bytes or time.
    pub limit_bytes: Option<u32>,
    /// Typed time.
    pub limit_ms: Option<u32>,
    /// Typed time in microseconds.
    pub limit_us: Option<u32>,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now, if the limit is in bytes or time.
    pub depth_bytes: Option<u64>,
    /// Packets dropped by the queue (those of conditional policers count for the classes).
    pub drops: Count,
    /// Sent packets.
    pub output: Count,
}

/// Random early detection of a class.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct RandomDetectCounters {
    /// Field of a packet that selects the thresholds.
    pub basis: RandomDetectBasis,
    /// Exponential weighting constant.
    pub exponential_weight: u8,
    /// Whether mean depth and thresholds are in counted bytes instead of packets.
    pub in_bytes: bool,
    /// Mean depth.
    pub mean_depth: f64,
    /// Packets marked as having met congestion; null if none can be.
    pub ecn_mark: Option<Count>,
    /// All precedences, or the code points seen.
    pub classes: Vec<RandomDetectRow>,
}

/// Random early detection of one precedence or code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct RandomDetectRow {
    /// Precedence or code point.
    pub value: u8,
    /// Packets that left the queue.
    pub transmitted: Count,
    /// Packets dropped at random.
    pub random_drop: Count,
    /// Packets dropped above the maximum threshold, or by the limit of the queue or of the flow.
    pub tail_drop: Count,
    /// Packets marked as having met congestion instead of dropped at random.
    pub ecn_mark: Count,
    /// Minimum threshold.
    pub min: u32,
    /// Maximum threshold.
    pub max: u32,
    /// Just below the maximum threshold one packet in this many is dropped.
    pub denominator: u32,
}

/// Shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ShapeCounters {
    /// Average or peak.
    pub mode: ShapeMode,
    /// Committed rate.
    pub cir_bps: u64,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// Effective rate: committed, or with `peak` CIR × (1 + Be/Bc).
    pub target_bps: u64,
    /// Committed burst.
    pub bc_bits: u64,
    /// Excess burst.
    pub be_bits: u64,
    /// Interval, in whole milliseconds.
    pub interval_ms: u64,
    /// Maximum credit, bytes.
    pub byte_limit: u64,
    /// Credit added per interval, bytes.
    pub increment_bytes: u64,
    /// Current credit, bits; negative after a packet longer than the bursts.
    pub credit_bits: i64,
    /// Maximum credit, bits.
    pub credit_limit_bits: u64,
    /// Packets are waiting.
    pub active: bool,
    /// Sent packets.
    pub sent: Count,
    /// Sent packets that had waited.
    pub delayed: Count,
}

/// Queueing discipline of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum DisciplineName {
    /// First in, first out.
    Fifo,
    /// Classic weighted fair queueing.
    WeightedFair,
    /// Equal bytes for each flow.
    FairQueue,
    /// Active queue management.
    Managed,
}

/// Queue of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ClassQueueCounters {
    /// Queueing discipline.
    pub discipline: DisciplineName,
    /// Maximum number of packets; null if the limit is in bytes.
    pub limit_packets: Option<u32>,
    /// Counted bytes at which no further packet is accepted; null if the limit is in packets.
    pub limit_bytes: Option<u32>,
    /// Time equivalent of those bytes, if the limit is a time.
    pub limit_ms: Option<u32>,
    /// Time equivalent in microseconds.
    pub limit_us: Option<u32>,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now.
    pub depth_bytes: u64,
    /// Packets that are in the transmit ring and not sent yet, which the later generation includes in the depth: of the
    /// class and its children; 0 for a child class, whose displayed depth excludes them, and in the classic generation.
    pub in_ring_packets: u64,
    /// Maximum number of packets of one flow; null if flows have no separate limit.
    pub per_flow_limit: Option<u32>,
    /// Flow queues with packets.
    pub flows: Option<u32>,
    /// Flow queues.
    pub max_flows: Option<u32>,
    /// Packets that left the queue.
    pub output: Count,
    /// Number of its conversation (classic).
    pub conversation: Option<u32>,
    /// Packets that could not go directly to the transmit ring.
    pub congested: Count,
}
