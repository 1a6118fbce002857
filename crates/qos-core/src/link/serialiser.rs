//! The serialiser: the link's own clock.

use crate::plan::port::SustainedPlan;
use crate::time::{Rate, Time, NANOS_PER_SECOND};

/// A link that carries one frame at a time, at exactly its rate: a remainder of a nanosecond is carried to the next
/// frame.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate: Rate,
    free: Time,
    /// The link is free this much later than `free`, in nanoseconds divided by the rate.
    remainder: u64,
    sustained: Option<Box<Sustained>>,
}

/// The sustainable rate of a virtual circuit: the generic cell rate algorithm (ITU-T I.371, ATM Forum TM 4.0), for all
/// cells of a packet at once. The conformance of the first cell of a packet is tested with its last one.
#[derive(Clone, Debug)]
struct Sustained {
    plan: SustainedPlan,
    /// Time at which the sent cells would have passed at that rate: the theoretical arrival time of the next cell.
    clock: Serialiser,
}

/// The passage of a frame, which [`Serialiser::enter`] carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Time at which its first bit enters.
    pub start: Time,
    /// Time at which its last bit has passed.
    pub end: Time,
    remainder: u64,
}

impl Serialiser {
    /// Creates a free link; the rate must not be zero.
    pub fn new(rate: Rate, start: Time) -> Serialiser {
        Serialiser { rate, free: start, remainder: 0, sustained: None }
    }

    /// Sets the rate of the frames that start from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        if rate != self.rate {
            self.rate = rate;
            self.remainder = 0;
        }
    }

    /// Sets the rate that later frames may exceed only for a limited time; none if there is only one rate.
    pub(crate) fn set_sustained(&mut self, plan: Option<SustainedPlan>) {
        if plan != self.sustained.as_ref().map(|sustained| sustained.plan) {
            let clock = |plan: SustainedPlan| Serialiser::new(plan.rate, self.free);
            self.sustained = plan.map(|plan| Box::new(Sustained { plan, clock: clock(plan) }));
        }
    }

    /// Returns the start of a frame that is ready at `ready`: at that time, or when the link is free.
    #[inline]
    pub fn start(&self, ready: Time) -> Time {
        ready.max(self.free)
    }

    /// Takes a frame of `line_len` bytes on the wire that is ready at `ready`; returns when it will have passed.
    pub fn take(&mut self, ready: Time, line_len: u32) -> Time {
        let passage = self.pass(ready, line_len);
        self.enter(passage, line_len);
        passage.end
    }

    /// Takes a frame of `line_len` bytes as calculated by [`pass`](Self::pass); the state must not have changed since.
    #[inline]
    pub fn enter(&mut self, passage: Passage, line_len: u32) {
        if let Some(sustained) = &mut self.sustained {
            sustained.clock.take(passage.start, line_len);
        }
        (self.free, self.remainder) = (passage.end, passage.remainder);
    }

    /// Returns the passage of such a frame. It needs a division, so store the result for repeated use.
    #[inline]
    pub fn pass(&self, ready: Time, line_len: u32) -> Passage {
        // A frame that becomes ready within the nanosecond in which the link becomes free waits for it too.
        let carried = if ready > self.free { 0 } else { self.remainder };
        // A frame's bits times a second's nanoseconds fit in 64 bits up to 2 GB, and dividing those is much cheaper
        // than 128 bits.
        let total =
            (u64::from(line_len) * 8).checked_mul(NANOS_PER_SECOND).and_then(|total| total.checked_add(carried));
        let (nanos, remainder) = match total {
            Some(total) => (total / self.rate.0, total % self.rate.0),
            None => self.divide(line_len, carried),
        };
        let start = self.start(ready);
        let passage = Passage { start, end: Time(start.0.saturating_add(nanos)), remainder };
        match &self.sustained {
            None => passage,
            Some(sustained) => sustained.delay(passage, line_len),
        }
    }

    /// Returns the nanoseconds for these bytes beyond the carried part, and the remainder of a nanosecond.
    #[cold]
    fn divide(&self, line_len: u32, carried: u64) -> (u64, u64) {
        let rate = u128::from(self.rate.0);
        let total = u128::from(line_len) * 8 * u128::from(NANOS_PER_SECOND) + u128::from(carried);
        (u64::try_from(total / rate).unwrap_or(u64::MAX), (total % rate) as u64)
    }
}

impl Sustained {
    /// Returns the passage at the peak rate, or as limited by the sustainable rate.
    fn delay(&self, passage: Passage, line_len: u32) -> Passage {
        let conforms = self.clock.pass(passage.start, line_len).end - self.plan.tolerance;
        if conforms > passage.end {
            Passage { end: conforms, remainder: 0, ..passage }
        } else {
            passage
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn back_to_back_frames_take_exactly_their_time(
            rate in 1_000u64..100_000_000_000, lengths in prop::collection::vec(20u32..2000, 1..200)
        ) {
            let mut link = Serialiser::new(Rate(rate), Time(5));
            let mut bytes = 0u128;
            for length in lengths {
                bytes += u128::from(length);
                let end = link.take(Time(5), length);
                prop_assert_eq!(u128::from(end.0), 5 + bytes * 8_000_000_000 / u128::from(rate));
            }
        }
    }

    /// Returns the contract of 1 and 2 Mb/s with a burst of 100 cells.
    fn variable(start: Time) -> Serialiser {
        let mut link = Serialiser::new(Rate(2_000_000), start);
        // A cell takes 424 and 212 microseconds.
        link.set_sustained(Some(SustainedPlan { rate: Rate(1_000_000), tolerance: Duration(100 * 212_000) }));
        link
    }

    #[test]
    fn a_burst_of_cells_passes_at_the_peak_and_the_rest_at_the_sustainable_rate() {
        let mut link = variable(Time(0));
        for packet in 1..=10 {
            assert_eq!(link.take(Time(0), 530), Time(packet * 10 * 212_000));
        }
        for packet in 1..=10 {
            assert_eq!(link.take(Time(0), 530), Time(100 * 212_000 + packet * 10 * 424_000));
        }
        // A second of silence is more than the whole burst.
        let start = 2_000_000_000;
        for packet in 1..=10 {
            assert_eq!(link.take(Time(start), 530), Time(start + packet * 10 * 212_000));
        }
        assert_eq!(link.take(Time(start), 53), Time(start + 100 * 212_000 + 424_000));
    }

    proptest! {
        /// The generic cell rate algorithm, cell by cell, never has the last cell of a packet leave at another moment.
        #[test]
        fn packets_pass_as_their_cells_would(packets in prop::collection::vec((0u64..60_000_000, 1u32..40), 1..60)) {
            let mut link = variable(Time(0));
            let (peak, sustained, tolerance) = (212_000u64, 424_000u64, 100 * 212_000u64);
            let (mut now, mut free, mut expected) = (0u64, 0u64, 0u64);
            for (gap, cells) in packets {
                now += gap;
                let start = now.max(free);
                for _ in 0..cells {
                    // The last bit of a cell leaves at the peak rate, and not before the cell conforms.
                    expected = expected.max(start) + sustained;
                    free = (free.max(now) + peak).max(expected.saturating_sub(tolerance));
                }
                prop_assert_eq!(link.take(Time(now), 53 * cells), Time(free));
            }
        }
    }

    /// The product of their bits and a second's nanoseconds has more than 64 bits.
    #[test]
    fn frames_of_more_than_two_gigabytes_take_exactly_their_time() {
        let mut link = Serialiser::new(Rate(7), Time(0));
        assert_eq!(link.take(Time(0), u32::MAX), Time(4_908_534_051_428_571_428));
        assert_eq!(link.take(Time(0), u32::MAX), Time(9_817_068_102_857_142_857));
        assert_eq!(link.take(Time(0), 1), Time(9_817_068_104_000_000_000));
    }

    #[test]
    fn fraction_of_a_nanosecond_is_dropped_with_a_nonconforming_frame() {
        let mut link = Serialiser::new(Rate(3), Time(0));
        // The first frame conforms at the very instant at which it has passed.
        link.set_sustained(Some(SustainedPlan { rate: Rate(1), tolerance: Duration(5_333_333_334) }));
        let first = link.pass(Time(0), 1);
        assert_eq!(first, Passage { start: Time(0), end: Time(2_666_666_666), remainder: 2 });
        link.enter(first, 1);
        let second = Passage { start: Time(2_666_666_666), end: Time(10_666_666_666), remainder: 0 };
        assert_eq!(link.pass(Time(0), 1), second);
    }

    #[test]
    fn a_late_frame_starts_when_it_is_ready() {
        let mut link = Serialiser::new(Rate(100_000_000), Time(0));
        assert_eq!(link.take(Time(1_000), 1538), Time(124_040));
        assert_eq!(link.take(Time(2_000), 1538), Time(247_080));
        assert_eq!(link.take(Time(1_000_000), 84), Time(1_006_720));
    }
}
