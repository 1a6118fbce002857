//! Random programs against the engine; the property tests run the same.
#![no_main]

#[path = "../../crates/qos-core/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: &[u8]| {
    if program.len() <= 2_000 {
        common::program::run(program);
    }
});
