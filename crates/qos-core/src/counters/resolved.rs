//! Configured policy-maps with all defaults.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::policy::{DynamicBucketConfig, PoliceAction, PoliceForm, ShapeMode};
use crate::config::queueing::{PriorityUnit, RandomDetectBasis};
use crate::counters::policy::BandwidthCounters;
use crate::counters::queue::DisciplineName;

/// Configured policy-maps with all defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct Resolved {
    /// Policy-maps by name.
    pub policy_maps: BTreeMap<String, ResolvedPolicy>,
}

/// Policy-map with its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ResolvedPolicy {
    /// Classes in configured order, `class-default` last.
    pub classes: Vec<ResolvedClass>,
}

/// Class with its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ResolvedClass {
    pub name: String,
    pub police: Option<ResolvedPolice>,
    pub shape: Option<ResolvedShape>,
    pub queue_limit_packets: Option<u32>,
    pub queue_limit_bytes: Option<u32>,
    pub fair_queue: Option<ResolvedFairQueue>,
    pub bandwidth: Option<BandwidthCounters>,
    pub priority: Option<ResolvedPriority>,
    pub random_detect: Option<ResolvedRandomDetect>,
    pub service_policy: Option<String>,
}

/// Low-latency queueing with its defaults. Values are null if they depend on the rate of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ResolvedPriority {
    pub unit: PriorityUnit,
    pub kbps: Option<u64>,
    pub percent: Option<u32>,
    pub burst_bytes: Option<u64>,
    pub level: u8,
}

/// Random early detection with its defaults: every precedence, or the code points with separate thresholds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ResolvedRandomDetect {
    pub basis: RandomDetectBasis,
    pub exponential_weight: u8,
    pub ecn: bool,
    /// Whether thresholds are in bytes. Thresholds that follow from a rate are missing.
    pub in_bytes: bool,
    pub classes: Vec<ResolvedRandomDetectRow>,
}

/// Thresholds of one precedence or code point, in packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ResolvedRandomDetectRow {
    pub value: u8,
    pub min: u32,
    pub max: u32,
    pub denominator: u32,
}

/// Policer with its defaults. Values in bits and bytes are null if they depend on the rate of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ResolvedPolice {
    pub form: PoliceForm,
    pub cir_bps: Option<u64>,
    pub cir_percent: Option<u32>,
    pub bc_bytes: Option<u64>,
    pub pir_bps: Option<u64>,
    pub pir_percent: Option<u32>,
    pub be_bytes: Option<u64>,
    pub conform: Vec<PoliceAction>,
    pub exceed: Vec<PoliceAction>,
    pub violate: Option<Vec<PoliceAction>>,
    pub dynamic: Option<DynamicBucketConfig>,
}

/// Shaper with its defaults. Values are null if they depend on the rate of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ResolvedShape {
    pub mode: ShapeMode,
    pub cir_bps: Option<u64>,
    pub percent: Option<u32>,
    pub target_bps: Option<u64>,
    pub bc_bits: Option<u64>,
    pub be_bits: Option<u64>,
    pub interval_ms: Option<u64>,
    pub byte_limit: Option<u64>,
    pub increment_bytes: Option<u64>,
}

/// Fair queueing with its defaults: classic weighted fair queueing has a congestive discard threshold, in packets of
/// all flows together, fair queueing of the later generation a limit for each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ResolvedFairQueue {
    pub discipline: DisciplineName,
    pub queues: u32,
    pub per_flow_limit: Option<u32>,
    pub discard_threshold: Option<u32>,
}
