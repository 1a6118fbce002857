//! Start and end of an operation, from a schedule and the time at which it took effect.

use crate::config::{Schedule, Start, TimeOfDay};
use crate::{Nanos, SECOND};

const DAY: Nanos = 86_400 * SECOND;

/// A span of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start.
    pub start: Nanos,
    /// End; never if `None`.
    pub end: Option<Nanos>,
}

impl Schedule {
    /// Returns the first span of a schedule that took effect at `entered`. `None` while it is pending.
    pub fn first(&self, entered: Nanos) -> Option<Span> {
        let start = match self.start {
            Start::Now => entered,
            Start::Pending => return None,
            Start::After(seconds) => entered + u64::from(seconds) * SECOND,
            Start::At(at) => next_time(at, entered),
        };
        Some(Span { start, end: self.life_s.map(|life| start + u64::from(life) * SECOND) })
    }

    /// Returns the span after `span`: a day later when the schedule recurs.
    pub fn next(&self, span: Span) -> Option<Span> {
        let later = Span { start: span.start + DAY, end: span.end.map(|end| end + DAY) };
        self.recurring.then_some(later)
    }
}

/// Returns the next time, from `now` on, with this time of day (and date).
fn next_time(at: TimeOfDay, now: Nanos) -> Nanos {
    let of_day = (u64::from(at.hour) * 3600 + u64::from(at.minute) * 60 + u64::from(at.second)) * SECOND;
    let today = now / DAY;
    let days = match at.date {
        None if today * DAY + of_day >= now => today,
        None => today + 1,
        Some((month, day)) => {
            let (year, ..) = civil(today as i64);
            let this = days_from_civil(year, month, day) as u64;
            if this * DAY + of_day >= now {
                this
            } else {
                days_from_civil(year + 1, month, day) as u64
            }
        }
    };
    days * DAY + of_day
}

/// Returns the days since 1970-01-01 of a date in the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: u8, day: u8) -> i64 {
    let leap = |y: i64| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    let before =
        |y: i64| 365 * (y - 1970) + (y - 1969).div_euclid(4) - (y - 1901).div_euclid(100) + (y - 1601).div_euclid(400);
    const MONTHS: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    before(year) + MONTHS[usize::from(month) - 1] + i64::from(month > 2 && leap(year)) + i64::from(day) - 1
}

/// Returns the year of a day since 1970-01-01, and its first day.
fn civil(days: i64) -> (i64, i64) {
    let mut year = 1970 + days / 366;
    while days_from_civil(year + 1, 1, 1) <= days {
        year += 1;
    }
    (year, days_from_civil(year, 1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates_convert_to_known_days() {
        assert_eq!(days_from_civil(2000, 3, 1), 11_017);
        assert_eq!(days_from_civil(2026, 11, 21), 20_778);
        assert_eq!(civil(20_778).0, 2026);
        assert_eq!(civil(days_from_civil(2027, 12, 31)).0, 2027);
    }

    #[test]
    fn a_time_of_day_is_today_or_tomorrow() {
        let now = 20_778 * DAY + 12 * 3600 * SECOND;
        let at = |hour, date| next_time(TimeOfDay { hour, minute: 0, second: 0, date }, now);
        assert_eq!(at(13, None), now + 3600 * SECOND);
        assert_eq!(at(11, None), now + 23 * 3600 * SECOND);
        assert_eq!(at(12, Some((11, 22))), now + DAY);
        assert_eq!(at(11, Some((11, 21))), now + 365 * DAY - 3600 * SECOND);
    }
}
