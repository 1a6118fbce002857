//! The queueing engine of a router, as a pure function of what it is told.
//!
//! [`Engine`] takes frames with their arrival times and gives them back with their departure times. It reads no clock, does no IO,
//! starts no thread and draws no randomness: the caller brings time and bytes. The same calls give the same packets.
//!
//! A port follows the hardware it stands for. From the wire: link arrival → input policy (classify, mark, police) → inside. From the router:
//! output policy (classify, mark, police) → queues (FIFO, weighted fair, class-based with shapers) → transmit ring → serialiser →
//! propagation delay → wire.

pub mod config;
pub mod counters;
pub mod defaults;
mod engine;
pub mod packet;
pub mod time;

pub use config::{ConfigError, PortsConfig, RouterConfig};
pub use counters::Counters;
pub use engine::{Departure, DropReason, Dropped, Engine, Output, PortId, PortTotals, Side};
pub use packet::{Descriptor, Network};
pub use time::{Duration, Rate, Time};
