//! The plan of a policer.

use crate::config::policy::{PoliceAction, PoliceForm};
use crate::plan::shape::AccountPlan;
use crate::time::Duration;

/// Numbers of buckets and rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// One bucket.
    SingleBucket,
    /// One rate; overflow of the committed bucket fills the excess bucket.
    SingleRate,
    /// Two rates.
    TwoRate { pir_bps: u64 },
}

/// A policer with every value known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicePlan {
    pub form: PoliceForm,
    pub cir_bps: u64,
    pub cir_percent: Option<u32>,
    pub pir_percent: Option<u32>,
    pub bc_bytes: u64,
    /// Zero with a single bucket.
    pub be_bytes: u64,
    pub algorithm: Algorithm,
    pub account: Option<AccountPlan>,
    /// Settings of a bucket that adapts its size; it is then the only one.
    pub dynamic: Option<DynamicPlan>,
    pub conform: Vec<PoliceAction>,
    pub exceed: Vec<PoliceAction>,
    pub violate: Vec<PoliceAction>,
}

/// Values of a dynamic bucket, all known. Sizes in bytes, shares in per cent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicPlan {
    /// Size at the start.
    pub initial_bytes: u64,
    /// Minimum size.
    pub minimum_bytes: u64,
    /// Greatest size.
    pub maximum_bytes: u64,
    /// Interval at which the level is compared while TCP's reaction to a drop is monitored.
    pub monitoring: Duration,
    /// Longest gap between packets with demand; after it, earlier observations are meaningless.
    pub idle: Duration,
    /// Share of the overflow added by the first growths.
    pub first_growth_percent: u32,
    /// Number of first growths.
    pub first_growths: u32,
    /// Later growths.
    pub growth_percent: u32,
    /// Share by which the bucket shrinks.
    pub shrink_percent: u32,
    /// The bucket shrinks if this share of it was never filled.
    pub spare_percent: u32,
}
