//! Counters of an attached policy-map.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::classification::MatchMode;
use crate::config::policy::SetField;
use crate::config::queueing::{PriorityUnit, ThresholdField};
use crate::counters::count::Count;
use crate::counters::police::PoliceCounters;
use crate::counters::queue::{ClassQueueCounters, PriorityQueueCounters, RandomDetectCounters, ShapeCounters};

/// Attached policy-map.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct PolicyCounters {
    /// Name of the policy-map.
    pub policy: String,
    /// Classes in configured order, `class-default` last.
    pub classes: Vec<ClassCounters>,
    /// Queues that the priority classes of this policy-map share, by level (later generation).
    pub priority_queues: Vec<PriorityQueueCounters>,
}

/// Class of an attached policy-map.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ClassCounters {
    /// Name of the class-map.
    pub name: String,
    /// Combination of its criteria.
    #[cfg_attr(feature = "serde", serde(rename = "match"))]
    pub combine: MatchMode,
    /// Criteria in configured order. With `match: any` a packet counts for the first that matched.
    pub criteria: Vec<CriterionCounters>,
    /// Packets classified, before any drop.
    pub packets: u64,
    /// Counted bytes classified.
    pub bytes: u64,
    /// Average rate of classified packets.
    pub offered_rate_bps: f64,
    /// Average rate of dropped packets (classic: without the policer's drops).
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
    /// Queue of the class, or those of its children together.
    pub queue: Option<ClassQueueCounters>,
    /// Bandwidth of the class.
    pub bandwidth: Option<BandwidthCounters>,
    /// Low-latency queueing.
    pub priority: Option<PriorityCounters>,
    /// Random early detection.
    pub random_detect: Option<RandomDetectCounters>,
    /// The child policy.
    pub child: Option<PolicyCounters>,
}

/// Match statement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct CriterionCounters {
    pub packets: u64,
    pub bytes: u64,
    pub rate_bps: f64,
}

/// Drops of a class by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ClassDrops {
    /// Drops by the policer (of this class or of a child's).
    pub police: Count,
    /// Dropped because the queue was full.
    pub tail: Count,
    /// Dropped because the flow's share of the queue was full.
    pub flow: Count,
    /// Removed from the queue by a shutdown of the interface.
    pub purged: Count,
    /// Drops by the conditional policer of a priority class.
    pub priority: Count,
    /// At random, by early detection.
    pub random: Count,
    /// Drops by early detection at a mean depth above the greatest threshold.
    pub random_tail: Count,
    /// Drops by the active queue management of a queue below the policy.
    pub aqm: Count,
}

/// Bandwidth of a class: one of the four as configured, and the resulting rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct BandwidthCounters {
    /// Active rate; null with `remaining`, and in `resolve` if it depends on the interface.
    pub kbps: Option<u64>,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// Configured percentage of the bandwidth left by priority classes.
    pub remaining_percent: Option<u32>,
    /// Configured share of the bandwidth left by priority classes.
    pub remaining_ratio: Option<u32>,
}

/// Priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct PriorityCounters {
    /// Form of its rate.
    pub unit: PriorityUnit,
    /// Active rate.
    pub kbps: Option<u64>,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// Burst of the conditional policer.
    pub burst_bytes: Option<u64>,
    /// 1 is served before 2.
    pub level: u8,
    /// Number of its conversation (classic).
    pub conversation: Option<u32>,
    /// Packets dropped by the conditional policer.
    pub exceed_drops: Count,
}

/// `set` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct SetCounters {
    pub field: SetField,
    pub value: u16,
    pub packets: u64,
}

/// `set` command that takes its value from another field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct MapCounters {
    pub field: SetField,
    pub source: ThresholdField,
    pub packets: u64,
}
