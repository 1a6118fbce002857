//! Taking a reduction of the window back that turns out to have been wrong: by duplicates reported (RFC 2883, RFC 3708)
//! or by a timestamp echoed (Eifel, RFC 3522).

use crate::tcp::congestion::Congestion;
use qos_core::time::Time;

/// Information about the reduction.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// First unacknowledged byte when it began, while it may be undone.
    from: Option<u64>,
    /// Retransmissions since then that no duplicate report has come for; `None` before the first.
    left: Option<u32>,
    /// Time of the first retransmission of the episode.
    first_retransmission: Option<Time>,
    /// Window and threshold before the reduction.
    prior_cwnd: u32,
    prior_threshold: u32,
}

impl Undo {
    /// A reduction begins at byte `una`, with `retransmitted` segments in flight again.
    pub fn begin(&mut self, una: u64, retransmitted: u32) {
        self.from = Some(una);
        self.left = (retransmitted > 0).then_some(retransmitted);
    }

    /// Window and threshold to restore.
    pub fn save(&mut self, cwnd: u32, threshold: u32) {
        self.prior_cwnd = cwnd;
        self.prior_threshold = threshold;
    }

    /// The window is reduced once more; the threshold stays the one to be restored.
    pub fn save_cwnd(&mut self, cwnd: u32) {
        self.prior_cwnd = cwnd;
    }

    /// The window is not restored: congestion was echoed.
    pub fn forgo_window(&mut self) {
        (self.prior_cwnd, self.prior_threshold) = (0, 0);
    }

    /// There is nothing to undo.
    pub fn cancel(&mut self) {
        self.forgo_window();
        self.from = None;
    }

    /// A segment that was lost, as it seems, leaves again.
    pub fn retransmitted(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        self.left = Some(self.left.unwrap_or(0) + 1);
    }

    /// No retransmission is out any more.
    pub fn forget_retransmission(&mut self) {
        self.first_retransmission = None;
    }

    /// Duplicates of `segments` segments, the last of which ends at `end`, were reported.
    pub fn duplicated(&mut self, end: u64, segments: u32) {
        if let (Some(from), Some(left)) = (self.from, self.left) {
            if end > from {
                self.left = Some(left.saturating_sub(segments));
            }
        }
    }

    /// A reduction may turn out to have been wrong.
    pub fn is_possible(&self) -> bool {
        self.from.is_some()
    }

    /// A duplicate was reported for every retransmission.
    pub fn all_duplicated(&self) -> bool {
        self.from.is_some() && self.left == Some(0)
    }

    /// The acknowledgement echoes something sent before the first retransmission.
    pub fn was_delayed(&self, echo: Option<Time>) -> bool {
        matches!((self.first_retransmission, echo), (Some(first), Some(echo)) if echo < first)
    }

    /// The reduction was wrong: no retransmitted data had been lost.
    pub fn is_due(&self, echo: Option<Time>) -> bool {
        self.from.is_some() && (self.left == Some(0) || self.was_delayed(echo))
    }

    /// Takes the reduction back.
    pub fn apply(&mut self, congestion: &mut Congestion) {
        congestion.restore(self.prior_cwnd, self.prior_threshold);
        self.from = None;
    }
}
