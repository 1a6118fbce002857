//! Committed access rate of an interface: `rate-limit`.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::classification::Criterion;
use crate::config::policy::SetAction;

/// `rate-limit` line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct RateLimitConfig {
    /// Metered packets; null for all. Non-IP frames are never metered.
    #[cfg_attr(feature = "serde", serde(default, rename = "match"))]
    pub only: Option<Criterion>,
    /// The rate, 8 000 to 2 000 000 000 b/s.
    pub rate_bps: u64,
    /// Normal burst: size of the token bucket, 1 000 to 512 000 000 bytes.
    pub normal_burst_bytes: u64,
    /// Extended burst: maximum debt of packets, 2 000 to 1 024 000 000 bytes. If it is not above the normal burst none
    /// is permitted.
    pub extended_burst_bytes: u64,
    /// Action for conforming packets.
    pub conform: RateLimitAction,
    /// Action for exceeding packets.
    pub exceed: RateLimitAction,
}

/// Treatment of a packet by one `rate-limit` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct RateLimitAction {
    /// New marking: a code point, a precedence or a group.
    pub set: Option<SetAction>,
    /// Continuation after this line.
    pub then: RateLimitOutcome,
}

/// Continuation after one `rate-limit` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum RateLimitOutcome {
    /// Sent, past all lines below.
    Transmit,
    /// Dropped.
    Drop,
    /// Checked against the next matching line; sent after the last one.
    Continue,
}

impl RateLimitAction {
    /// Returns the action without a marking.
    pub fn new(then: RateLimitOutcome) -> RateLimitAction {
        RateLimitAction { set: None, then }
    }
}

impl RateLimitConfig {
    /// Returns a line for all packets, which drops exceeding ones. The rate is in bits per second, the bursts in bytes.
    pub fn new(rate_bps: u64, normal_burst_bytes: u64, extended_burst_bytes: u64) -> RateLimitConfig {
        RateLimitConfig {
            only: None,
            rate_bps,
            normal_burst_bytes,
            extended_burst_bytes,
            conform: RateLimitAction::new(RateLimitOutcome::Transmit),
            exceed: RateLimitAction::new(RateLimitOutcome::Drop),
        }
    }
}
