//! One end of a TCP connection, as Linux has it, without IO and clock: segments and times in, segments out.
//!
//! [`Connection`] is driven like `qos-core`: the caller brings every segment and the time at which it arrives, calls
//! [`Connection::on_timer`] when [`Connection::deadline`] is reached, and carries what appears in `out`. Segments hold
//! no payload, only its length. `docs/internals/simulator.md` lists what is modelled, by which document, and where it
//! differs from Linux.

mod agreed;
mod congestion;
mod connection;
mod receive;
mod segment;
mod send;
mod settings;
mod ticks;

pub use connection::{Connection, State, Statistics};
pub use segment::{SackBlock, SackBlocks, Segment, SynOptions, HEADER_BYTES, TIMESTAMPS_BYTES};
pub use settings::{mss_for, CongestionControl, Profile, Settings};
pub use ticks::Ticks;
