//! The congestion control of one connection: its window, its algorithm, and the present reduction.

use super::cubic::Cubic;
use super::hystart::HyStart;
use super::prr::Reduction;
use super::reno::Reno;
use super::window::{Algorithm, Progress, Window, INFINITE};
use crate::tcp::settings::{CongestionControl, Settings};
use qos_core::time::{Duration, Time};

/// Returns the algorithm in the settings.
fn algorithm(settings: &Settings) -> Box<dyn Algorithm> {
    match settings.congestion_control {
        CongestionControl::Reno => Box::new(Reno),
        CongestionControl::Cubic => {
            Box::new(Cubic::new(HyStart::new(settings.hystart, settings.hystart_late_rounds), settings.ticks))
        }
    }
}

/// The congestion control of a connection. Windows in segments.
#[derive(Debug)]
pub(crate) struct Congestion {
    window: Window,
    algorithm: Box<dyn Algorithm>,
    reduction: Reduction,
    /// Whether the window grows per acknowledged segment instead of per acknowledgement.
    byte_counting: bool,
}

impl Congestion {
    pub fn new(settings: &Settings) -> Congestion {
        Congestion {
            window: Window { cwnd: settings.initial_window, ssthresh: INFINITE, count: 0, most_out: 0, limited: false },
            algorithm: algorithm(settings),
            reduction: Reduction::default(),
            byte_counting: settings.byte_counting,
        }
    }

    /// Returns the congestion window.
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Returns the slow start threshold; infinite before the first congestion.
    pub fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Returns the slow start threshold, if there was any congestion.
    pub fn known_ssthresh(&self) -> Option<u32> {
        (self.window.ssthresh < INFINITE).then_some(self.window.ssthresh)
    }

    /// Begins with one segment.
    pub fn begin_with_one(&mut self) {
        self.window.cwnd = 1;
    }

    /// Returns the threshold that corresponds to the present window (Linux tcp_current_ssthresh).
    pub fn current_threshold(&self, is_reducing: bool) -> u32 {
        if is_reducing {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
        }
    }

    /// Takes a round trip, measured by the last segment that an acknowledgement delivers.
    pub fn take_round_trip(&mut self, progress: &Progress, rtt: Duration) {
        self.algorithm.take_round_trip(&mut self.window, progress, rtt);
    }

    /// Grows the window for segments delivered outside a reduction.
    pub fn grow(&mut self, progress: Progress) {
        let acked = if self.byte_counting { progress.acked } else { 1 };
        self.algorithm.grow(&mut self.window, &Progress { acked, ..progress });
    }

    /// Handles sending that resumes after everything had been acknowledged; `since` is the last transmission.
    pub fn resume(&mut self, now: Time, since: Time) {
        self.algorithm.resume(now, since);
    }

    /// Begins a reduction.
    pub fn begin_reduction(&mut self) {
        self.window.count = 0;
        self.reduction = Reduction::begin(self.window.cwnd);
        self.lower_threshold();
    }

    /// Lowers the threshold after congestion.
    pub fn lower_threshold(&mut self) {
        self.window.ssthresh = self.algorithm.threshold(&self.window);
    }

    /// Reduces the window proportionally after `delivered` segments with `pipe` in flight; see [`Reduction::window`].
    pub fn reduce(&mut self, delivered: u32, pipe: u32, safe: bool) {
        if let Some(cwnd) = self.reduction.window(delivered, pipe, self.window.ssthresh, safe) {
            self.window.cwnd = cwnd;
        }
    }

    /// Records that this many segments were sent during the reduction.
    pub fn sent_in_reduction(&mut self, segments: u32) {
        self.reduction.record_sent(segments);
    }

    /// Completes the reduction.
    pub fn end_reduction(&mut self) {
        if let Some(ssthresh) = self.known_ssthresh() {
            self.window.cwnd = ssthresh;
        }
    }

    /// Restarts slow start after a retransmission timeout, with `pipe` segments still in flight.
    pub fn restart(&mut self, now: Time, next: u64, pipe: u32) {
        self.window.cwnd = pipe + 1;
        self.window.count = 0;
        self.algorithm.timed_out(now, next);
    }

    /// Undoes a reduction.
    pub fn restore(&mut self, cwnd: u32, ssthresh: u32) {
        self.window.cwnd = self.window.cwnd.max(cwnd);
        self.window.ssthresh = self.window.ssthresh.max(ssthresh);
    }

    /// Returns whether the window limits the sending, as far as is known.
    pub fn is_limited(&self) -> bool {
        self.window.is_limited()
    }

    /// Records the number of segments in flight (`out`) and whether the window was full (`limited`), if its use is
    /// greater than before in this round or the round is over; returns whether it was recorded.
    pub fn note_use(&mut self, limited: bool, out: u32, round_over: bool) -> bool {
        let more = round_over || limited || (!self.window.limited && out > self.window.most_out);
        if more {
            self.window.limited = limited;
            self.window.most_out = out;
        }
        more
    }

    /// Halves the window for each `timeout` that has passed in the `idle` time after the first, down to `least`.
    pub fn decay(&mut self, idle: Duration, timeout: Duration, least: u32, is_reducing: bool) {
        let least = least.min(self.window.cwnd);
        self.window.ssthresh = self.current_threshold(is_reducing);
        let mut left = idle.0;
        while left > timeout.0 && self.window.cwnd > least {
            left -= timeout.0;
            self.window.cwnd /= 2;
        }
        self.window.cwnd = self.window.cwnd.max(least);
    }

    /// Reduces the window half way to the `used` segments, if they are fewer.
    pub fn fall_towards(&mut self, used: u32) {
        if used < self.window.cwnd {
            self.window.ssthresh = self.current_threshold(false);
            self.window.cwnd = (self.window.cwnd + used) / 2;
        }
    }
}
