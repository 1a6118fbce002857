//! Counters of a policer.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::policy::PoliceForm;

/// Policer.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct PoliceCounters {
    pub form: PoliceForm,
    pub cir_bps: u64,
    pub cir_percent: Option<u32>,
    pub bc_bytes: u64,
    pub pir_bps: Option<u64>,
    pub pir_percent: Option<u32>,
    pub be_bytes: Option<u64>,
    pub conformed: ColourCounters,
    pub exceeded: ColourCounters,
    pub violated: Option<ColourCounters>,
    /// Tokens lost despite demand.
    pub tokens_lost: TokensLost,
    /// Dynamic bucket; its current size is also `bc_bytes`.
    pub dynamic: Option<DynamicCounters>,
}

/// Tokens of the committed rate that found no space (with one rate and two buckets: in neither) despite demand: the
/// previous packet had arrived within the idle time, 3 s or that of the dynamic bucket. Updated at arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct TokensLost {
    /// Lost tokens, in bytes.
    pub bytes: u64,
    /// Longest time from the first lost token to the last of consecutive packets between which tokens were lost.
    pub longest_ns: u64,
}

/// Bucket that adapts its size.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct DynamicCounters {
    /// Current size.
    pub bucket_bytes: u64,
    /// Current tokens.
    pub level_bytes: u64,
    /// Mean size over time, since the counters were cleared.
    pub mean_bucket_bytes: u64,
    /// Initial size.
    pub initial_bytes: u64,
    /// Minimum size.
    pub minimum_bytes: u64,
    /// Maximum size.
    pub maximum_bytes: u64,
    /// Interval between comparisons of the level.
    pub monitoring_ms: u64,
    /// The reaction to a drop is being observed.
    pub watching: bool,
    /// Number of growths.
    pub growths: u64,
    /// Number of reductions.
    pub shrinks: u64,
    /// Tokens that overflowed during demand: between drops and the recovery of TCP to the rate.
    pub overflow_bytes: u64,
    /// Maximum of one such period.
    pub most_overflow_bytes: u64,
    /// Last 32 changes of size, the oldest first.
    pub changes: Vec<BucketChange>,
}

/// Change of a dynamic bucket's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct BucketChange {
    /// Number from 1, since the start of the policer.
    pub number: u64,
    /// Time.
    pub time_ns: u64,
    /// New size.
    pub bucket_bytes: u64,
}

/// Packets of one colour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct ColourCounters {
    pub packets: u64,
    pub bytes: u64,
    pub rate_bps: f64,
}
