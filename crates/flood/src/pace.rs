//! Due times of datagrams, and the treatment of a late sender. Pure: no clock, no IO.

/// Nanoseconds between two datagrams, as a fraction, so that rounding errors do not add up over a long flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    numerator: u64,
    denominator: u64,
}

const SECOND: u64 = 1_000_000_000;
/// Longest gap: with it and 2^63 ns of time, all products fit 128 bits.
const LONGEST_NS: u64 = 3600 * SECOND;

impl Gap {
    /// Returns the gap between datagrams of `bytes` at `rate` bits per second; `None` if it is below 1 ns or above an
    /// hour.
    pub fn of_rate(bytes: u32, rate: u64) -> Option<Self> {
        Self::new(u64::from(bytes) * 8 * SECOND, rate)
    }

    /// Returns a gap of whole nanoseconds; `None` for 0 or more than an hour.
    pub fn of_delay(nanoseconds: u64) -> Option<Self> {
        Self::new(nanoseconds, 1)
    }

    /// Returns the gap of `parts` such streams that take turns.
    pub fn divided(self, parts: u32) -> Option<Self> {
        Self::new(self.numerator, self.denominator.checked_mul(u64::from(parts))?)
    }

    /// Returns the gap between batches of datagrams of such a stream; `None` above an hour.
    pub fn times(self, batch: u32) -> Option<Self> {
        Self::new(self.numerator.checked_mul(u64::from(batch))?, self.denominator)
    }

    fn new(numerator: u64, denominator: u64) -> Option<Self> {
        let whole = numerator.checked_div(denominator)?;
        (1..=LONGEST_NS).contains(&whole).then_some(Self { numerator, denominator })
    }

    /// Returns the nanoseconds from the start to datagram `number`, which counts from 0; rounded down.
    fn offset(self, number: u64) -> u64 {
        let exact = u128::from(number) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(exact).unwrap_or(u64::MAX)
    }

    /// Returns the last datagram whose offset is at most `elapsed`.
    fn last_due(self, elapsed: u64) -> u64 {
        let bound = (u128::from(elapsed) + 1) * u128::from(self.denominator) - 1;
        u64::try_from(bound / u128::from(self.numerator)).unwrap_or(u64::MAX)
    }

    /// Returns the number of datagrams with an offset below `duration`.
    fn count(self, duration: u64) -> u64 {
        duration.checked_sub(1).map_or(0, |last| self.last_due(last).saturating_add(1))
    }

    /// Returns the gap in nanoseconds, as text.
    pub fn nanoseconds(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Next action of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing before this time.
    Wait(u64),
    /// Send one datagram, which was due at this time.
    Send(u64),
    /// The flood is over.
    Done,
}

/// Paces a flood: datagram k is due at start + k gaps, however late those before it were.
///
/// A sender that was prevented from running does not make up for the lost time by a burst: of the overdue datagrams, at
/// most `catch_up` are sent late, in addition to the one that is due now; the older ones are skipped and counted.
#[derive(Debug)]
pub struct Pacer {
    start: u64,
    gap: Gap,
    count: u64,
    catch_up: u64,
    next: u64,
    skipped: u64,
}

impl Pacer {
    /// Returns a flood that starts at `start` and lasts `duration` nanoseconds (`None`: for ever).
    pub fn new(start: u64, gap: Gap, duration: Option<u64>, catch_up: u32) -> Self {
        let count = duration.map_or(u64::MAX, |d| gap.count(d));
        Self { start, gap, count, catch_up: u64::from(catch_up), next: 0, skipped: 0 }
    }

    /// Returns the action at time `now`. After `Send` the datagram counts as sent; ask again.
    pub fn at(&mut self, now: u64) -> Next {
        if self.next >= self.count {
            return Next::Done;
        }
        let due = self.due(self.next);
        if due > now {
            return Next::Wait(due);
        }
        let last = self.gap.last_due(now - self.start).min(self.count - 1);
        let behind = last.saturating_sub(self.next);
        if behind > self.catch_up {
            self.skipped += behind - self.catch_up;
            self.next = last - self.catch_up;
        }
        let due = self.due(self.next);
        self.next += 1;
        Next::Send(due)
    }

    fn due(&self, number: u64) -> u64 {
        self.start.saturating_add(self.gap.offset(number))
    }

    /// Returns the number of datagrams that were skipped because the sender was late.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the times at which a punctual sender sends.
    fn punctual(mut pacer: Pacer, start: u64) -> Vec<u64> {
        let (mut now, mut sent) = (start, Vec::new());
        loop {
            match pacer.at(now) {
                Next::Wait(due) => now = due,
                Next::Send(due) => {
                    assert_eq!(due, now);
                    sent.push(due);
                }
                Next::Done => return sent,
            }
        }
    }

    #[test]
    fn published_floods_have_the_published_gaps() {
        // flood.pl -bandwidth 600 -size 200: "Interpacket delay 2.66666666666667 msec"
        let gap = Gap::of_rate(200, 600_000).unwrap();
        assert_eq!(gap.nanoseconds(), 200.0 * 8.0 / 600_000.0 * 1e9);
        let sent = punctual(Pacer::new(0, gap, Some(SECOND), 0), 0);
        assert_eq!(sent.len(), 375);
        assert_eq!(&sent[..4], [0, 2_666_666, 5_333_333, 8_000_000]);
        let gap = Gap::of_delay(3_000_000).unwrap();
        assert_eq!(punctual(Pacer::new(5, gap, Some(SECOND), 0), 5).len(), 334);
    }

    #[test]
    fn stalled_sender_does_not_catch_up_in_a_burst() {
        let mut pacer = Pacer::new(0, Gap::of_delay(10).unwrap(), Some(1000), 2);
        assert_eq!(pacer.at(0), Next::Send(0));
        assert_eq!(pacer.at(0), Next::Wait(10));
        // 10, 20, … 500 are due: 480 and 490 are sent late, 500 in time, the others not at all.
        assert_eq!([pacer.at(505), pacer.at(505), pacer.at(505)], [Next::Send(480), Next::Send(490), Next::Send(500)]);
        assert_eq!(pacer.at(505), Next::Wait(510));
        assert_eq!(pacer.skipped(), 47);
    }

    #[test]
    fn impossible_gaps_are_refused() {
        assert_eq!(Gap::of_rate(200, 0), None);
        assert_eq!(Gap::of_rate(64, u64::MAX), None);
        assert_eq!(Gap::of_rate(1500, 1), None);
        assert_eq!(Gap::of_delay(0), None);
    }

    proptest! {
        #[test]
        fn a_punctual_sender_keeps_the_rate_exactly(
            bytes in 52u32..65536, rate in 1_000u64..10_000_000_000, start in any::<u32>(), wanted in 1u64..2_000,
        ) {
            let Some(gap) = Gap::of_rate(bytes, rate) else { return Ok(()) };
            let duration = gap.offset(wanted);
            let start = u64::from(start);
            let sent = punctual(Pacer::new(start, gap, Some(duration), 0), start);
            // The last one may start in the fraction of a nanosecond before the end.
            prop_assert!(sent.len() as u64 == wanted || sent.len() as u64 == wanted + 1, "{} {wanted}", sent.len());
            for (number, time) in sent.iter().enumerate() {
                let exact = (number as u128 * u128::from(bytes) * 8_000_000_000 / u128::from(rate)) as u64;
                prop_assert_eq!(*time, start + exact);
            }
        }

        #[test]
        fn a_late_sender_sends_nothing_early_counts_every_datagram_and_bounds_its_bursts(
            numerator in 1u64..1_000_000, denominator in 1u64..1000, catch_up in 0u32..5,
            steps in prop::collection::vec(0u64..5_000_000, 1..200), duration in prop::option::of(1u64..100_000_000),
        ) {
            let Some(gap) = Gap::new(numerator, denominator) else { return Ok(()) };
            // Each step of time is one reading of the clock; a Vec holds at most 200 readings.
            let mut pacer = Pacer::new(0, gap, duration, catch_up);
            let (mut now, mut sent, mut before) = (0u64, 0u64, None);
            for step in steps {
                now += step;
                let mut burst = 0;
                let done = loop {
                    match pacer.at(now) {
                        Next::Send(due) => {
                            prop_assert!(due <= now);
                            prop_assert!(before.is_none_or(|b| b <= due));
                            before = Some(due);
                            burst += 1;
                            // Gaps below a nanosecond would make many due at the same time.
                            prop_assert!(burst <= u64::from(catch_up) + 1);
                        }
                        Next::Wait(due) => {
                            prop_assert!(due > now);
                            break false;
                        }
                        Next::Done => break true,
                    }
                };
                sent += burst;
                let due = gap.count(duration.map_or(now + 1, |d| d.min(now + 1)));
                prop_assert_eq!(sent + pacer.skipped(), due);
                prop_assert!(!done || duration.is_some_and(|d| gap.count(d) == due));
            }
        }
    }
}
