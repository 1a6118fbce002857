//! IP SLA operations of a router: when probes are sent, what the replies come to, and what a responder answers.
//!
//! Sans-IO: [`Monitor`] says what is to be sent ([`Monitor::poll`], [`Monitor::next_deadline`]) and is told what became of it
//! ([`Monitor::sent`], [`Monitor::received`], [`Monitor::unsendable`]). Times are nanoseconds since the Unix epoch, given by the
//! caller. Behaviour after Cisco's RTTMON MIBs and the "IP SLAs ICMP Jitter Operations" guide; what those leave open is said where it is
//! decided.

pub mod config;
mod hours;
mod monitor;
pub mod packet;
pub mod report;
mod run;
mod schedule;

pub use config::{IpSlaConfig, OperationConfig};
pub use monitor::{Action, Monitor};
pub use packet::{Probe, Reply, Target};
pub use report::Report;

/// Nanoseconds since the Unix epoch.
pub type Nanos = u64;

/// Nanoseconds in a millisecond, the resolution of what IOS measures and prints.
pub const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
