//! When an operation runs.

use crate::config::{Schedule, Start};
use crate::{Nanos, SECOND};

/// A recurring operation starts again after this time.
const DAY: u64 = 86_400 * SECOND;

/// The times of an operation's runs.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    /// Start of the present life, or of the next one; none while pending.
    start: Option<Nanos>,
    life: Option<u64>,
    recurring: bool,
    frequency: u64,
    /// Start of the next run; none when there is none to come.
    next: Option<Nanos>,
}

/// What an operation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for its start.
    Pending,
    /// Runs.
    Active,
    /// Its life is over, or it was never scheduled.
    Inactive,
}

impl Timetable {
    pub fn new(now: Nanos, schedule: Option<Schedule>, frequency_s: u32) -> Timetable {
        let start = schedule.and_then(|schedule| match schedule.start {
            Start::Now => Some(now),
            Start::Pending => None,
            Start::At(second) => Some(second * SECOND),
        });
        Timetable {
            start,
            life: schedule.and_then(|schedule| schedule.life_s).map(|life| u64::from(life) * SECOND),
            recurring: schedule.is_some_and(|schedule| schedule.recurring),
            frequency: u64::from(frequency_s) * SECOND,
            next: start,
        }
    }

    /// The next run's start.
    pub fn next(&self) -> Option<Nanos> {
        self.next
    }

    /// When the present life began, once it has.
    pub fn started(&self, now: Nanos) -> Option<Nanos> {
        self.start.filter(|start| *start <= now)
    }

    /// When the life that goes on at `now` ends; none for never or where none goes on.
    pub fn ends(&self) -> Option<Nanos> {
        Some(self.start? + self.life?)
    }

    /// The run that starts at `next` has been started, or skipped: on to the one after it.
    pub fn advance(&mut self) {
        let (Some(next), Some(start)) = (self.next, self.start) else { return };
        let following = next + self.frequency;
        self.next = match self.life {
            Some(life) if following >= start + life => {
                self.recurring.then(|| {
                    let again = start + DAY.max(life);
                    self.start = Some(again);
                    again
                })
            }
            _ => Some(following),
        };
    }

    pub fn phase(&self, now: Nanos) -> Phase {
        match self.start {
            Some(start) if now < start => Phase::Pending,
            Some(_) if self.ends().is_none_or(|end| now < end) => Phase::Active,
            _ => Phase::Inactive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(start: Start, life_s: Option<u32>, recurring: bool) -> Option<Schedule> {
        Some(Schedule { start, life_s, recurring })
    }

    #[test]
    fn runs_follow_the_frequency_until_the_life_is_over() {
        let mut table = Timetable::new(100 * SECOND, schedule(Start::Now, Some(5), false), 2);
        let mut starts = Vec::new();
        while let Some(next) = table.next() {
            starts.push(next / SECOND);
            table.advance();
        }
        assert_eq!(starts, [100, 102, 104]);
        assert_eq!(table.phase(104 * SECOND), Phase::Active);
        assert_eq!(table.phase(105 * SECOND), Phase::Inactive);
    }

    #[test]
    fn a_recurring_operation_starts_again_after_a_day() {
        let mut table = Timetable::new(0, schedule(Start::At(10), Some(3), true), 2);
        assert_eq!(table.phase(0), Phase::Pending);
        assert_eq!(table.next(), Some(10 * SECOND));
        table.advance();
        table.advance();
        assert_eq!(table.next(), Some(86_410 * SECOND));
    }

    #[test]
    fn an_operation_without_schedule_never_runs() {
        let table = Timetable::new(5, None, 60);
        assert_eq!((table.next(), table.phase(u64::MAX)), (None, Phase::Inactive));
        let table = Timetable::new(5, schedule(Start::Pending, None, false), 60);
        assert_eq!(table.next(), None);
    }
}
