//! Waiting times of packets at an output interface: a histogram of fixed size, so that a port costs the same memory
//! for any traffic.
//!
//! The scale is log-linear, as that of the `hdrhistogram` crate, which needs five times as many instructions per value:
//! too many for each packet.

use crate::counters::port::QueueingDelayCounters;
use crate::time::Duration;

/// Logarithm of the number of buckets for each power of two: a bucket is at most 1/128 of its values wide.
const PRECISION: u32 = 7;

/// Number of buckets up to the longest duration: below 2⁸ one for each value, above it 2⁷ for each of the other 56
/// powers of two.
const BUCKETS: usize = 58 << PRECISION;

/// Waits of the packets that have started on the line, in nanoseconds.
#[derive(Debug)]
pub(crate) struct QueueingDelay {
    /// Packets by length of wait.
    buckets: Vec<u64>,
    packets: u64,
    sum: u128,
    max: u64,
}

#[inline]
fn bucket(wait: u64) -> usize {
    let shift = (u64::BITS - 1 - PRECISION).saturating_sub(wait.leading_zeros());
    (shift as usize * (1 << PRECISION)) + (wait >> shift) as usize
}

/// Returns the greatest wait that is counted in a bucket.
fn greatest(bucket: usize) -> u64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let first = ((bucket - (shift << PRECISION)) as u64) << shift;
    first + ((1 << shift) - 1)
}

impl QueueingDelay {
    pub fn new() -> QueueingDelay {
        QueueingDelay { buckets: vec![0; BUCKETS], packets: 0, sum: 0, max: 0 }
    }

    /// Records the wait of a packet that starts on the line.
    #[inline]
    pub fn record(&mut self, waited: Duration) {
        self.buckets[bucket(waited.0)] += 1;
        self.packets += 1;
        self.sum += u128::from(waited.0);
        self.max = self.max.max(waited.0);
    }

    pub fn clear(&mut self) {
        self.buckets.fill(0);
        (self.packets, self.sum, self.max) = (0, 0, 0);
    }

    /// Returns the counters; `None` before the first packet.
    pub fn counters(&self) -> Option<QueueingDelayCounters> {
        let mean = self.sum.checked_div(u128::from(self.packets))?;
        Some(QueueingDelayCounters {
            packets: self.packets,
            mean_ns: u64::try_from(mean).unwrap_or(u64::MAX),
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: self.max,
        })
    }

    /// Returns the upper bound of the bucket that contains the percentile, or the maximum if it is in that bucket.
    fn quantile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.packets) * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        let found = self.buckets.iter().position(|packets| {
            below += u128::from(*packets);
            below >= rank
        });
        found.map_or(self.max, greatest).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(waits: &[u64]) -> QueueingDelay {
        let mut delay = QueueingDelay::new();
        waits.iter().for_each(|wait| delay.record(Duration(*wait)));
        delay
    }

    proptest! {
        #[test]
        fn a_bucket_is_at_most_one_per_cent_wide(
            wait in (0u32..64, any::<u64>()).prop_map(|(shift, any)| any >> shift)
        ) {
            let shown = greatest(bucket(wait));
            prop_assert!(shown >= wait && shown - wait <= wait / 128);
            prop_assert_eq!(bucket(shown), bucket(wait));
            prop_assert!(shown == u64::MAX || bucket(shown + 1) == bucket(wait) + 1);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_list_within_one_per_cent(
            waits in prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(shift, any)| any >> shift), 1..400),
        ) {
            let shown = of(&waits).counters().unwrap();
            let mut sorted = waits.clone();
            sorted.sort_unstable();
            // The smallest value that this percentage of all delays does not exceed.
            let exact = |percent: usize| sorted[(waits.len() * percent).div_ceil(100) - 1];
            for (shown, exact) in [(shown.p50_ns, exact(50)), (shown.p99_ns, exact(99))] {
                prop_assert!(shown.abs_diff(exact) <= exact / 100, "{} for {}", shown, exact);
            }
            let sum: u128 = waits.iter().copied().map(u128::from).sum();
            prop_assert_eq!(u128::from(shown.mean_ns), sum / waits.len() as u128);
            prop_assert_eq!((shown.packets, shown.max_ns), (waits.len() as u64, *sorted.last().unwrap()));
            prop_assert!(shown.p50_ns <= shown.p99_ns && shown.p99_ns <= shown.max_ns);
        }

        /// A wait above all others lowers no quantile.
        #[test]
        fn buckets_are_monotone(waits in prop::collection::vec(0u64..1 << 40, 1..200), more in 0u64..1 << 20) {
            let before = of(&waits).counters().unwrap();
            let longest = waits.iter().max().unwrap() + more;
            let after = of(&[waits, vec![longest]].concat()).counters().unwrap();
            prop_assert!(before.mean_ns <= after.mean_ns && before.p50_ns <= after.p50_ns);
            prop_assert!(before.p99_ns <= after.p99_ns && before.max_ns <= after.max_ns);
        }
    }

    #[test]
    fn every_duration_has_its_bucket() {
        assert_eq!((bucket(0), bucket(255), bucket(256), bucket(u64::MAX)), (0, 255, 256, BUCKETS - 1));
    }

    #[test]
    fn delay_statistics_are_empty_before_the_first_packet_and_after_clearing() {
        let mut delay = QueueingDelay::new();
        assert_eq!(delay.counters(), None);
        delay.record(Duration(0));
        assert_eq!(
            delay.counters(),
            Some(QueueingDelayCounters { packets: 1, mean_ns: 0, p50_ns: 0, p99_ns: 0, max_ns: 0 })
        );
        delay.clear();
        assert_eq!(delay.counters(), None);
    }
}
