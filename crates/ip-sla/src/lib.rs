//! IP SLA: a router's own probes, as a state machine without IO.
//!
//! [`Prober`] runs the operations of a [`Config`]: the caller asks for the next deadline, polls at that time, sends the
//! resulting packets, and reports each departure and each reply with its time. [`Responder`] answers the UDP operations
//! of other routers. Times are nanoseconds since the Unix epoch, supplied by the caller; results are integer
//! milliseconds, as IOS computes and prints them, in addition to the original stamps ([`Sample`]).
//!
//! Sources: CISCO-RTTMON-MIB, CISCO-RTTMON-ICMP-MIB (defaults, ranges, counters), RFC 792 (timestamp messages). The
//! form of the control message and of the UDP payloads has no public source: it is specific to this project
//! ([`packet`]).

#[macro_use]
mod mistaken;

pub mod config;
pub mod operation;
pub mod packet;
pub mod prober;
pub mod process_level;
pub mod report;
pub mod responder;
pub mod schedule;
pub mod statistics;

pub use config::{Config, Kind, OperationConfig};
pub use prober::{Channel, Prober, Send};
pub use process_level::ProcessLevel;
pub use report::Report;
pub use responder::Responder;
pub use statistics::{OperationReport, ReturnCode, Sample, Statistics};

/// Nanoseconds since the Unix epoch.
pub type Nanos = u64;

/// Nanoseconds in a millisecond.
pub const MILLI: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Milliseconds in a day: ICMP timestamps count from midnight UT (RFC 792).
pub const DAY_MS: i64 = 86_400_000;

/// Returns whole milliseconds since midnight UT, as an ICMP timestamp has them.
pub fn since_midnight(time: Nanos) -> u32 {
    let stamp = (time / MILLI % DAY_MS as u64) as u32;
    if mistaken!(TimestampRounded) {
        return stamp / 10 * 10;
    }
    stamp
}

/// Returns `later - earlier` of two time stamps since midnight, also if midnight is between them.
pub fn difference_ms(later: u32, earlier: u32) -> i64 {
    let raw = i64::from(later) - i64::from(earlier);
    (raw + DAY_MS / 2).rem_euclid(DAY_MS) - DAY_MS / 2
}
