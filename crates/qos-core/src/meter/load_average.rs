//! Load-interval averages: the rates printed by `show`.
//!
//! `r = s + (r - s)·exp(-t/L)` with `s` the rate of the last sampling period of `t` seconds and `L` the load interval.
//! These values are only shown; no decision depends on them.

use crate::counters::count::Count;
use crate::time::{Duration, Time};

/// Sampling period of load-interval averages, seconds. Unconfirmed: a vendor note.
pub const LOAD_SAMPLE_S: u32 = 5;

const SAMPLE: Duration = Duration::from_secs(LOAD_SAMPLE_S as u64);

/// Counted packets, and their average rate.
#[derive(Clone, Debug)]
pub(crate) struct LoadAverage {
    pub count: Count,
    /// Count before the present sampling period.
    before: Count,
    /// The end of the present sampling period.
    until: Time,
    bps: f64,
    pps: f64,
}

impl LoadAverage {
    pub fn new(start: Time) -> LoadAverage {
        LoadAverage { count: Count::default(), before: Count::default(), until: start + SAMPLE, bps: 0.0, pps: 0.0 }
    }

    /// Counts a packet at `now`, after the sampling periods that ended before.
    #[inline]
    pub fn add(&mut self, now: Time, bytes: u32, load_interval_s: u32) {
        self.advance(now, load_interval_s);
        self.count.add(bytes);
    }

    /// Returns the averages as of `now`: bits and packets per second.
    pub fn rates(&mut self, now: Time, load_interval_s: u32) -> (f64, f64) {
        self.advance(now, load_interval_s);
        (self.bps, self.pps)
    }

    #[inline]
    fn advance(&mut self, now: Time, load_interval_s: u32) {
        if now >= self.until {
            self.sample(now, load_interval_s);
        }
    }

    /// Ends a sampling period. A separate function, so that no packet pays for the exponential.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, now: Time, load_interval_s: u32) {
        let periods = 1 + now.since(self.until).0 / SAMPLE.0;
        let sample_s = f64::from(LOAD_SAMPLE_S);
        let keep = (-sample_s / f64::from(load_interval_s)).exp();
        let sampled_bps = (self.count.bytes - self.before.bytes) as f64 * 8.0 / sample_s;
        let sampled_pps = (self.count.packets - self.before.packets) as f64 / sample_s;
        // The periods after the first were empty.
        let keep_rest = keep.powf((periods - 1) as f64);
        self.bps = (sampled_bps + (self.bps - sampled_bps) * keep) * keep_rest;
        self.pps = (sampled_pps + (self.pps - sampled_pps) * keep) * keep_rest;
        self.before = self.count;
        self.until += Duration(periods * SAMPLE.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a minute of 784.8 kb/s: 1 - exp(-30/300) of it.
    #[test]
    fn load_average_weights_half_a_minute_in_five_minutes() {
        let mut average = LoadAverage::new(Time(0));
        for packet in 0..3000 {
            average.add(Time(packet * 10_000_000), 981, 300);
        }
        let (bps, _) = average.rates(Time(30_000_000_000), 300);
        let expected = 784_800.0 * (1.0 - (-0.1f64).exp());
        assert!((bps - expected).abs() < 1.0, "{bps} instead of {expected}");
    }

    /// The published policing print has 2 998 927 bytes and 83000 bps. With these bytes this average reaches 79 309 b/s
    /// at most, which is when all come in one sample: the print is not reproduced.
    #[test]
    fn the_published_rate_is_above_any_average_of_the_published_bytes() {
        let most = 2_998_927.0 * 8.0 / 5.0 * (1.0 - (-5.0f64 / 300.0).exp());
        for spread_s in [5, 15, 30, 60] {
            let mut average = LoadAverage::new(Time(0));
            for packet in 0..2_000 {
                average.add(Time(packet * spread_s * 500_000), 1_499, 300);
            }
            let (bps, _) = average.rates(Time(spread_s * 1_000_000_000), 300);
            assert!(bps <= most && most < 83_000.0, "{bps}, at most {most}");
        }
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

    /// Packets a second are averaged as bits a second are: of packets of 100 bytes there are 800 times as many bits,
    /// while the rate rises, falls and is gone.
    #[test]
    fn packets_are_averaged_as_bits_are() {
        let mut average = LoadAverage::new(Time(0));
        let mut now = 0;
        for (gap, packets) in [(100_000_000, 150), (20_000_000, 500), (1_000_000_000, 20), (60_000_000_000, 1)] {
            for _ in 0..packets {
                now += gap;
                average.add(Time(now), 100, 30);
                let (bps, pps) = average.rates(Time(now), 30);
                assert!((bps - 800.0 * pps).abs() < 1e-6, "{bps} and {pps} at {now}");
            }
            assert!(average.rates(Time(now), 30).1 > 0.1);
        }
    }
}
