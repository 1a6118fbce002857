//! How long packets wait at an output interface: a histogram of fixed size, so that a port costs the same memory whatever passes it.

use hdrhistogram::Histogram;

use crate::counters::QueueingDelayCounters;
use crate::time::Duration;

/// Two significant digits: a bucket is at most 1/128 of its values wide.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Waits of the packets that have started on the line.
#[derive(Debug)]
pub(crate) struct QueueingDelay {
    /// In nanoseconds; takes any 64-bit figure.
    histogram: Histogram<u64>,
    /// The histogram knows these only within its buckets.
    sum: u128,
    max: u64,
}

impl QueueingDelay {
    pub fn new() -> QueueingDelay {
        let histogram = Histogram::new_with_bounds(1, u64::MAX, SIGNIFICANT_DIGITS).expect("bounds that fit");
        QueueingDelay { histogram, sum: 0, max: 0 }
    }

    /// A packet starts on the line, so long after it came to the interface.
    pub fn record(&mut self, waited: Duration) {
        self.histogram.saturating_record(waited.0);
        self.sum += u128::from(waited.0);
        self.max = self.max.max(waited.0);
    }

    pub fn clear(&mut self) {
        self.histogram.reset();
        (self.sum, self.max) = (0, 0);
    }

    /// None before the first packet.
    pub fn counters(&self) -> Option<QueueingDelayCounters> {
        let packets = self.histogram.len();
        let mean = self.sum.checked_div(u128::from(packets))?;
        // A bucket tells its greatest value, which none of its packets need have.
        let quantile = |share: f64| self.histogram.value_at_quantile(share).min(self.max);
        Some(QueueingDelayCounters {
            packets,
            mean_ns: u64::try_from(mean).unwrap_or(u64::MAX),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            max_ns: self.max,
        })
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
        fn quantiles_are_those_of_the_sorted_list_within_one_per_cent(
            waits in prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(shift, any)| any >> shift), 1..400),
        ) {
            let shown = of(&waits).counters().unwrap();
            let mut sorted = waits.clone();
            sorted.sort_unstable();
            // The least value that so many per cent of all do not exceed.
            let exact = |percent: usize| sorted[(waits.len() * percent).div_ceil(100) - 1];
            for (shown, exact) in [(shown.p50_ns, exact(50)), (shown.p99_ns, exact(99))] {
                prop_assert!(shown.abs_diff(exact) <= exact / 100, "{} for {}", shown, exact);
            }
            let sum: u128 = waits.iter().copied().map(u128::from).sum();
            prop_assert_eq!(u128::from(shown.mean_ns), sum / waits.len() as u128);
            prop_assert_eq!((shown.packets, shown.max_ns), (waits.len() as u64, *sorted.last().unwrap()));
            prop_assert!(shown.p50_ns <= shown.p99_ns && shown.p99_ns <= shown.max_ns);
        }

        /// One more wait above all others lowers nothing.
        #[test]
        fn it_is_monotone(waits in prop::collection::vec(0u64..1 << 40, 1..200), more in 0u64..1 << 20) {
            let before = of(&waits).counters().unwrap();
            let longest = waits.iter().max().unwrap() + more;
            let after = of(&[waits, vec![longest]].concat()).counters().unwrap();
            prop_assert!(before.mean_ns <= after.mean_ns && before.p50_ns <= after.p50_ns);
            prop_assert!(before.p99_ns <= after.p99_ns && before.max_ns <= after.max_ns);
        }
    }

    #[test]
    fn there_is_nothing_to_show_before_the_first_packet_and_after_clearing() {
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
