//! `qos-router`: the data plane of one router.
//!
//! Frames come from packet sockets ([`ring`]) and pass the engine of `qos-core` in event time ([`dataplane`]); a control socket ([`control`],
//! [`requests`]) configures it and reads its counters. `docs/control-protocol.md` describes the protocol.

pub mod bridge;
pub mod client;
pub mod clock;
pub mod control;
pub mod daemon;
pub mod dataplane;
pub mod frame;
pub mod health;
pub mod lead;
pub mod ledger;
pub mod netdev;
pub mod pool;
pub mod ports;
pub mod requests;
pub mod ring;
pub mod schema;
pub mod sla;
