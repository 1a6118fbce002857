//! Gathering of arrivals: under load the daemon does not wake up for each frame.
//!
//! A frame that arrives has its event time from the kernel's stamp, so the time at which it is taken affects only the
//! lateness of its departure. While rounds follow each other closely, frames from the links, and those that reach the
//! inside, are therefore taken at the next departure, or some microseconds after the round before, whichever comes
//! first.

use qos_core::Time;

/// Maximum time between rounds that follow each other closely, ns.
const CLOSE_NS: u64 = 500_000;
/// Number of such consecutive rounds that count as load. An echo request and its reply cause fewer, even through many
/// routers.
const LOAD_ROUNDS: u32 = 256;
/// Maximum time for which frames may wait after a round, ns, and thus the maximum added lateness of a departure. A full
/// frame takes 123 µs on a link of 100 Mb/s.
const REST_NS: u64 = 100_000;

/// Whether arrivals are gathered.
#[derive(Debug)]
pub(crate) struct Gathering {
    last: Time,
    close_rounds: u32,
}

impl Gathering {
    /// Starts without load.
    pub fn new(now: Time) -> Self {
        Self { last: now, close_rounds: 0 }
    }

    /// Records that a round begins.
    pub fn round(&mut self, now: Time) {
        let close = now.since(self.last).0 <= CLOSE_NS;
        self.close_rounds = if close { self.close_rounds.saturating_add(1) } else { 0 };
        self.last = now;
    }

    /// Returns the number of nanoseconds without a check for arrivals; 0 without load.
    pub fn rest(&self, now: Time) -> u64 {
        if self.close_rounds < LOAD_ROUNDS {
            return 0;
        }
        REST_NS.saturating_sub(now.since(self.last).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_gathered_only_after_many_closely_spaced_rounds() {
        let mut gathering = Gathering::new(Time(0));
        let mut now = 0;
        // Echo requests: some rounds each, and then a pause.
        for number in 0..10 * LOAD_ROUNDS {
            now += if number % 100 == 0 { 10_000_000 } else { 20_000 };
            gathering.round(Time(now));
            assert_eq!(gathering.rest(Time(now)), 0);
        }
        for _ in 0..LOAD_ROUNDS {
            now += CLOSE_NS;
            gathering.round(Time(now));
        }
        let rests = [0, 10_000, REST_NS, 10 * REST_NS].map(|after| gathering.rest(Time(now + after)));
        assert_eq!(rests, [REST_NS, REST_NS - 10_000, 0, 0]);
        gathering.round(Time(now + CLOSE_NS + 1));
        assert_eq!(gathering.rest(Time(now + CLOSE_NS + 1)), 0);
    }
}
