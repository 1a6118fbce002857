//! The link of a port: its clock, propagation, impairments, what it counts and where it puts what comes out.

pub(crate) mod counters;
pub(crate) mod delay_line;
pub(crate) mod impairment;
pub(crate) mod inbound;
pub(crate) mod outbound;
pub(crate) mod outputs;
pub(crate) mod serialiser;
pub(crate) mod traffic;

pub use serialiser::{Passage, Serialiser};
