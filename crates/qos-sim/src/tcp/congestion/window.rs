//! Congestion window, and the parts common to all congestion controls.

use qos_core::time::{Duration, Time};

/// The slow start threshold before the first congestion.
pub(crate) const INFINITE: u32 = 0x7fff_ffff;
/// Minimum slow start threshold, segments (RFC 5681).
pub(crate) const LEAST_THRESHOLD: u32 = 2;

/// The congestion window in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Acknowledged segments that have not yet increased the window.
    pub count: u32,
    /// Maximum number of segments in flight in the present round.
    pub most_out: u32,
    /// Whether the window, not the application, limits the sending.
    pub limited: bool,
}

impl Window {
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Returns whether the window was in use, so that it may grow (RFC 2861 as in Linux: in slow start if half is
    /// used).
    pub fn is_limited(&self) -> bool {
        self.limited || (self.in_slow_start() && self.cwnd < 2 * self.most_out)
    }

    /// Grows by the acknowledged segments, not beyond the threshold; returns the remaining ones.
    fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.cwnd = grown;
        left
    }

    /// Applies slow start if the window is in it. Returns the acknowledged segments by which the window may grow
    /// otherwise: none if it was not in use.
    pub fn after_slow_start(&mut self, acked: u32) -> u32 {
        match (self.is_limited(), self.in_slow_start()) {
            (false, _) => 0,
            (true, true) => self.slow_start(acked),
            (true, false) => acked,
        }
    }

    /// Grows by one for every `every` segments acknowledged.
    pub fn grow_by_count(&mut self, every: u32, acked: u32) {
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= every {
            self.cwnd += self.count / every;
            self.count %= every;
        }
    }
}

/// Information from an acknowledgement for the congestion control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub now: Time,
    /// Segments newly delivered.
    pub acked: u32,
    /// First unacknowledged and next byte.
    pub una: u64,
    pub next: u64,
}

/// A congestion control that reacts only to loss.
pub(crate) trait Algorithm: std::fmt::Debug + Send {
    /// Takes a round trip, measured by the last segment that this acknowledgement delivers.
    fn take_round_trip(&mut self, _window: &mut Window, _progress: &Progress, _rtt: Duration) {}

    /// Grows the window for segments delivered outside a reduction.
    fn grow(&mut self, window: &mut Window, progress: &Progress);

    /// Returns the new slow start threshold after congestion.
    fn threshold(&mut self, window: &Window) -> u32;

    /// Handles a retransmission timeout.
    fn timed_out(&mut self, _now: Time, _next: u64) {}

    /// Handles sending that resumes after everything had been acknowledged; `since` is the last transmission.
    fn resume(&mut self, _now: Time, _since: Time) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold_and_returns_the_rest() {
        let mut window = Window { cwnd: 9, ssthresh: 11, count: 0, most_out: 9, limited: true };
        assert_eq!(window.slow_start(5), 3);
        assert_eq!(window.cwnd, 11);
        window.grow_by_count(11, 3);
        assert_eq!((window.cwnd, window.count), (11, 3));
        window.grow_by_count(11, 8);
        assert_eq!((window.cwnd, window.count), (12, 0));
    }
}
