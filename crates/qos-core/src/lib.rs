//! The queueing engine of a router, as a pure function of what it is told.
//!
//! [`Engine`] takes frames with their arrival times and gives them back with their departure times. It reads no clock, does no IO,
//! starts no thread and draws no randomness from outside: the caller brings time, bytes and seeds. The same calls give the same packets.
//!
//! A port follows the hardware it stands for. From the wire: link arrival → input policy (classify, mark, police) → inside. From the router:
//! output policy (classify, mark, police) → queues (FIFO, weighted fair, a hierarchy of classes) → transmit ring → serialiser →
//! propagation (delay, jitter, loss) → wire. On the way in a link whose sender is no engine has its propagation there; between two engines
//! each has a half.
//! A switch's port has its own way in and out: `catalyst`.

mod catalyst;
mod classify;
mod compile;
pub mod config;
pub mod counters;
mod engine;
mod error;
pub mod frame;
pub mod link;
pub mod meter;
mod plan;
mod policy;
mod port;
mod queueing;
mod router;
pub mod time;
pub mod wire;

pub use config::{PortsConfig, RouterConfig, NORMAL_JITTER_CUT};
pub use counters::{Counters, PortTotals};
pub use engine::Engine;
pub use error::ConfigError;
pub use frame::{Departure, Descriptor, DropReason, Dropped, Label, Network, Output, PortId, Side};
pub use time::{Duration, Rate, Time};
