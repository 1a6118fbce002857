//! What queues, shapers and random early detection count.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::policy::ShapeMode;
use crate::config::queueing::RandomDetectBasis;
use crate::counters::count::Count;

/// A queue that priority classes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PriorityQueueCounters {
    /// 1 is served before 2.
    pub level: u8,
    /// Most packets; 0 where the limit is one of bytes.
    pub limit_packets: u32,
    /// Most bytes, where the limit is one of bytes or time.
    pub limit_bytes: Option<u32>,
    /// The time that was typed.
    pub limit_ms: Option<u32>,
    /// The same in microseconds.
    pub limit_us: Option<u32>,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now, where the limit is one of bytes or time.
    pub depth_bytes: Option<u64>,
    /// What the queue dropped (the conditional policers' drops are the classes').
    pub drops: Count,
    /// What left.
    pub output: Count,
}

/// Random early detection of a class.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RandomDetectCounters {
    /// Which field of a packet picks the thresholds.
    pub basis: RandomDetectBasis,
    /// Exponential weighting constant.
    pub exponential_weight: u8,
    /// Mean depth and thresholds are in counted bytes, rather than in packets.
    pub in_bytes: bool,
    /// Mean depth.
    pub mean_depth: f64,
    /// What was marked as having met congestion; null where nothing is.
    pub ecn_mark: Option<Count>,
    /// All precedences, or the code points that were seen.
    pub classes: Vec<RandomDetectRow>,
}

/// Random early detection of one precedence or code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RandomDetectRow {
    /// The precedence or code point.
    pub value: u8,
    /// What left the queue.
    pub transmitted: Count,
    /// What was dropped at random.
    pub random_drop: Count,
    /// What was dropped above the greatest threshold, or by the limit of the queue or of the flow.
    pub tail_drop: Count,
    /// What was marked as having met congestion, in place of being dropped at random.
    pub ecn_mark: Count,
    /// Least threshold.
    pub min: u32,
    /// Greatest threshold.
    pub max: u32,
    /// Just below the greatest threshold one packet in this many is dropped.
    pub denominator: u32,
}

/// A shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ShapeCounters {
    /// Average or peak.
    pub mode: ShapeMode,
    /// Committed rate.
    pub cir_bps: u64,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// The rate that it keeps: committed, or with `peak` CIR × (1 + Be/Bc).
    pub target_bps: u64,
    /// Committed burst.
    pub bc_bits: u64,
    /// Excess burst.
    pub be_bits: u64,
    /// Interval, in whole milliseconds.
    pub interval_ms: u64,
    /// Most credit, bytes.
    pub byte_limit: u64,
    /// What an interval adds, bytes.
    pub increment_bytes: u64,
    /// Credit now, bits; less than 0 behind a packet longer than the bursts.
    pub credit_bits: i64,
    /// Most credit that it saves up, bits.
    pub credit_limit_bits: u64,
    /// Packets are waiting.
    pub active: bool,
    /// What left.
    pub sent: Count,
    /// Those that had waited.
    pub delayed: Count,
}

/// The queueing discipline of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
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

/// The queue of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClassQueueCounters {
    /// How it queues.
    pub discipline: DisciplineName,
    /// Most packets; null where the limit is in bytes.
    pub limit_packets: Option<u32>,
    /// Counted bytes from which on no packet is taken; null where the limit is in packets.
    pub limit_bytes: Option<u32>,
    /// The time that those bytes stand for, where the limit is one.
    pub limit_ms: Option<u32>,
    /// The same in microseconds.
    pub limit_us: Option<u32>,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now.
    pub depth_bytes: u64,
    /// Packets that have gone on to the transmit ring and are not sent yet, which the later generation shows as depth
    /// too: of the class and those below it; 0 for a class below another one, whose depth is shown without, and in the
    /// classic generation.
    pub in_ring_packets: u64,
    /// Most packets of one flow; null where nothing limits a flow alone.
    pub per_flow_limit: Option<u32>,
    /// Flow queues with packets.
    pub flows: Option<u32>,
    /// Flow queues.
    pub max_flows: Option<u32>,
    /// What left the queue.
    pub output: Count,
    /// Number of its conversation (classic).
    pub conversation: Option<u32>,
    /// Packets that could not go straight to the transmit ring.
    pub congested: Count,
}
