//! HyStart as in Linux's CUBIC: slow start ends when acknowledgements come in a train as long as half a round trip, or
//! when round trips grow. (It is not HyStart++ of RFC 9406.)

use super::window::Progress;
use qos_core::time::{Duration, Time};

/// Minimum window for HyStart (Linux hystart_low_window).
const LOW_WINDOW: u32 = 16;
/// Maximum gap between the acknowledgements of a train (Linux hystart_ack_delta_us).
const TRAIN_GAP: Duration = Duration(2_000_000);
/// Number of round trips in a round before their minimum is evaluated (Linux HYSTART_MIN_SAMPLES).
const LEAST_SAMPLES: u32 = 8;
/// Limits of the required growth of round trips, which is an eighth (Linux HYSTART_DELAY_MIN, HYSTART_DELAY_MAX).
const LEAST_GROWTH: u64 = 4_000_000;
const MOST_GROWTH: u64 = 16_000_000;
/// Maximum addition of delayed acknowledgements to a train's length (Linux: 1 ms).
const TRAIN_SLACK: Duration = Duration(1_000_000);

/// State of HyStart in a round.
#[derive(Clone, Debug)]
pub(crate) struct HyStart {
    enabled: bool,
    late_rounds: bool,
    found: bool,
    round_start: Time,
    last_ack: Time,
    round_end: u64,
    least: u64,
    samples: u32,
}

impl HyStart {
    pub fn new(enabled: bool, late_rounds: bool) -> HyStart {
        HyStart {
            enabled,
            late_rounds,
            found: false,
            round_start: Time(0),
            last_ack: Time(0),
            round_end: 0,
            least: u64::MAX,
            samples: 0,
        }
    }

    /// Returns the state after a timeout, with detection enabled again.
    pub fn restarted(&self, now: Time, next: u64) -> HyStart {
        let mut fresh = HyStart::new(self.enabled, self.late_rounds);
        fresh.begin_round(now, next);
        fresh
    }

    fn begin_round(&mut self, now: Time, next: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.round_end = next;
        self.least = u64::MAX;
        self.samples = 0;
    }

    /// Returns whether slow start should end; `least_delay` is the minimum of all round trips.
    pub fn found(&mut self, cwnd: u32, progress: &Progress, rtt: Duration, least_delay: Duration) -> bool {
        if !self.enabled || self.found {
            return false;
        }
        let low = cwnd < LOW_WINDOW;
        if progress.una > self.round_end && !(low && self.late_rounds) {
            self.begin_round(progress.now, progress.next);
        }
        if low {
            return false;
        }
        if progress.now.since(self.last_ack) <= TRAIN_GAP {
            self.last_ack = progress.now;
            let longest = Duration((least_delay.0 + TRAIN_SLACK.0) / 2);
            self.found = progress.now.since(self.round_start) > longest;
        }
        self.least = self.least.min(rtt.0);
        if self.samples < LEAST_SAMPLES {
            self.samples += 1;
        } else if self.least > least_delay.0 + (least_delay.0 / 8).clamp(LEAST_GROWTH, MOST_GROWTH) {
            self.found = true;
        }
        self.found
    }
}
