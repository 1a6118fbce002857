//! The daemon's clock.
//!
//! Event time starts as the wall clock and then runs with `CLOCK_MONOTONIC`, so that a step of the wall clock cannot
//! move it. The kernel stamps received frames with the wall clock; [`Clock`] follows the offset between the two and
//! converts.

use netio::clock::{monotonic, wall};
use qos_core::Time;

/// Maximum time between the two readings around a third one; beyond it they were interrupted and their offset is not
/// used.
const READING_NS: u64 = 2_000;

/// Event time, and its relation to the kernel's receive time stamps. Copies have the same event time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Event time minus monotonic time: constant.
    base: u64,
    /// Wall clock minus monotonic time: follows steps and slewing of the wall clock.
    wall: u64,
}

impl Clock {
    /// Starts event time at the wall clock.
    pub fn new() -> Self {
        let offset =
            (0..100).map(|_| Self::reading()).min_by_key(|&(width, _, _)| width).map_or(0, |(_, offset, _)| offset);
        Self { base: offset, wall: offset }
    }

    /// Returns the duration of the reading, wall clock minus monotonic time, monotonic time.
    fn reading() -> (u64, u64, u64) {
        let before = monotonic();
        let wall = wall();
        let after = monotonic();
        let width = after - before;
        (width, wall.saturating_sub(before + width / 2), after)
    }

    /// Returns the present event time.
    pub fn now(&self) -> Time {
        Time(monotonic() + self.base)
    }

    /// Returns the present event time; follows the wall clock for the conversion of stamps.
    pub fn tick(&mut self) -> Time {
        let (width, offset, now) = Self::reading();
        if width < READING_NS {
            self.wall = offset;
        }
        Time(now + self.base)
    }

    /// Returns the event time of a wall-clock stamp, at most the present, because a stamp from before a step backwards
    /// would lie in the future. `read` is the time of the last reading of the clock; a frame may have arrived later if
    /// this thread was stopped.
    pub fn event(&self, stamp: u64, read: Time) -> Time {
        let event = Time((stamp + self.base).saturating_sub(self.wall));
        if event <= read {
            event
        } else {
            event.min(self.now())
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_taken_now_lies_between_two_readings() {
        let mut clock = Clock::new();
        let before = clock.tick();
        let stamp = wall();
        let after = clock.now();
        let event = clock.event(stamp, before);
        assert!(event.0 + READING_NS >= before.0, "{event} {before}");
        assert!(event.0 <= after.0 + READING_NS, "{event} {after}");
    }

    #[test]
    fn a_step_of_the_wall_clock_does_not_move_event_time() {
        let mut clock = Clock { base: 1_000, wall: 1_000 };
        assert_eq!(clock.event(5_000, Time(u64::MAX)), Time(5_000));
        clock.wall += 1_000_000;
        assert_eq!(clock.event(1_005_000, Time(u64::MAX)), Time(5_000));
        // A stamp from before the step, converted after it, is old rather than negative.
        assert_eq!(clock.event(5_000, Time(u64::MAX)), Time(0));
    }

    #[test]
    fn frame_newer_than_the_clock_reading_gets_the_reading_time() {
        let mut clock = Clock::new();
        let read = clock.tick();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let stamp = wall();
        let event = clock.event(stamp, read);
        assert!(event.0 + READING_NS >= read.0 + 20_000_000, "{event} {read}");
        assert!(event <= clock.now());
    }

    #[test]
    fn a_future_stamp_counts_as_now() {
        let mut clock = Clock::new();
        let before = clock.tick();
        let event = clock.event(wall() + 3_600_000_000_000, before);
        assert!(before <= event && event <= clock.now(), "{event} {before}");
    }
}
