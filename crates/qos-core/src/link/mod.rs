//! Link of a port: its clock, propagation, impairments, counters, and destination of its outputs.

pub(crate) mod counters;
pub(crate) mod delay_line;
pub(crate) mod impairment;
pub(crate) mod inbound;
pub(crate) mod outbound;
pub(crate) mod outputs;
pub(crate) mod serialiser;
pub(crate) mod traffic;

pub use serialiser::{Passage, Serialiser};
