//! `qos-router`: the data plane of a router, or of all routers of a lab.
//!
//! Frames come from packet sockets (`ring`) and pass the engine of `qos-core` in event time (`plane`); a control socket
//! ([`control`], [`requests`]) configures it and reads its counters. Routers with links in memory run in the order of
//! event time (`group`). `docs/internals/control-protocol.md` describes the protocol.

pub mod bridge;
mod capture;
pub mod client;
mod closing;
pub mod config;
pub mod control;
pub mod daemon;
mod daemon_clock;
pub mod forwarding;
pub mod frame;
mod frame_pool;
mod gathering;
mod group;
mod health;
mod in_transit;
pub mod lab;
mod member;
pub mod namespace;
mod netdev;
mod plane;
pub mod ports;
pub mod requests;
mod rights;
mod ring;
mod ring_sizes;
pub mod schema;
mod serve;
mod sla;
mod wakeup;
