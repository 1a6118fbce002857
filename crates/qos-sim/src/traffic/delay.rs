//! A histogram of times: one-way delays of packets, and times of whole writes.

use crate::report::DelayReport;

/// Logarithm of the number of buckets for each power of two: a bucket is at most 1/64 of its values wide.
const PRECISION: u32 = 6;

/// Times in nanoseconds, by buckets on a log-linear scale.
#[derive(Debug, Default, Clone)]
pub(crate) struct Delays {
    /// Number of the first bucket in `counts`: delays of a stream are usually similar.
    first: usize,
    counts: Vec<u64>,
    packets: u64,
    sum: u128,
    max: u64,
}

fn bucket(time: u64) -> usize {
    let shift = (u64::BITS - 1 - PRECISION).saturating_sub(time.leading_zeros());
    (shift as usize * (1 << PRECISION)) + (time >> shift) as usize
}

/// Returns the maximum time in a bucket.
fn greatest(bucket: usize) -> u64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let first = ((bucket - (shift << PRECISION)) as u64) << shift;
    first + ((1 << shift) - 1)
}

impl Delays {
    /// Counts a time.
    pub fn record(&mut self, time: u64) {
        self.count(bucket(time), 1);
        self.packets += 1;
        self.sum += u128::from(time);
        self.max = self.max.max(time);
    }

    /// Adds the times of another histogram.
    pub fn add(&mut self, other: &Delays) {
        for (offset, count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.count(other.first + offset, *count);
        }
        self.packets += other.packets;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    fn count(&mut self, bucket: usize, packets: u64) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - bucket));
            self.first = bucket;
        }
        let index = bucket - self.first;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += packets;
    }

    /// Returns the report; `None` without a packet. `buckets`: with the histogram.
    pub fn report(&self, buckets: bool) -> Option<DelayReport> {
        let mean = self.sum.checked_div(u128::from(self.packets))?;
        let counted = || self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let histogram = |(offset, count): (usize, &u64)| (greatest(self.first + offset).min(self.max), *count);
        Some(DelayReport {
            packets: self.packets,
            mean_ns: mean as u64,
            p50_ns: self.quantile(50),
            p99_ns: self.quantile(99),
            max_ns: self.max,
            histogram: if buckets { counted().map(histogram).collect() } else { Vec::new() },
        })
    }

    /// Returns the upper limit of the bucket that contains the percentile, at most the maximum.
    fn quantile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.packets) * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        let found = self.counts.iter().position(|packets| {
            below += u128::from(*packets);
            below >= rank
        });
        found.map_or(self.max, |offset| greatest(self.first + offset)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_width_is_at_most_a_64th_of_its_values() {
        for time in (0..40).flat_map(|power| [(1u64 << power) - 1, 1 << power, (1 << power) + (1 << power) / 3]) {
            let found = greatest(bucket(time));
            assert!(found >= time && found - time <= time / 64, "{time} in a bucket up to {found}");
        }
    }

    #[test]
    fn quantiles_of_two_histograms_are_those_of_all_packets() {
        let (mut one, mut other) = (Delays::default(), Delays::default());
        assert!(one.report(true).is_none());
        (1..=98).for_each(|time| other.record(time * 1_000_000));
        one.record(1_000);
        one.record(1_000_000_000);
        one.add(&other);
        let report = one.report(true).unwrap();
        assert_eq!((report.packets, report.max_ns), (100, 1_000_000_000));
        assert!((49_000_000..49_800_000).contains(&report.p50_ns), "{}", report.p50_ns);
        assert!((98_000_000..99_600_000).contains(&report.p99_ns), "{}", report.p99_ns);
        assert_eq!(report.histogram.iter().map(|(_, count)| count).sum::<u64>(), 100);
        assert_eq!(report.histogram[0].1, 1);
    }
}
