//! Committed access rate of an interface: `rate-limit`.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::classification::Criterion;
use crate::config::policy::SetAction;

/// One `rate-limit` line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RateLimitConfig {
    /// Which packets it meters; null for all. Frames that are not IP are never metered.
    #[cfg_attr(feature = "serde", serde(default, rename = "match"))]
    pub only: Option<Criterion>,
    /// The rate, 8 000 to 2 000 000 000 b/s.
    pub rate_bps: u64,
    /// Normal burst: the size of the token bucket, 1 000 to 512 000 000 bytes.
    pub normal_burst_bytes: u64,
    /// Extended burst: how far packets may borrow, 2 000 to 1 024 000 000 bytes. Where it is not above the normal burst
    /// none may.
    pub extended_burst_bytes: u64,
    /// What happens to a packet that conforms.
    pub conform: RateLimitAction,
    /// What happens to a packet that exceeds.
    pub exceed: RateLimitAction,
}

/// Treatment of a packet by one `rate-limit` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RateLimitAction {
    /// What is written into it: a code point, a precedence or a group.
    #[cfg_attr(feature = "serde", serde(default))]
    pub set: Option<SetAction>,
    /// Where it goes.
    pub then: RateLimitOutcome,
}

/// Where a packet of one `rate-limit` line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RateLimitOutcome {
    /// Past all lines below.
    Transmit,
    /// Nowhere.
    Drop,
    /// On to the next line that it matches; past the last one it is sent.
    Continue,
}

impl RateLimitAction {
    /// The action that only says where the packet goes.
    pub fn new(then: RateLimitOutcome) -> RateLimitAction {
        RateLimitAction { set: None, then }
    }
}

impl RateLimitConfig {
    /// A line for all packets, which drops what exceeds. The rate is in bits per second, the bursts in bytes.
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
