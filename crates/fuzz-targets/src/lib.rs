//! The fuzz targets as functions of bytes: each panics where something that must hold does not.
//!
//! `fuzz_targets` hands them what the fuzzer makes up, `tests/corpus.rs` what is in `fuzz/corpus`.

pub mod bridge;
pub mod config;
pub mod control;
pub mod flood;
pub mod forwarding;
pub mod frame;
mod input;
pub mod pcap;
pub mod ports;
pub mod program;
pub mod scenario;
pub mod sla;
pub mod tcp;
pub mod transit;

// What the property tests use: the fuzz target needs a part of it.
#[allow(missing_docs)]
#[path = "../../qos-core/tests/it/common/mod.rs"]
mod common;

// The network of the simulator's own tests, likewise.
#[allow(missing_docs, missing_debug_implementations)]
#[path = "../../qos-sim/tests/it/common/mod.rs"]
mod network;
