//! The plan of `rate-limit` lines.

use crate::config::rate_limit::RateLimitAction;
use crate::plan::classes::Statement;

/// One `rate-limit` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RateLimitPlan {
    /// None: every packet.
    pub only: Option<Statement>,
    pub rate_bps: u64,
    pub normal_bytes: u64,
    pub extended_bytes: u64,
    pub conform: RateLimitAction,
    pub exceed: RateLimitAction,
}
