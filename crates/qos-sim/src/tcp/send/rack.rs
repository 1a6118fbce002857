//! RACK (RFC 8985): a segment is lost if a later one was delivered and a reordering window has passed.

use super::scoreboard::{Scoreboard, Sent, EVER_RETRANSMITTED, LOST, RETRANSMITTED};
use qos_core::time::{Duration, Time};

/// Number of recoveries for which a widened reordering window lasts (RFC 8985 RACK.reo_wnd_persist).
const PERSIST: u32 = 16;
/// Maximum number of steps of the reordering window (Linux: a byte).
const MOST_STEPS: u32 = 255;

/// State of RACK.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Send time of the latest delivered segment, and its end.
    at: Time,
    end: u64,
    /// Round trip of the segment.
    rtt: Duration,
    /// Whether a newer segment was delivered since the last search for losses.
    advanced: bool,
    /// The reordering window in quarters of the least round trip.
    steps: u32,
    persist: u32,
    duplicate_seen: bool,
    /// Segments delivered when the window was last widened.
    widened_at: u64,
    fixed: bool,
    no_threshold: bool,
}

/// Inputs of the reordering window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reordering {
    pub seen: bool,
    pub in_recovery: bool,
    pub threshold_reached: bool,
    pub least_rtt: Option<Duration>,
    pub smoothed_rtt: Option<Duration>,
}

impl Rack {
    pub fn new(fixed: bool, no_threshold: bool) -> Rack {
        Rack {
            at: Time(0),
            end: 0,
            rtt: Duration::ZERO,
            advanced: false,
            steps: 1,
            persist: 0,
            duplicate_seen: false,
            widened_at: 0,
            fixed,
            no_threshold,
        }
    }

    /// Records a delivered segment. `flags` and `at` are those before it was marked.
    ///
    /// A retransmission that seems to be delivered faster than any round trip does not count: the original was
    /// delivered.
    pub fn record_delivered(&mut self, now: Time, segment: &Sent, least_rtt: Option<Duration>) {
        let rtt = now.since(segment.at);
        if segment.is(EVER_RETRANSMITTED) && least_rtt.is_none_or(|least| rtt < least) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (segment.at, segment.end) > (self.at, self.end) {
            self.at = segment.at;
            self.end = segment.end;
        }
    }

    /// Returns whether a newer segment was delivered since the last search for losses.
    pub fn has_news(&self) -> bool {
        self.advanced
    }

    /// Requests another search for losses.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Records a reported duplicate of a retransmission.
    pub fn note_duplicate(&mut self) {
        self.duplicate_seen = true;
    }

    fn reordering_window(&self, reordering: &Reordering) -> Duration {
        if !reordering.seen && (reordering.in_recovery || (reordering.threshold_reached && !self.no_threshold)) {
            return Duration::ZERO;
        }
        let quarters = reordering.least_rtt.map_or(0, |least| least.0 / 4) * u64::from(self.steps);
        Duration(quarters.min(reordering.smoothed_rtt.map_or(0, |smoothed| smoothed.0)))
    }

    /// Returns the remaining time until a segment counts as lost; zero if it is lost.
    pub fn remaining(&self, now: Time, segment: &Sent, reordering: &Reordering) -> Duration {
        let allowed = self.rtt + self.reordering_window(reordering);
        Duration(allowed.0.saturating_sub(now.since(segment.at).0))
    }

    /// Marks lost segments; returns the longest remaining time of a segment, if there is one.
    pub fn detect(&mut self, now: Time, board: &mut Scoreboard, reordering: &Reordering) -> Option<Duration> {
        self.advanced = false;
        let mut longest: Option<Duration> = None;
        let mut next = board.oldest();
        while let Some(id) = next {
            next = board.newer(id);
            let segment = board.get(id);
            if segment.is(LOST) && !segment.is(RETRANSMITTED) {
                continue;
            }
            if (self.at, self.end) <= (segment.at, segment.end) {
                break;
            }
            let remaining = self.remaining(now, segment, reordering);
            if remaining == Duration::ZERO {
                board.mark_lost(id);
            } else {
                longest = Some(longest.map_or(remaining, |longest| longest.max(remaining)));
            }
        }
        longest
    }

    /// Widens the reordering window by the duplicates reported since the last acknowledgement, once per round trip.
    pub fn update_window(&mut self, delivered: u64, prior_delivered: Option<u64>) {
        let Some(prior) = prior_delivered.filter(|_| !self.fixed) else { return };
        if prior < self.widened_at {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.duplicate_seen = false;
            self.widened_at = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Handles the end of a recovery, which was undone or not.
    pub fn end_recovery(&mut self, undone: bool) {
        self.persist = if undone { (self.persist + 1).min(PERSIST) } else { self.persist.saturating_sub(1) };
    }
}
