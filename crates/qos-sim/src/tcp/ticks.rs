//! The ticks of a host's clock, on which timers expire: Linux's timer wheel.

use qos_core::time::{Duration, Time};

/// Slots per level of the wheel, one of which is not used (Linux LVL_SIZE).
const SLOTS: u64 = 64;
/// Binary logarithm of the ratio of slot lengths in successive levels (Linux LVL_CLK_SHIFT).
const LEVEL_SHIFT: u32 = 3;
/// Levels of the wheel (Linux LVL_DEPTH at 250 Hz and more).
const LEVELS: u32 = 9;

/// Clock at whose ticks timers expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Zero: timers expire exactly.
    period: u64,
    start: Time,
    /// Uptime of the clock at the start.
    ran: u64,
}

/// A timer that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alarm {
    /// Time to which it was set.
    pub until: Time,
    /// Time at which it expires.
    pub at: Time,
}

impl Ticks {
    /// Timers run out exactly.
    pub const NONE: Ticks = Ticks { period: 0, start: Time(0), ran: 0 };

    /// Returns the ticks, one per `period_ns` (Linux CONFIG_HZ), of a clock that has run for `ran_ns` at `start`. Zero:
    /// no ticks.
    pub fn new(period_ns: u64, start: Time, ran_ns: u64) -> Ticks {
        Ticks { period: period_ns, start, ran: ran_ns }
    }

    /// Returns a duration in whole ticks, rounded up.
    pub(crate) fn whole(self, duration: Duration) -> Duration {
        match self.period {
            0 => duration,
            period => Duration(duration.0.div_ceil(period).saturating_mul(period)),
        }
    }

    /// Returns the start of the tick that contains a time.
    pub(crate) fn begin(self, time: Time) -> Time {
        match self.period {
            0 => time,
            period => Time(time.0.saturating_sub(self.since_boot(time) % period)),
        }
    }

    /// Returns a timer that is set at `now` to expire after `wait`.
    pub(super) fn after(self, now: Time, wait: Duration) -> Alarm {
        match self.period {
            0 => self.at(now, now + wait),
            period => self.at(now, now + self.whole(wait) - Duration(self.since_boot(now) % period)),
        }
    }

    /// Returns a timer that is set at `now` to expire at `until`.
    ///
    /// It expires at the end of its slot in the wheel, so never early: on the first level (up to 62 ticks) one tick
    /// later, on the second (up to 503 ticks) at the next multiple of 8 ticks.
    pub(super) fn at(self, now: Time, until: Time) -> Alarm {
        if self.period == 0 {
            return Alarm { until, at: until };
        }
        let (now, ends) = (self.since_boot(now) / self.period, self.since_boot(until).div_ceil(self.period));
        let ahead = ends.saturating_sub(now);
        let level = (0..LEVELS - 1).find(|level| ahead < (SLOTS - 1) << (level * LEVEL_SHIFT)).unwrap_or(LEVELS - 1);
        let shift = level * LEVEL_SHIFT;
        let slot_ends = (((ends >> shift) + 1) << shift).saturating_mul(self.period);
        Alarm { until, at: self.start + Duration(slot_ends.saturating_sub(self.ran)) }
    }

    fn since_boot(self, now: Time) -> u64 {
        now.since(self.start).0 + self.ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn runs_out(now_ns: u64, wait_ns: u64) -> u64 {
        Ticks::new(4 * MS, Time(0), 0).after(Time(now_ns), Duration(wait_ns)).at.0
    }

    #[test]
    fn timers_without_ticks_expire_exactly() {
        let alarm = Ticks::NONE.after(Time(5), Duration(7));
        assert_eq!(alarm, Alarm { until: Time(12), at: Time(12) });
    }

    #[test]
    fn short_timer_expires_one_tick_after_its_time() {
        assert_eq!(runs_out(0, 40 * MS), 44 * MS);
        assert_eq!(runs_out(3 * MS, 40 * MS), 44 * MS);
        assert_eq!(runs_out(4 * MS, 40 * MS), 48 * MS);
        assert_eq!(runs_out(0, 62 * 4 * MS), 63 * 4 * MS);
    }

    #[test]
    fn long_timer_expires_at_a_multiple_of_8_64_or_512_ticks() {
        assert_eq!(runs_out(0, 63 * 4 * MS), 64 * 4 * MS);
        assert_eq!(runs_out(3 * MS, 300_300_000), 80 * 4 * MS);
        assert_eq!(runs_out(20 * MS, 300_300_000), 88 * 4 * MS);
        assert_eq!(runs_out(0, 503 * 4 * MS), 504 * 4 * MS);
        assert_eq!(runs_out(0, 504 * 4 * MS), 512 * 4 * MS);
        assert_eq!(runs_out(0, 4032 * 4 * MS), 4096 * 4 * MS);
    }

    #[test]
    fn ticks_depend_on_the_uptime_of_the_clock() {
        let ticks = Ticks::new(4 * MS, Time(1_000), 3 * MS);
        assert_eq!(ticks.after(Time(1_000), Duration(40 * MS)).at, Time(1_000 + 41 * MS));
        assert_eq!(ticks.after(Time(1_000 + MS), Duration(40 * MS)).at, Time(1_000 + 45 * MS));
    }

    #[test]
    fn a_tick_begins_at_a_whole_number_of_periods_of_the_uptime() {
        let ticks = Ticks::new(4 * MS, Time(1_000), 3 * MS);
        assert_eq!(ticks.begin(Time(1_000 + 2 * MS)), Time(1_000 + MS));
        assert_eq!(ticks.begin(Time(1_000 + MS)), Time(1_000 + MS));
        assert_eq!(Ticks::NONE.begin(Time(5)), Time(5));
    }

    #[test]
    fn a_timer_is_never_early_and_at_most_an_eighth_and_two_ticks_late() {
        let mut wait = 1;
        while wait < 120_000 * MS {
            for now in [0, 1, 4 * MS - 1, 4 * MS, 1_234_567_890] {
                let at = runs_out(now, wait);
                assert!(at >= now + wait, "{now} {wait} {at}");
                assert!(at <= now + wait + wait / 7 + 8 * MS, "{now} {wait} {at}");
            }
            wait += wait / 3 + 1;
        }
    }
}
