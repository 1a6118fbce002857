//! Smoothed round trips, their variance, and the retransmission timeout (RFC 6298 with Linux's bounds).

use crate::tcp::settings::Settings;
use crate::tcp::ticks::Ticks;
use qos_core::time::{Duration, Time};

/// Timeout before the first sample (RFC 6298, Linux TCP_TIMEOUT_INIT).
pub(crate) const INITIAL_RTO: Duration = Duration(1_000_000_000);
/// Timeout after the SYN was retransmitted and nothing was measured (RFC 6298 section 5.7, Linux TCP_TIMEOUT_FALLBACK).
const FALLBACK_RTO: Duration = Duration(3_000_000_000);
/// Longest timeout (Linux TCP_RTO_MAX).
pub(crate) const MAX_RTO: Duration = Duration(120_000_000_000);
/// Scales of the stored values: the mean deviation with gain 1/4 is scaled by 4, the mean with gain 1/8 by 8.
const MEAN_SHIFT: u32 = 3;
const DEVIATION_SHIFT: u32 = 2;

/// Estimator of round trips and of the timeout.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// 8 × the smoothed round trip; zero: no sample yet.
    smoothed: u64,
    /// 4 × the mean deviation.
    deviation: u64,
    /// Maximum deviation of the present round, at least the floor.
    deviation_max: u64,
    /// Addition to the smoothed round trip.
    variance: u64,
    /// The round ends when this sequence number is acknowledged.
    round_end: u64,
    floor: u64,
    ticks: Ticks,
    /// Timeout without back-off, in whole ticks.
    base: Duration,
    backoff: u32,
    /// Whether the floor applies to the sum (RFC 6298) instead of the variance.
    floor_on_sum: bool,
    least: MinRtt,
}

impl RttEstimator {
    fn new(settings: &Settings) -> RttEstimator {
        RttEstimator {
            smoothed: 0,
            deviation: 0,
            deviation_max: 0,
            variance: 0,
            round_end: 0,
            floor: settings.min_rto_ns,
            ticks: settings.ticks,
            base: INITIAL_RTO,
            backoff: 0,
            floor_on_sum: !settings.rto_floor_on_variance,
            least: MinRtt::default(),
        }
    }

    /// Returns the estimator after a handshake that measured `rtt` (`None` if the SYN was retransmitted without
    /// timestamps).
    pub fn after_handshake(settings: &Settings, now: Time, rtt: Option<Duration>, next: u64) -> RttEstimator {
        let mut estimator = RttEstimator::new(settings);
        match rtt {
            Some(rtt) => {
                estimator.sample(rtt, next, next);
                estimator.sample_least(now, rtt);
            }
            None => estimator.base = FALLBACK_RTO,
        }
        estimator
    }

    /// Takes a sample of the round trip; `una` and `next` are the sender's first unacknowledged and next byte.
    ///
    /// Like Linux: within a round the variance rises with the largest deviation at once, at its end it falls by a
    /// quarter of the difference; a round trip that is shorter than expected weighs an eighth as much in the deviation.
    pub fn sample(&mut self, rtt: Duration, una: u64, next: u64) {
        let rtt = rtt.0.max(1);
        let least = if self.floor_on_sum { 1 } else { self.floor };
        if self.smoothed == 0 {
            self.smoothed = rtt << MEAN_SHIFT;
            self.deviation = rtt << 1;
            self.variance = self.deviation.max(least);
            self.deviation_max = self.variance;
            self.round_end = next;
        } else {
            let error = rtt as i64 - (self.smoothed >> MEAN_SHIFT) as i64;
            self.smoothed = self.smoothed.saturating_add_signed(error);
            let mut change = error.abs() - (self.deviation >> DEVIATION_SHIFT) as i64;
            if error < 0 && change > 0 {
                change >>= MEAN_SHIFT;
            }
            self.deviation = self.deviation.saturating_add_signed(change);
            if self.deviation > self.deviation_max {
                self.deviation_max = self.deviation;
                self.variance = self.variance.max(self.deviation_max);
            }
            if una > self.round_end {
                if self.deviation_max < self.variance {
                    self.variance -= (self.variance - self.deviation_max) >> 2;
                }
                self.round_end = next;
                self.deviation_max = least;
            }
        }
        let sum = (self.smoothed >> MEAN_SHIFT) + self.variance;
        let sum = if self.floor_on_sum { sum.max(self.floor) } else { sum };
        self.base = self.ticks.whole(Duration(sum)).min(MAX_RTO);
        self.backoff = 0;
    }

    /// Takes a sample for the minimum round trip.
    pub fn sample_least(&mut self, now: Time, rtt: Duration) {
        self.least.sample(now, rtt);
    }

    /// Returns the least round trip of the last five minutes, unless there is no sample yet.
    pub fn least(&self) -> Option<Duration> {
        self.least.get()
    }

    /// Returns the timeout with its back-off.
    pub fn timeout(&self) -> Duration {
        Duration(self.base.0.checked_shl(self.backoff).map_or(MAX_RTO.0, |t| t.min(MAX_RTO.0)))
    }

    /// Doubles the timeout until the next sample.
    pub fn back_off(&mut self) {
        if self.timeout() < MAX_RTO {
            self.backoff += 1;
        }
    }

    /// Returns the least retransmission timeout.
    pub fn floor(&self) -> Duration {
        Duration(self.floor)
    }

    /// Returns the smoothed round trip, unless there is no sample yet.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed != 0).then_some(Duration(self.smoothed >> MEAN_SHIFT))
    }
}

/// The least round trip of the last five minutes (sysctl tcp_min_rtt_wlen 300): Kathleen Nichols' windowed minimum,
/// with the minimum and two later minimums, each at most a quarter of the window after the previous one.
#[derive(Clone, Copy, Debug, Default)]
struct MinRtt {
    /// Samples with their times, best first; `None` before the first.
    best: Option<[(Time, u64); 3]>,
}

impl MinRtt {
    const WINDOW: u64 = 300_000_000_000;

    fn sample(&mut self, now: Time, rtt: Duration) {
        let new = (now, rtt.0.max(1));
        let Some(best) = &mut self.best else {
            self.best = Some([new; 3]);
            return;
        };
        if new.1 <= best[0].1 || now.since(best[2].0).0 > Self::WINDOW {
            *best = [new; 3];
            return;
        }
        if new.1 <= best[1].1 {
            best[1] = new;
            best[2] = new;
        } else if new.1 <= best[2].1 {
            best[2] = new;
        }
        let age = now.since(best[0].0).0;
        if age > Self::WINDOW {
            best[0] = best[1];
            best[1] = best[2];
            best[2] = new;
            if now.since(best[0].0).0 > Self::WINDOW {
                best[0] = best[1];
                best[1] = best[2];
            }
        } else if best[1].0 == best[0].0 && age > Self::WINDOW / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].0 == best[1].0 && age > Self::WINDOW / 2 {
            best[2] = new;
        }
    }

    /// Returns the least round trip, unless there is no sample yet.
    fn get(&self) -> Option<Duration> {
        self.best.map(|best| Duration(best[0].1))
    }
}
