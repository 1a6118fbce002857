//! Undoing of a wrong reduction of the window, detected by reported duplicates (RFC 2883, RFC 3708) or by an echoed
//! time stamp (Eifel, RFC 3522).

use crate::tcp::congestion::Congestion;
use qos_core::time::Time;

/// Information about the reduction.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// First unacknowledged byte at the start of the reduction, while it may be undone.
    from: Option<u64>,
    /// Retransmissions since then without a reported duplicate; `None` before the first.
    left: Option<u32>,
    /// Time of the first retransmission of the episode.
    first_retransmission: Option<Time>,
    /// Window and threshold before the reduction.
    prior_cwnd: u32,
    prior_threshold: u32,
}

impl Undo {
    /// Records a reduction that begins at byte `una`, with `retransmitted` retransmissions in flight.
    pub fn begin(&mut self, una: u64, retransmitted: u32) {
        self.from = Some(una);
        self.left = (retransmitted > 0).then_some(retransmitted);
    }

    /// Saves the window and the threshold to restore.
    pub fn save(&mut self, cwnd: u32, threshold: u32) {
        self.prior_cwnd = cwnd;
        self.prior_threshold = threshold;
    }

    /// Saves the window for a second reduction; the threshold to restore stays.
    pub fn save_cwnd(&mut self, cwnd: u32) {
        self.prior_cwnd = cwnd;
    }

    /// Gives up restoring the window, because congestion was echoed.
    pub fn forgo_window(&mut self) {
        (self.prior_cwnd, self.prior_threshold) = (0, 0);
    }

    /// Discards the state to restore.
    pub fn cancel(&mut self) {
        self.forgo_window();
        self.from = None;
    }

    /// Records a retransmission of a segment that seems lost.
    pub fn record_retransmission(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        self.left = Some(self.left.unwrap_or(0) + 1);
    }

    /// Records that no retransmission is in flight.
    pub fn forget_retransmission(&mut self) {
        self.first_retransmission = None;
    }

    /// Records reported duplicates of `segments` segments, the last of which ends at `end`.
    pub fn record_duplicates(&mut self, end: u64, segments: u32) {
        if let (Some(from), Some(left)) = (self.from, self.left) {
            if end > from {
                self.left = Some(left.saturating_sub(segments));
            }
        }
    }

    /// Returns whether a reduction may turn out to have been wrong.
    pub fn is_possible(&self) -> bool {
        self.from.is_some()
    }

    /// Returns whether a duplicate was reported for every retransmission.
    pub fn has_all_duplicates(&self) -> bool {
        self.from.is_some() && self.left == Some(0)
    }

    /// Returns whether the acknowledgement echoes a time stamp from before the first retransmission.
    pub fn was_delayed(&self, echo: Option<Time>) -> bool {
        matches!((self.first_retransmission, echo), (Some(first), Some(echo)) if echo < first)
    }

    /// Returns whether the reduction was wrong: no retransmitted data had been lost.
    pub fn is_due(&self, echo: Option<Time>) -> bool {
        self.from.is_some() && (self.left == Some(0) || self.was_delayed(echo))
    }

    /// Undoes the reduction.
    pub fn apply(&mut self, congestion: &mut Congestion) {
        congestion.restore(self.prior_cwnd, self.prior_threshold);
        self.from = None;
    }
}
