//! What a policer counts.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::policy::PoliceForm;

/// A policer.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// Tokens lost to demand.
    pub tokens_lost: TokensLost,
    /// The dynamic bucket; its present size is `bc_bytes` too.
    pub dynamic: Option<DynamicCounters>,
}

/// Tokens of the committed rate that came while there was no room for them (with one rate and two buckets: in neither)
/// although there was demand: the packet before had come no longer ago than the idle time, 3 s or that of the dynamic
/// bucket. Known at arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TokensLost {
    /// How many, in bytes.
    pub bytes: u64,
    /// The longest time from when tokens began to be lost to the last of consecutive packets that each found that some
    /// were lost since the one before.
    pub longest_ns: u64,
}

/// A bucket that finds its own size.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DynamicCounters {
    /// Size now.
    pub bucket_bytes: u64,
    /// Tokens now.
    pub level_bytes: u64,
    /// Mean size over time, since the counters were cleared.
    pub mean_bucket_bytes: u64,
    /// Size at the start.
    pub initial_bytes: u64,
    /// Least size.
    pub minimum_bytes: u64,
    /// Greatest size.
    pub maximum_bytes: u64,
    /// How often the level is compared.
    pub monitoring_ms: u64,
    /// The reaction to a drop is being watched.
    pub watching: bool,
    /// How often the bucket grew.
    pub growths: u64,
    /// How often it shrank.
    pub shrinks: u64,
    /// Tokens that overflowed while there was demand: between drops and TCP's return to the rate.
    pub overflow_bytes: u64,
    /// The most of one such time.
    pub most_overflow_bytes: u64,
    /// The last 32 changes of size, the oldest first.
    pub changes: Vec<BucketChange>,
}

/// A change of a dynamic bucket's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct BucketChange {
    /// From 1, since the policer began.
    pub number: u64,
    /// When.
    pub time_ns: u64,
    /// Size from then on.
    pub bucket_bytes: u64,
}

/// Packets of one colour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs)]
pub struct ColourCounters {
    pub packets: u64,
    pub bytes: u64,
    pub rate_bps: f64,
}
