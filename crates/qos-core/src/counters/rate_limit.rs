//! What `rate-limit` lines count.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::counters::count::Count;

/// One `rate-limit` line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RateLimitCounters {
    /// Packets that conformed.
    pub conformed: Count,
    /// Packets that exceeded.
    pub exceeded: Count,
    /// What was taken of both bursts, as of the last packet.
    pub current_burst_bytes: u64,
    /// How long ago the last packet came; null before the first one.
    pub last_packet_ns: Option<u64>,
    /// Since when it counts: how long ago it was configured or cleared.
    pub counting_ns: u64,
}
