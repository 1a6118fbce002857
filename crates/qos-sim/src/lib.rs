//! The laboratory in virtual time: hosts with a modelled TCP around the queueing engine.
//!
//! Like `qos-core` the library reads no clock, does no IO, starts no thread and draws no unseeded randomness: the same scenario gives
//! the same packets.

pub mod tcp;
