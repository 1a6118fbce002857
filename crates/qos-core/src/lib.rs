//! The queueing engine of a router, as a pure function of its inputs.
//!
//! [`Engine`] accepts frames with their arrival times and returns them with their departure times. It reads no clock,
//! does no IO, starts no thread and uses no external randomness: the caller brings time, bytes and seeds. The same
//! calls give the same packets.
//!
//! A port follows the hardware it stands for. From the wire: link arrival → input policy (classify, mark, police) →
//! inside. From the router: output policy (classify, mark, police) → queues (FIFO, weighted fair, a hierarchy of
//! classes) → transmit ring → serialiser → propagation (delay, jitter, loss) → wire. On the way in a link whose sender
//! is no engine has its propagation there; between two engines each has a half. A Catalyst's port has its own ways in
//! and out.
//!
//! ```
//! use qos_core::config::{Generation, InterfaceConfig, LinkConfig, PoliceConfig, PolicyClass, PortConfig, RateSpec};
//! use qos_core::wire::{protocol, Framing};
//! use qos_core::{Descriptor, Engine, Output, PortsConfig, RouterConfig, Time};
//!
//! let link = LinkConfig::new(10_000_000, Framing::Ethernet);
//! let mut engine = Engine::new(&PortsConfig::new().port("Fa0/0", PortConfig::new(link)), Time(0))?;
//! let limit = PolicyClass::new("class-default").police(PoliceConfig::new(RateSpec::Bps(1_000_000)));
//! let config = RouterConfig::new("R1", Generation::Hqf).policy_map("Limit", vec![limit]);
//! engine.configure(Time(0), &config.interface("Fa0/0", InterfaceConfig::new(10_000).output("Limit")))?;
//!
//! // A hundred packets, one each millisecond, of which the bucket of 31 250 bytes and its rate let 28 pass.
//! let (port, ends) = (engine.port("Fa0/0").unwrap(), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
//! let packet = Descriptor::ipv4(protocol::UDP, (ends.0, 5_000), (ends.1, 5_001), 1_500, Framing::Ethernet);
//! (0..100).for_each(|number| engine.transmit(Time(number * 1_000_000), port, packet, number));
//! let mut outputs = Vec::new();
//! engine.poll(Time(1_000_000_000), &mut outputs);
//! assert_eq!(outputs.iter().filter(|output| matches!(output, Output::Departure(_))).count(), 28);
//! # Ok::<(), qos_core::ConfigError>(())
//! ```
//!
//! # Floors
//!
//! The folders, bottom up. A file imports from lower floors and from its own folder only, and no files import each
//! other in a circle; `tests/unit/test_crates.py` reads this list.
//!
//! 1. `error`, `mistaken`, `time`, `winner_tree`, `wire`: the error of a configuration; deliberate mistakes; points
//!    and lengths of time, rates; the minimum of many keys; headers and framings.
//! 1. `config`, `frame`: the configuration, with the default values; properties of frames, and the output.
//! 1. `counters`: the counters, and the policy-maps with all defaults.
//! 1. `plan`: the complete settings of a port, as plain data from the compiler for the run time.
//! 1. `compile`, `classify`, `meter`: from the configuration to the plans (only `engine` imports it); access lists,
//!    class-maps and marking; token buckets, policers, averages.
//! 1. `queueing`, `link`: disciplines, early detection, shapers and the scheduler of a tree of queues; the two ends of
//!    a link, which all ports share.
//! 1. `policy`: the running state of an attached policy-map, which classifies, marks, polices and counts.
//! 1. `router`, `catalyst`: the ports of a router and of a Catalyst 3750, each with ingress and egress.
//! 1. `port`: a port of either kind.
//! 1. `engine`: the facade.

#[macro_use]
mod mistaken;

// The configurations of the integration tests, which use the crate by its name.
#[cfg(test)]
extern crate self as qos_core;
#[cfg(test)]
#[path = "../tests/it/common/switch.rs"]
mod switch_configurations;

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
pub mod winner_tree;
pub mod wire;

#[cfg(feature = "serde")]
pub use compile::policy_rules::{policy_rules, PolicyRules};
pub use config::{PortsConfig, RouterConfig, NORMAL_JITTER_CUT};
pub use counters::{Counters, PortTotals};
pub use engine::Engine;
pub use error::{ConfigError, ConfigErrorKind};
pub use frame::{Departure, Descriptor, DropReason, Dropped, Label, Network, Output, PortId, Side};
pub use time::{Duration, Rate, Time};
