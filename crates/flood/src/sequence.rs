//! What a receiver learns from the sequence numbers of one source. Pure.

use std::collections::BTreeSet;

/// Counts loss, reordering and repetition of one source's datagrams.
///
/// The numbers missing below the greatest one are kept, so that a late datagram is told from a repeated one however
/// late it is. Where more than [`MISSING_KEPT`] are missing, the lowest are taken for lost for good.
#[derive(Debug, Default)]
pub struct Sequence {
    /// One above the greatest number that has arrived.
    next: u64,
    missing: BTreeSet<u64>,
    given_up: u64,
    /// Datagrams that arrived, repeated ones left out.
    pub received: u64,
    /// Datagrams that arrived after one with a greater number.
    pub reordered: u64,
    /// Datagrams that had arrived before.
    pub repeated: u64,
}

/// How many missing numbers are kept: more than any queue holds.
pub const MISSING_KEPT: usize = 65_536;

impl Sequence {
    /// Notes an arrival.
    pub fn arrived(&mut self, number: u64) {
        if number >= self.next {
            let gap = number - self.next;
            // Of a great gap only the upper part can be kept.
            let kept = gap.min(MISSING_KEPT as u64);
            self.given_up += gap - kept;
            self.missing.extend(number - kept..number);
            while self.missing.len() > MISSING_KEPT {
                self.missing.pop_first();
                self.given_up += 1;
            }
            self.next = number + 1;
            self.received += 1;
        } else if self.missing.remove(&number) {
            self.received += 1;
            self.reordered += 1;
        } else {
            self.repeated += 1;
        }
    }

    /// Numbers below the greatest one that have not arrived. What was lost at the very end only the sender knows.
    pub fn missing(&self) -> u64 {
        self.missing.len() as u64 + self.given_up
    }
}

/// Interarrival jitter of RFC 3550, section 6.4.1, in nanoseconds; clocks need not agree.
#[derive(Debug, Default)]
pub struct Jitter {
    transit: Option<i128>,
    estimate: f64,
}

impl Jitter {
    /// Notes an arrival by the sender's stamp and the receiver's clock.
    pub fn arrived(&mut self, sent_ns: u64, received_ns: u64) {
        let transit = i128::from(received_ns) - i128::from(sent_ns);
        if let Some(before) = self.transit.replace(transit) {
            self.estimate += ((transit - before).abs() as f64 - self.estimate) / 16.0;
        }
    }

    /// The estimate now.
    pub fn nanoseconds(&self) -> f64 {
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arrivals_are_told_apart() {
        let mut sequence = Sequence::default();
        for number in [0, 1, 4, 3, 3, 5, 0] {
            sequence.arrived(number);
        }
        assert_eq!((sequence.received, sequence.missing(), sequence.reordered, sequence.repeated), (5, 1, 1, 2));
    }

    #[test]
    fn a_gap_of_any_size_takes_bounded_memory() {
        let mut sequence = Sequence::default();
        sequence.arrived(u64::MAX - 1);
        assert_eq!(sequence.missing(), u64::MAX - 1);
        assert_eq!(sequence.missing.len(), MISSING_KEPT);
    }

    proptest! {
        #[test]
        fn every_number_is_received_or_missing(numbers in prop::collection::vec(0u64..300, 1..400)) {
            let mut sequence = Sequence::default();
            let mut seen = BTreeSet::new();
            let (mut repeated, mut reordered, mut greatest) = (0, 0, None);
            for &number in &numbers {
                sequence.arrived(number);
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
        fn an_even_stream_has_no_jitter(start: u32, transit: u32, gap in 1u64..1_000_000) {
            let mut jitter = Jitter::default();
            for number in 0..20 {
                let sent = u64::from(start) + number * gap;
                jitter.arrived(sent, sent + u64::from(transit));
            }
            prop_assert_eq!(jitter.nanoseconds(), 0.0);
        }
    }
}
