//! What an attached policy-map counts.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::classification::MatchMode;
use crate::config::policy::SetField;
use crate::config::queueing::{PriorityUnit, ThresholdField};
use crate::counters::count::Count;
use crate::counters::police::PoliceCounters;
use crate::counters::queue::{ClassQueueCounters, PriorityQueueCounters, RandomDetectCounters, ShapeCounters};

/// An attached policy-map.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PolicyCounters {
    /// Name of the policy-map.
    pub policy: String,
    /// Classes in configured order, `class-default` last.
    pub classes: Vec<ClassCounters>,
    /// The queues that the priority classes of this policy-map share, by level (later generation).
    pub priority_queues: Vec<PriorityQueueCounters>,
}

/// One class of an attached policy-map.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClassCounters {
    /// Name of the class-map.
    pub name: String,
    /// How its criteria combine.
    #[cfg_attr(feature = "serde", serde(rename = "match"))]
    pub combine: MatchMode,
    /// Criteria in configured order. With `match: any` a packet counts for the first that matched.
    pub criteria: Vec<CriterionCounters>,
    /// Packets classified, before any drop.
    pub packets: u64,
    /// Counted bytes classified.
    pub bytes: u64,
    /// Average of what was classified.
    pub offered_rate_bps: f64,
    /// Average of what was dropped (classic: without the policer's drops).
    pub drop_rate_bps: f64,
    /// Drops by reason.
    pub drops: ClassDrops,
    /// Markings.
    pub set: Vec<SetCounters>,
    /// Markings by another field.
    pub map: Vec<MapCounters>,
    /// The policer.
    pub police: Option<PoliceCounters>,
    /// The shaper.
    pub shape: Option<ShapeCounters>,
    /// The class's own queue, or those of its children together.
    pub queue: Option<ClassQueueCounters>,
    /// The class's bandwidth.
    pub bandwidth: Option<BandwidthCounters>,
    /// Low-latency queueing.
    pub priority: Option<PriorityCounters>,
    /// Random early detection.
    pub random_detect: Option<RandomDetectCounters>,
    /// The child policy.
    pub child: Option<PolicyCounters>,
}

/// One match statement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs)]
pub struct CriterionCounters {
    pub packets: u64,
    pub bytes: u64,
    pub rate_bps: f64,
}

/// Drops of a class by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClassDrops {
    /// By the policer (of this class or of a child's).
    pub police: Count,
    /// The queue was full.
    pub tail: Count,
    /// The flow's share of the queue was full.
    pub flow: Count,
    /// Removed from the queue by a shutdown of the interface.
    pub purged: Count,
    /// By the conditional policer of a priority class.
    pub priority: Count,
    /// At random, by early detection.
    pub random: Count,
    /// By early detection, at a mean depth above the greatest threshold.
    pub random_tail: Count,
    /// By the active queue management of a queue below the policy.
    pub aqm: Count,
}

/// The bandwidth of a class: one of the four as configured, and what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct BandwidthCounters {
    /// In force; null with `remaining`, and in `resolve` where it depends on the interface.
    pub kbps: Option<u64>,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// The configured percentage of what priority classes leave.
    pub remaining_percent: Option<u32>,
    /// The configured part of what priority classes leave.
    pub remaining_ratio: Option<u32>,
}

/// A priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PriorityCounters {
    /// How its rate is given.
    pub unit: PriorityUnit,
    /// The rate in force.
    pub kbps: Option<u64>,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// Burst of the conditional policer.
    pub burst_bytes: Option<u64>,
    /// 1 is served before 2.
    pub level: u8,
    /// Number of its conversation (classic).
    pub conversation: Option<u32>,
    /// What the conditional policer dropped.
    pub exceed_drops: Count,
}

/// One `set` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs)]
pub struct SetCounters {
    pub field: SetField,
    pub value: u16,
    pub packets: u64,
}

/// One `set` command that takes its value from another field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs)]
pub struct MapCounters {
    pub field: SetField,
    pub source: ThresholdField,
    pub packets: u64,
}
