//! The queueing engine of a router, as a pure function of what it is told.
//!
//! [`Engine`] takes frames with their arrival times and gives them back with their departure times. It reads no clock, does no IO,
//! starts no thread and draws no randomness from outside: the caller brings time, bytes and seeds. The same calls give the same packets.
//!
//! A port follows the hardware it stands for. From the wire: link arrival → input policy (classify, mark, police) → inside. From the router:
//! output policy (classify, mark, police) → queues (FIFO, weighted fair, a hierarchy of classes) → transmit ring → serialiser →
//! propagation (delay, jitter, loss) → wire. On the way in a link whose sender is no engine has its propagation there; between two engines
//! each has a half.
//! A switch's port has its own way in and out: [`switch`].

mod admission;
mod class_index;
mod classifier;
mod compile;
pub mod config;
pub mod counters;
pub mod defaults;
mod delay;
pub mod dynamic_bucket;
mod egress;
mod engine;
mod fair_queue;
mod fifo;
mod figures;
mod guarantee;
mod hierarchy;
mod impairment;
mod ingress;
mod marking;
pub mod packet;
mod placement;
mod plan;
pub mod policer;
mod policy;
mod port;
mod queue;
mod queue_counters;
mod queueing_delay;
mod random_detect;
mod rate;
mod scheduler;
pub mod serialiser;
mod shaper;
pub mod switch;
pub mod time;
mod token_loss;
mod tournament;
mod tx_ring;
mod way_out;
mod weighted_fair;

pub use config::{ConfigError, PortsConfig, RouterConfig};
pub use counters::Counters;
pub use engine::{Departure, DropReason, Dropped, Engine, Output, PortId, PortTotals, Side};
pub use impairment::NORMAL_JITTER_CUT;
pub use packet::{Descriptor, Network};
pub use time::{Duration, Rate, Time};
