//! Load-interval averages: what `show` prints as a rate.
//!
//! `r = s + (r - s)·exp(-t/L)` with `s` the rate of the last sampling period of `t` seconds and `L` the load interval.
//! These figures are only shown; no decision depends on them.

use crate::time::{Duration, Time};

/// Sampling period of load-interval averages, seconds. Unconfirmed: a vendor note.
pub const LOAD_SAMPLE_S: u32 = 5;

const SAMPLE: Duration = Duration::from_secs(LOAD_SAMPLE_S as u64);

/// The average rate of a stream of packets.
#[derive(Clone, Debug)]
pub(crate) struct LoadAverage {
    bps: f64,
    pps: f64,
    bytes: u64,
    packets: u64,
    since: Time,
}

impl LoadAverage {
    pub fn new(start: Time) -> LoadAverage {
        LoadAverage { bps: 0.0, pps: 0.0, bytes: 0, packets: 0, since: start }
    }

    /// Counts a packet at `now`, after the sampling periods that ended before.
    pub fn add(&mut self, now: Time, bytes: u32, load_interval_s: u32) {
        self.advance(now, load_interval_s);
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }

    /// The averages as of `now`: bits and packets per second.
    pub fn rates(&mut self, now: Time, load_interval_s: u32) -> (f64, f64) {
        self.advance(now, load_interval_s);
        (self.bps, self.pps)
    }

    fn advance(&mut self, now: Time, load_interval_s: u32) {
        if now.since(self.since) >= SAMPLE {
            self.sample(now, load_interval_s);
        }
    }

    /// Kept apart so that no packet pays for the exponential.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, now: Time, load_interval_s: u32) {
        let periods = now.since(self.since).0 / SAMPLE.0;
        let sample_s = f64::from(LOAD_SAMPLE_S);
        let keep = (-sample_s / f64::from(load_interval_s)).exp();
        let sampled_bps = self.bytes as f64 * 8.0 / sample_s;
        let sampled_pps = self.packets as f64 / sample_s;
        // The periods after the first were empty.
        let keep_rest = keep.powf((periods - 1) as f64);
        self.bps = (sampled_bps + (self.bps - sampled_bps) * keep) * keep_rest;
        self.pps = (sampled_pps + (self.pps - sampled_pps) * keep) * keep_rest;
        self.bytes = 0;
        self.packets = 0;
        self.since += Duration(periods * SAMPLE.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published policing run offered about 785 kb/s for about 33.6 s, and then printed 83000 bps.
    #[test]
    fn half_a_minute_of_traffic_in_a_five_minute_average() {
        let mut average = LoadAverage::new(Time(0));
        for packet in 0..3360 {
            average.add(Time(packet * 10_000_000), 981, 300);
        }
        let (bps, _) = average.rates(Time(35_000_000_000), 300);
        assert_eq!((bps / 1000.0).round(), 83.0, "{bps}");
    }

    #[test]
    fn empty_periods_decay() {
        let mut average = LoadAverage::new(Time(0));
        average.add(Time(0), 1000, 30);
        let at_once = average.clone().rates(Time(5_000_000_000), 30).0;
        let mut step_by_step = average.clone();
        for second in 5..=65 {
            step_by_step.rates(Time(second * 1_000_000_000), 30);
        }
        let later = average.rates(Time(65_000_000_000), 30).0;
        assert!((later - at_once * (-2.0f64).exp()).abs() < 1e-9);
        assert!((later - step_by_step.rates(Time(65_000_000_000), 30).0).abs() < 1e-9);
    }
}
