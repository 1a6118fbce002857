//! Fuzz targets as functions of bytes: each panics if a required property is violated.
//!
//! `fuzz_targets` passes them generated input, `tests/corpus.rs` the files in `fuzz/corpus`.

pub mod bridge;
pub mod config;
pub mod control;
mod decisions;
pub mod flood;
pub mod forwarding;
pub mod frame;
pub mod pcap;
pub mod ports;
pub mod program;
pub mod scenario;
pub mod sla;
pub mod tcp;
pub mod transit;

// Helpers of the property tests: the fuzz target needs a part of them.
#[allow(missing_docs)]
#[path = "../../qos-core/tests/it/common/mod.rs"]
mod common;

// Network of the simulator's tests, also used only in part.
#[allow(missing_docs, missing_debug_implementations)]
#[path = "../../qos-sim/tests/it/common/mod.rs"]
mod network;
