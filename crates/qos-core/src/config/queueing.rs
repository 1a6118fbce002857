//! Queueing part of the configuration: bandwidth, priority, random early detection, fair queueing of an interface.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Guaranteed bandwidth of a class. A policy-map has only one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum BandwidthConfig {
    /// `bandwidth N`: kb/s.
    Kbps(u64),
    /// `bandwidth percent P`: of the interface's bandwidth, or of the parent class's shape rate or bandwidth.
    Percent(u32),
    /// `bandwidth remaining percent P`: of the bandwidth left by priority classes.
    RemainingPercent(u32),
    /// `bandwidth remaining ratio R`: share of the bandwidth left by priority classes, relative to other classes (1
    /// without).
    RemainingRatio(u32),
}

impl BandwidthConfig {
    /// Returns the key in a configuration.
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
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct PriorityConfig {
    /// Form of the rate.
    pub unit: PriorityUnit,
    /// Rate: kb/s or per cent; null with `strict`.
    pub number: Option<u64>,
    /// Burst of the conditional policer in bytes; null for 200 ms of the rate.
    pub burst_bytes: Option<u64>,
    /// `priority level N`: 1 is served before 2; null for 1.
    pub level: Option<u8>,
}

/// Form of the rate of a priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum PriorityUnit {
    /// None: the class is not policed.
    Strict,
    /// kb/s.
    Kbps,
    /// Per cent, as of [`BandwidthConfig::Percent`].
    Percent,
}

/// Queue limit, in one of the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum QueueLimit {
    /// Packets.
    Packets(u32),
    /// Counted bytes (later generation).
    Bytes(u32),
    /// Milliseconds of the class's rate: its bandwidth in kb/s or per cent, else that of its shaper or of its parent
    /// (later generation).
    Ms(u32),
    /// Microseconds of the class's rate (IOS-XE).
    Us(u32),
    /// Per cent of the class's limit; for limits by a field only (IOS-XE).
    Percent(u32),
}

impl QueueLimit {
    /// Returns its unit.
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

/// Unit of a queue's depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
#[allow(missing_docs)]
pub enum LimitUnit {
    Packets,
    Bytes,
    Ms,
    Us,
    /// Per cent of the queue limit; for thresholds of early detection and limits by a field only (IOS-XE).
    Percent,
}

impl LimitUnit {
    /// Returns the typed word; it is also the key in a configuration.
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

/// Field of a packet that selects its limit, or from which another one is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum ThresholdField {
    /// Differentiated services code point.
    Dscp,
    /// IP precedence.
    Precedence,
    /// Class of service of the VLAN tag.
    Cos,
    /// Local discard class of the router.
    DiscardClass,
    /// Local QoS group of the router.
    QosGroup,
}

impl ThresholdField {
    /// Returns the number of values.
    pub(crate) fn values(self) -> u8 {
        match self {
            ThresholdField::Dscp => 64,
            ThresholdField::Precedence | ThresholdField::Cos | ThresholdField::DiscardClass => 8,
            ThresholdField::QosGroup => 100,
        }
    }
}

/// Queue limit for an arriving packet with that value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct QueueThreshold {
    /// Field; the same in all limits of a class.
    pub field: ThresholdField,
    /// Value of the field.
    pub value: u8,
    /// Limit, in the unit of the class's limit or per cent of it; at most that.
    pub limit: QueueLimit,
}

/// Weighted random early detection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct RandomDetectConfig {
    /// Field of a packet that selects the thresholds.
    pub basis: RandomDetectBasis,
    /// Exponential weighting constant n: a packet counts 2⁻ⁿ in the mean depth; null for 9.
    pub exponential_weight: Option<u8>,
    /// `random-detect ecn`: packets of ECN-capable transports are marked instead of dropped at random.
    #[cfg_attr(feature = "serde", serde(default))]
    pub ecn: bool,
    /// Unit of the thresholds; null for that of the queue's limit.
    pub unit: Option<LimitUnit>,
    /// Thresholds other than the default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub thresholds: Vec<RandomDetectThreshold>,
}

/// Field of a packet that selects the thresholds of random early detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum RandomDetectBasis {
    /// IP precedence.
    Precedence,
    /// Differentiated services code point.
    Dscp,
    /// Class of service of the VLAN tag.
    Cos,
    /// Local discard class of the router.
    DiscardClass,
}

/// Thresholds for one value of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct RandomDetectThreshold {
    /// Value of the field.
    pub value: u8,
    /// Mean depth above which packets are dropped at random.
    pub min: u32,
    /// Mean depth above which every packet is dropped.
    pub max: u32,
    /// Just below `max` one packet in this many is dropped; null for 10.
    pub denominator: Option<u32>,
}

/// `fair-queue [threshold [dynamic queues [reservable queues]]]` of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct InterfaceFairQueue {
    /// False for `no fair-queue`.
    pub enabled: bool,
    /// Congestive discard threshold: number of packets in all conversations together above which one that would leave
    /// last is dropped; null for 64.
    pub discard_threshold: Option<u32>,
    /// Queues of conversations (a power of two from 16 to 4096); null for the default, which depends on the bandwidth.
    pub dynamic_queues: Option<u32>,
    /// Queues of reserved conversations; display only.
    pub reserved_queues: Option<u32>,
}
