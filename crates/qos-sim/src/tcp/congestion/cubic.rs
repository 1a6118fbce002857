//! CUBIC's window (RFC 9438) with the choices of Linux.

use super::hystart::HyStart;
use super::window::{Algorithm, Progress, Window, LEAST_THRESHOLD};
use crate::tcp::ticks::Ticks;
use qos_core::time::{Duration, Time};

/// β in 1024ths: 0.7 (RFC 9438; Linux's fraction).
const BETA: u64 = 717;
const BETA_SCALE: u64 = 1024;
/// Segments acknowledged per segment of growth in the Reno-friendly region, in eighths of the window: (1 + β) / (1 - β)
/// / 3, that is 1 / α of RFC 9438, in whole eighths as in Linux.
const FRIENDLY_EIGHTHS: u64 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// Minimum time between calculations of the window from the curve while its size is unchanged (Linux: HZ / 32).
const LEAST_UPDATE: Duration = Duration(31_250_000);
/// Minimum growth before the first congestion: one segment for every 20 (Linux: 5 % a round trip).
const FIRST_EPOCH_COUNT: u64 = 20;
/// Maximum growth: one segment for every two acknowledged (RFC 9438 section 4.2: 1.5 × the window in a round trip).
const LEAST_COUNT: u64 = 2;
/// Time after congestion during which round trips do not count for the minimum delay (Linux: one second).
const AFTER_CONGESTION: Duration = Duration(1_000_000_000);

/// State of CUBIC.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    /// Number of acknowledged segments for one segment of growth.
    count: u64,
    /// Window at the last congestion.
    last_most: u32,
    last_cwnd: u32,
    last_update: Time,
    /// Plateau of the curve.
    origin: u32,
    /// Time from the epoch's start to the plateau, milliseconds.
    to_plateau: u64,
    epoch: Option<Time>,
    least_delay: Option<Duration>,
    acked: u64,
    /// Estimate of Reno's window.
    friendly: u32,
    hystart: HyStart,
    /// The clock of the curve (Linux: jiffies); HyStart uses a finer one.
    ticks: Ticks,
}

impl Cubic {
    pub fn new(hystart: HyStart, ticks: Ticks) -> Cubic {
        Cubic {
            count: LEAST_COUNT,
            last_most: 0,
            last_cwnd: 0,
            last_update: Time(0),
            origin: 0,
            to_plateau: 0,
            epoch: None,
            least_delay: None,
            acked: 0,
            friendly: 0,
            hystart,
            ticks,
        }
    }

    fn update(&mut self, now: Time, cwnd: u32, acked: u32) {
        self.acked += u64::from(acked);
        if self.last_cwnd == cwnd && now.since(self.last_update) <= LEAST_UPDATE {
            return;
        }
        if self.epoch.is_none() || now != self.last_update {
            self.last_cwnd = cwnd;
            self.last_update = now;
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => self.begin_epoch(now, cwnd, acked),
            };
            let target = self.curve(now.since(epoch));
            let window = u64::from(cwnd);
            self.count = if target > window { window / (target - window) } else { 100 * window };
            if self.last_most == 0 {
                self.count = self.count.min(FIRST_EPOCH_COUNT);
            }
        }
        self.follow_reno(cwnd);
        self.count = self.count.max(LEAST_COUNT);
    }

    fn begin_epoch(&mut self, now: Time, cwnd: u32, acked: u32) -> Time {
        self.epoch = Some(now);
        self.acked = u64::from(acked);
        self.friendly = cwnd;
        if self.last_most <= cwnd {
            self.to_plateau = 0;
            self.origin = cwnd;
        } else {
            // K = ∛((W_max - cwnd) / C) s with C = 0.4.
            self.to_plateau = cube_root(u64::from(self.last_most - cwnd) * 2_500_000_000);
            self.origin = self.last_most;
        }
        now
    }

    /// Returns the window on the curve one round trip after `elapsed`: C · (t - K)³ + W_max.
    fn curve(&self, elapsed: Duration) -> u64 {
        let ahead = elapsed + self.ticks.whole(self.least_delay.unwrap_or(Duration::ZERO));
        let t = ahead.0 / 1_000_000;
        let offset = u128::from(t.abs_diff(self.to_plateau));
        let delta = (offset * offset * offset * 4 / 10_000_000_000) as u64;
        let origin = u64::from(self.origin);
        if t < self.to_plateau {
            origin.saturating_sub(delta)
        } else {
            origin + delta
        }
    }

    /// Lets the window grow at least as fast as Reno with the same average window (RFC 9438 section 4.3).
    fn follow_reno(&mut self, cwnd: u32) {
        let each = (u64::from(cwnd) * FRIENDLY_EIGHTHS / 8).max(1);
        while self.acked > each {
            self.acked -= each;
            self.friendly += 1;
        }
        if self.friendly > cwnd {
            self.count = self.count.min(u64::from(cwnd / (self.friendly - cwnd)));
        }
    }
}

impl Algorithm for Cubic {
    fn take_round_trip(&mut self, window: &mut Window, progress: &Progress, rtt: Duration) {
        if self.epoch.is_some_and(|epoch| self.ticks.begin(progress.now).since(epoch) < AFTER_CONGESTION) {
            return;
        }
        let least = self.least_delay.map_or(rtt, |least| least.min(rtt));
        self.least_delay = Some(least);
        if window.in_slow_start() && self.hystart.found(window.cwnd, progress, rtt, least) {
            window.ssthresh = window.cwnd;
        }
    }

    fn grow(&mut self, window: &mut Window, progress: &Progress) {
        let acked = window.after_slow_start(progress.acked);
        if acked > 0 {
            self.update(self.ticks.begin(progress.now), window.cwnd, acked);
            window.grow_by_count(u32::try_from(self.count).unwrap_or(u32::MAX), acked);
        }
    }

    fn threshold(&mut self, window: &Window) -> u32 {
        self.epoch = None;
        let cwnd = u64::from(window.cwnd);
        // Fast convergence (RFC 9438 section 4.7).
        self.last_most = if window.cwnd < self.last_most {
            (cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE)) as u32
        } else {
            window.cwnd
        };
        ((cwnd * BETA / BETA_SCALE) as u32).max(LEAST_THRESHOLD)
    }

    fn timed_out(&mut self, now: Time, next: u64) {
        *self = Cubic::new(self.hystart.restarted(now, next), self.ticks);
    }

    fn resume(&mut self, now: Time, since: Time) {
        if let Some(epoch) = self.epoch {
            let [now, since] = [now, since].map(|time| self.ticks.begin(time));
            self.epoch = Some((epoch + now.since(since)).min(now));
        }
    }
}

/// Returns the integer part of the cube root.
fn cube_root(x: u64) -> u64 {
    let mut low = 0u64;
    let mut high = 2_642_245; // The largest whose cube fits in 64 bits.
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= x {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u32) -> Window {
        Window { cwnd, ssthresh: cwnd, count: 0, most_out: cwnd, limited: true }
    }

    #[test]
    fn cube_roots_are_exact() {
        for x in [0, 1, 7, 8, 26, 27, 999_999_999, 1_000_000_000, u64::MAX] {
            let root = cube_root(x);
            assert!(u128::from(root).pow(3) <= u128::from(x));
            assert!(u128::from(root + 1).pow(3) > u128::from(x));
        }
    }

    #[test]
    fn cubic_reduces_the_window_by_three_tenths() {
        let mut cubic = Cubic::new(HyStart::new(false, false), Ticks::NONE);
        assert_eq!(cubic.threshold(&window(1000)), 700);
        assert_eq!(cubic.last_most, 1000);
        // Congestion below the last plateau lowers the next one: (1 + β) / 2.
        assert_eq!(cubic.threshold(&window(700)), 490);
        assert_eq!(cubic.last_most, 595);
        assert_eq!(cubic.threshold(&window(2)), 2);
    }

    #[test]
    fn cubic_curve_reaches_its_plateau_after_k() {
        let mut cubic = Cubic::new(HyStart::new(false, false), Ticks::NONE);
        cubic.threshold(&window(1000));
        cubic.begin_epoch(Time(0), 700, 0);
        // ∛(300 / 0.4) = 9.086 s.
        assert_eq!(cubic.to_plateau, 9085);
        assert_eq!(cubic.curve(Duration(9_085_000_000)), 1000);
        assert_eq!(cubic.curve(Duration(0)), 701);
        assert_eq!(cubic.curve(Duration(14_085_000_000)), 1050);
    }
}
