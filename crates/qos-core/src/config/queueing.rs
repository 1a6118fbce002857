//! The queueing part of the configuration: bandwidth, priority, random early detection, fair queueing of an interface.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// What a class is guaranteed. One kind only in a policy-map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum BandwidthConfig {
    /// `bandwidth N`: kb/s.
    Kbps(u64),
    /// `bandwidth percent P`: of the interface's bandwidth, or of the parent class's shape rate or bandwidth.
    Percent(u32),
    /// `bandwidth remaining percent P`: of what priority classes leave.
    RemainingPercent(u32),
    /// `bandwidth remaining ratio R`: a part of what priority classes leave, relative to the other classes' (1
    /// without).
    RemainingRatio(u32),
}

impl BandwidthConfig {
    /// The key in a configuration.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            BandwidthConfig::Kbps(_) => "kbps",
            BandwidthConfig::Percent(_) => "percent",
            BandwidthConfig::RemainingPercent(_) => "remaining_percent",
            BandwidthConfig::RemainingRatio(_) => "remaining_ratio",
        }
    }
}

/// Low-latency queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PriorityConfig {
    /// How the rate is given.
    pub unit: PriorityUnit,
    /// The rate: kb/s or per cent; null with `strict`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub number: Option<u64>,
    /// Burst of the conditional policer in bytes; null for 200 ms of the rate.
    #[cfg_attr(feature = "serde", serde(default))]
    pub burst_bytes: Option<u64>,
    /// `priority level N`: 1 is served before 2; null for 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub level: Option<u8>,
}

/// How the rate of a priority class is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum PriorityUnit {
    /// Not at all: the class is not policed.
    Strict,
    /// kb/s.
    Kbps,
    /// Per cent, as of [`BandwidthConfig::Percent`].
    Percent,
}

/// How much may wait, in one of the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum QueueLimit {
    /// Packets.
    Packets(u32),
    /// Counted bytes (later generation).
    Bytes(u32),
    /// Milliseconds of the class's rate: its bandwidth in kb/s or per cent, else that of its shaper or of what is
    /// around it (later generation).
    Ms(u32),
    /// The same in microseconds (IOS-XE).
    Us(u32),
    /// Per cent of the class's own limit; limits by a field only (IOS-XE).
    Percent(u32),
}

impl QueueLimit {
    /// Its unit.
    pub(crate) fn unit(self) -> LimitUnit {
        match self {
            QueueLimit::Packets(_) => LimitUnit::Packets,
            QueueLimit::Bytes(_) => LimitUnit::Bytes,
            QueueLimit::Ms(_) => LimitUnit::Ms,
            QueueLimit::Us(_) => LimitUnit::Us,
            QueueLimit::Percent(_) => LimitUnit::Percent,
        }
    }
}

/// In which unit a queue's depth is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[allow(missing_docs)]
pub enum LimitUnit {
    Packets,
    Bytes,
    Ms,
    Us,
    /// Of the queue limit; thresholds of early detection and limits by a field only (IOS-XE).
    Percent,
}

impl LimitUnit {
    /// As it is typed, and the key in a configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            LimitUnit::Packets => "packets",
            LimitUnit::Bytes => "bytes",
            LimitUnit::Ms => "ms",
            LimitUnit::Us => "us",
            LimitUnit::Percent => "percent",
        }
    }
}

/// A field of a packet that picks its limit, or from which another one is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ThresholdField {
    /// Differentiated services code point.
    Dscp,
    /// IP precedence.
    Precedence,
    /// Class of service of the VLAN tag.
    Cos,
    /// The router's own class of what to drop first.
    DiscardClass,
    /// The router's own group number.
    QosGroup,
}

impl ThresholdField {
    /// How many values it has.
    pub(crate) fn values(self) -> u8 {
        match self {
            ThresholdField::Dscp => 64,
            ThresholdField::Precedence | ThresholdField::Cos | ThresholdField::DiscardClass => 8,
            ThresholdField::QosGroup => 100,
        }
    }
}

/// The length that a queue may have when a packet with that value comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct QueueThreshold {
    /// The field; the same in all of a class.
    pub field: ThresholdField,
    /// Its value.
    pub value: u8,
    /// The limit, in the unit of the class's own or per cent of it; at most that.
    pub limit: QueueLimit,
}

/// Weighted random early detection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RandomDetectConfig {
    /// Which field of a packet picks the thresholds.
    pub basis: RandomDetectBasis,
    /// Exponential weighting constant n: a packet counts 2⁻ⁿ in the mean depth; null for 9.
    #[cfg_attr(feature = "serde", serde(default))]
    pub exponential_weight: Option<u8>,
    /// `random-detect ecn`: packets of ECN-capable transports are marked where they would be dropped at random.
    #[cfg_attr(feature = "serde", serde(default))]
    pub ecn: bool,
    /// Unit of the thresholds; null for that of the queue's limit.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unit: Option<LimitUnit>,
    /// Thresholds that differ from the default ones.
    #[cfg_attr(feature = "serde", serde(default))]
    pub thresholds: Vec<RandomDetectThreshold>,
}

/// Which field of a packet picks the thresholds of random early detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RandomDetectBasis {
    /// IP precedence.
    Precedence,
    /// Differentiated services code point.
    Dscp,
    /// Class of service of the VLAN tag.
    Cos,
    /// The router's own class of what to drop first.
    DiscardClass,
}

/// The thresholds for one value of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RandomDetectThreshold {
    /// The value.
    pub value: u8,
    /// Mean depth from which packets are dropped at random.
    pub min: u32,
    /// Mean depth from which every packet is dropped.
    pub max: u32,
    /// Just below `max` one packet in this many is dropped; null for 10.
    #[cfg_attr(feature = "serde", serde(default))]
    pub denominator: Option<u32>,
}

/// `fair-queue [threshold [dynamic queues [reservable queues]]]` of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct InterfaceFairQueue {
    /// False for `no fair-queue`.
    pub enabled: bool,
    /// Congestive discard threshold: packets of all conversations together, from which on one that would leave last is
    /// dropped; null for 64.
    #[cfg_attr(feature = "serde", serde(default))]
    pub discard_threshold: Option<u32>,
    /// Queues of conversations (a power of two from 16 to 4096); null for the default, which depends on the bandwidth.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dynamic_queues: Option<u32>,
    /// Queues of reserved conversations; only shown.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reserved_queues: Option<u32>,
}
