//! One end of a TCP connection, as Linux has it, without IO and clock: segments and times in, segments out.
//!
//! [`Connection`] is driven like `qos-core`: the caller brings every segment and the time at which it arrives, calls
//! [`Connection::on_timer`] when [`Connection::deadline`] is reached, and carries what appears in `out`. Segments hold no payload, only
//! its length. `docs/simulation.md` lists what is modelled, by which document, and where it differs from Linux.

mod ack_policy;
mod acknowledge;
mod congestion;
mod connection;
mod cubic;
mod hystart;
mod prr;
mod rack;
mod receiver;
mod recovery;
mod reno;
mod rto;
mod sack;
mod scoreboard;
mod segment;
mod sender;
mod settings;
mod small_queue;
mod transmit;

pub use connection::{Connection, Figures, State};
pub use segment::{SackBlock, SackBlocks, Segment, SynOptions, HEADER_BYTES, TIMESTAMPS_BYTES};
pub use settings::{mss_for, CongestionControl, Profile, Settings};
