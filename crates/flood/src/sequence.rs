//! Evaluation of the sequence numbers of one source by a receiver. Pure.

use std::collections::BTreeMap;

/// Counter of loss, reordering and repetition of one source's datagrams.
///
/// The missing numbers below the greatest one are stored as gaps, so that a late datagram is distinguished from a
/// repeated one however late it is, and a gap of any size costs the same. Beyond [`GAPS_KEPT`] gaps, the numbers in the
/// lowest gap count as lost permanently.
#[derive(Debug, Default)]
pub struct Sequence {
    /// Greatest received number plus one.
    next: u64,
    /// Numbers that have not arrived, as ranges from the key up to the value (exclusive). No two ranges touch.
    gaps: BTreeMap<u64, u64>,
    missing: u64,
    /// Datagrams that arrived, without repeated ones.
    pub received: u64,
    /// Datagrams that arrived after one with a greater number.
    pub reordered: u64,
    /// Datagrams that had arrived before.
    pub repeated: u64,
}

/// Maximum number of stored gaps: more than any queue holds datagrams.
pub const GAPS_KEPT: usize = 65_536;

impl Sequence {
    /// Records the arrival of a number below `u64::MAX`.
    pub fn record_arrival(&mut self, number: u64) {
        if number >= self.next {
            if number > self.next {
                self.missing += number - self.next;
                self.keep(self.next, number);
            }
            self.next = number + 1;
            self.received += 1;
        } else if self.fill(number) {
            self.missing -= 1;
            self.received += 1;
            self.reordered += 1;
        } else {
            self.repeated += 1;
        }
    }

    fn keep(&mut self, from: u64, to: u64) {
        self.gaps.insert(from, to);
        if self.gaps.len() > GAPS_KEPT {
            self.gaps.pop_first();
        }
    }

    /// Removes a number from its gap; false if it is in none.
    fn fill(&mut self, number: u64) -> bool {
        let Some((&from, &to)) = self.gaps.range(..=number).next_back().filter(|(_, to)| number < **to) else {
            return false;
        };
        self.gaps.remove(&from);
        if number + 1 < to {
            self.keep(number + 1, to);
        }
        if from < number {
            self.keep(from, number);
        }
        true
    }

    /// Returns the missing numbers below the greatest one. Losses at the very end are known only to the sender.
    pub fn missing(&self) -> u64 {
        self.missing
    }
}

/// Interarrival jitter of RFC 3550, section 6.4.1, in nanoseconds; the clocks need not be synchronised.
#[derive(Debug, Default)]
pub struct Jitter {
    transit: Option<i128>,
    estimate: f64,
}

impl Jitter {
    /// Records an arrival by the sender's stamp and the receiver's clock.
    pub fn record_arrival(&mut self, sent_ns: u64, received_ns: u64) {
        let transit = i128::from(received_ns) - i128::from(sent_ns);
        if let Some(before) = self.transit.replace(transit) {
            self.estimate += ((transit - before).abs() as f64 - self.estimate) / 16.0;
        }
    }

    /// Returns the present estimate.
    pub fn nanoseconds(&self) -> f64 {
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    #[test]
    fn arrivals_are_classified_as_new_reordered_or_repeated() {
        let mut sequence = Sequence::default();
        for number in [0, 1, 4, 3, 3, 5, 0] {
            sequence.record_arrival(number);
        }
        assert_eq!((sequence.received, sequence.missing(), sequence.reordered, sequence.repeated), (5, 1, 1, 2));
    }

    #[test]
    fn gap_of_any_size_is_stored_once() {
        let mut sequence = Sequence::default();
        sequence.record_arrival(u64::MAX - 1);
        assert_eq!((sequence.missing(), sequence.gaps.len()), (u64::MAX - 1, 1));
        sequence.record_arrival(7);
        sequence.record_arrival(7);
        assert_eq!((sequence.missing(), sequence.reordered, sequence.repeated), (u64::MAX - 2, 1, 1));
    }

    #[test]
    fn stored_gaps_take_bounded_memory() {
        let mut sequence = Sequence::default();
        for number in 0..=GAPS_KEPT as u64 {
            sequence.record_arrival(2 * number + 1);
        }
        assert_eq!((sequence.missing(), sequence.gaps.len()), (GAPS_KEPT as u64 + 1, GAPS_KEPT));
        // The lowest gap counts as lost for good: its datagrams now count as repeated.
        sequence.record_arrival(0);
        sequence.record_arrival(2);
        assert_eq!((sequence.repeated, sequence.reordered, sequence.missing()), (1, 1, GAPS_KEPT as u64));
    }

    proptest! {
        #[test]
        fn every_number_is_received_or_missing(numbers in prop::collection::vec(0u64..300, 1..400)) {
            let mut sequence = Sequence::default();
            let mut seen = BTreeSet::new();
            let (mut repeated, mut reordered, mut greatest) = (0, 0, None);
            for &number in &numbers {
                sequence.record_arrival(number);
                if !seen.insert(number) {
                    repeated += 1;
                } else if greatest.is_some_and(|g| number < g) {
                    reordered += 1;
                }
                greatest = greatest.max(Some(number));
            }
            prop_assert_eq!(sequence.received, seen.len() as u64);
            prop_assert_eq!(sequence.received + sequence.missing(), greatest.unwrap() + 1);
            prop_assert_eq!(sequence.repeated, repeated);
            prop_assert_eq!(sequence.reordered, reordered);
        }

        #[test]
        fn evenly_spaced_stream_has_no_jitter(start: u32, transit: u32, gap in 1u64..1_000_000) {
            let mut jitter = Jitter::default();
            for number in 0..20 {
                let sent = u64::from(start) + number * gap;
                jitter.record_arrival(sent, sent + u64::from(transit));
            }
            prop_assert_eq!(jitter.nanoseconds(), 0.0);
        }
    }
}
