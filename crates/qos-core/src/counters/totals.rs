//! Totals of all frames of a port.

use crate::counters::count::Count;
use crate::frame::drop_reason::DropReason;

/// Totals of all frames given to one direction of a port since the engine was created. `offered = sent + dropped +
/// queued`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// Frames given to `receive` or `transmit`.
    pub offered: Count,
    /// Frames passed on: inside, or to the serialiser (minus those lost on the link).
    pub sent: Count,
    /// Dropped frames, in the order of [`DropReason::ALL`].
    pub dropped: [Count; DropReason::ALL.len()],
    /// Frames still on the arriving link, or in the queues and the transmit ring.
    pub queued: Count,
    /// Arrivals earlier than a decision already taken (see [`Engine`](crate::Engine) on time).
    pub late_arrivals: u64,
    /// Maximum lateness, in nanoseconds.
    pub latest_arrival_ns: u64,
}
