//! Counters of `rate-limit` lines.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::counters::count::Count;

/// `rate-limit` line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct RateLimitCounters {
    /// Packets that conformed to the rate.
    pub conformed: Count,
    /// Packets that exceeded the rate.
    pub exceeded: Count,
    /// Used part of both bursts, as of the last packet.
    pub current_burst_bytes: u64,
    /// Time since the last packet; null before the first one.
    pub last_packet_ns: Option<u64>,
    /// Counting time: since configuration or clearing.
    pub counting_ns: u64,
}
