//! Times: nanoseconds since the epoch, and milliseconds since midnight.

/// Nanoseconds since the Unix epoch.
pub type Nanos = u64;

/// Nanoseconds in a millisecond.
pub const MILLI: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Milliseconds in a day: ICMP timestamps count from midnight UT (RFC 792).
pub const DAY_MS: i64 = 86_400_000;

/// Whole milliseconds since midnight UT, as an ICMP timestamp has them.
pub fn since_midnight(time: Nanos) -> u32 {
    (time / MILLI % DAY_MS as u64) as u32
}

/// `later - earlier` of two stamps since midnight, which may lie on both sides of it.
pub fn difference_ms(later: u32, earlier: u32) -> i64 {
    let raw = i64::from(later) - i64::from(earlier);
    (raw + DAY_MS / 2).rem_euclid(DAY_MS) - DAY_MS / 2
}
