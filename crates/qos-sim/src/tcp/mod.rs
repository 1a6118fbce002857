//! One end of a TCP connection, modelled on Linux, without IO or clock: its input are segments and times, its output
//! segments.
//!
//! [`Connection`] is driven like `qos-core`: the caller passes every segment and its arrival time, calls
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
