//! Where all the frames of a port went.

use crate::counters::count::Count;
use crate::frame::drop_reason::DropReason;

/// Where all the frames went that one direction of a port was given since the engine was made. `offered = sent +
/// dropped + queued`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// Given to `receive` or `transmit`.
    pub offered: Count,
    /// Gone to the other side: passed inside, or taken up by the serialiser (less what the link loses).
    pub sent: Count,
    /// Dropped, in the order of [`DropReason::ALL`].
    pub dropped: [Count; DropReason::ALL.len()],
    /// Still on the arriving link, or in the queues and the transmit ring.
    pub queued: Count,
    /// Arrivals that were earlier than a decision already taken (see [`Engine`](crate::Engine) on time).
    pub late_arrivals: u64,
    /// By how much at most, in nanoseconds.
    pub latest_arrival_ns: u64,
}
