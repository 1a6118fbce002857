//! The simulated lab: hosts, routers and links in virtual time, with the engine of the virtual lab.
//!
//! [`Scenario`] is the input, [`Simulation`] runs it, and [`Report`] is the result. The library reads no clock, starts
//! no thread and uses no external randomness: the same scenario gives the same packets. `docs/internals/simulator.md`
//! describes the model.

mod capture;
mod event_queue;
pub mod explain;
mod network;
mod packet;
mod probes;
pub mod report;
mod run;
pub mod sample_store;
pub mod samples;
pub mod scenario;
pub mod schema;
mod seed;
mod simulation;
pub mod tcp;
mod traffic;

pub use explain::{Explanation, Question};
pub use report::Report;
pub use scenario::Scenario;
pub use simulation::Simulation;
