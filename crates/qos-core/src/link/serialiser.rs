//! The serialiser: the link's own clock.

use crate::time::{Rate, Time, NANOS_PER_SECOND};

/// A link that carries one frame at a time, at exactly its rate: what is left of a nanosecond is carried to the next
/// frame.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate: Rate,
    free: Time,
    /// The link is free this much later than `free`, in nanoseconds divided by the rate.
    remainder: u64,
}

/// A frame's passing, which [`Serialiser::enter`] makes true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When its first bit enters.
    pub start: Time,
    /// When its last bit has passed.
    pub end: Time,
    remainder: u64,
}

impl Serialiser {
    /// The rate must not be zero.
    pub fn new(rate: Rate, start: Time) -> Serialiser {
        Serialiser { rate, free: start, remainder: 0 }
    }

    /// The rate of the frames that start from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        if rate != self.rate {
            self.rate = rate;
            self.remainder = 0;
        }
    }

    /// When a frame that is ready at `ready` can start: then, or when the link is free.
    pub fn start(&self, ready: Time) -> Time {
        ready.max(self.free)
    }

    /// Takes a frame of `line_len` bytes on the wire that is ready at `ready`; returns when it will have passed.
    pub fn take(&mut self, ready: Time, line_len: u32) -> Time {
        let passage = self.pass(ready, line_len);
        self.enter(passage);
        passage.end
    }

    /// Takes a frame as [`pass`](Self::pass) has said; nothing may have changed since.
    pub fn enter(&mut self, passage: Passage) {
        (self.free, self.remainder) = (passage.end, passage.remainder);
    }

    /// How such a frame would pass. A division: keep the result where the question comes again.
    pub fn pass(&self, ready: Time, line_len: u32) -> Passage {
        // A frame that becomes ready within the nanosecond in which the link becomes free waits for it too.
        let carried = if ready > self.free { 0 } else { self.remainder };
        // A frame's bits times a second's nanoseconds fit in 64 bits up to 2 GB, and dividing those is much cheaper
        // than 128 bits.
        let total =
            (u64::from(line_len) * 8).checked_mul(NANOS_PER_SECOND).and_then(|total| total.checked_add(carried));
        let (nanos, remainder) = match total {
            Some(total) => (total / self.rate.0, total % self.rate.0),
            None => {
                let rate = u128::from(self.rate.0);
                let total = u128::from(line_len) * 8 * u128::from(NANOS_PER_SECOND) + u128::from(carried);
                (u64::try_from(total / rate).unwrap_or(u64::MAX), (total % rate) as u64)
            }
        };
        let start = self.start(ready);
        Passage { start, end: Time(start.0.saturating_add(nanos)), remainder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn a_late_frame_starts_when_it_is_ready() {
        let mut link = Serialiser::new(Rate(100_000_000), Time(0));
        assert_eq!(link.take(Time(1_000), 1538), Time(124_040));
        assert_eq!(link.take(Time(2_000), 1538), Time(247_080));
        assert_eq!(link.take(Time(1_000_000), 84), Time(1_006_720));
    }
}
