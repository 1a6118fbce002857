//! Random programs against the engine, as a router or (by the first byte) as a switch; the property tests run the same.
#![no_main]

#[path = "../../crates/qos-core/tests/it/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: &[u8]| {
    let Some((first, program)) = program.split_first() else { return };
    if program.len() <= 2_000 {
        match first % 2 {
            0 => common::program::run(program),
            _ => common::program::run_switch(program),
        }
    }
});
