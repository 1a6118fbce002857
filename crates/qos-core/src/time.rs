//! Points in time, lengths of time and rates, as integers.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A point in time: nanoseconds since an epoch of the caller's choice (the Unix epoch in `qos-router`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Time {
    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration(0);

    /// Returns whole milliseconds as a duration.
    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms * 1_000_000)
    }

    /// Returns whole microseconds as a duration.
    pub const fn from_micros(us: u64) -> Duration {
        Duration(us * 1_000)
    }

    /// Returns whole seconds as a duration.
    pub const fn from_secs(s: u64) -> Duration {
        Duration(s * NANOS_PER_SECOND)
    }
}

impl Rate {
    /// Returns the time that `bytes` take at this rate, rounded up to a whole nanosecond.
    ///
    /// A rate of zero takes the longest duration.
    pub fn time_for_bytes(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration(u64::MAX);
        }
        let bit_nanos = u128::from(bytes) * 8 * u128::from(NANOS_PER_SECOND);
        Duration(u64::try_from(bit_nanos.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, length: Duration) -> Time {
        Time(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, length: Duration) {
        *self = *self + length;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, length: Duration) -> Time {
        Time(self.0.saturating_sub(length.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl From<std::time::Duration> for Duration {
    fn from(length: std::time::Duration) -> Duration {
        Duration(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for std::time::Duration {
    fn from(length: Duration) -> std::time::Duration {
        std::time::Duration::from_nanos(length.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_time_is_rounded_up() {
        assert_eq!(Rate(100_000_000).time_for_bytes(1538), Duration(123_040));
        assert_eq!(Rate(3).time_for_bytes(1), Duration(2_666_666_667));
        assert_eq!(Rate(0).time_for_bytes(1), Duration(u64::MAX));
    }

    #[test]
    fn durations_convert_to_std_and_saturate() {
        let second = std::time::Duration::from_secs(1);
        assert_eq!(Duration::from(second), Duration::from_secs(1));
        assert_eq!(std::time::Duration::from(Duration::from_millis(1_000)), second);
        assert_eq!(Duration::from(std::time::Duration::MAX), Duration(u64::MAX));
        assert_eq!(Duration(5) + Duration(7), Duration(12));
        assert_eq!(Duration(u64::MAX) + Duration(1), Duration(u64::MAX));
        assert_eq!(Duration(1_020_000_003).to_string(), "1.020000003 s");
        assert_eq!(Time(3_000_000_020).to_string(), "3.000000020 s");
    }
}
