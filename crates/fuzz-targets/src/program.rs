//! Random programs against the engine, by the first byte as a router, as one with trees of queues or as a switch; the
//! property tests run the same.

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let Some((first, program)) = bytes.split_first() else { return };
    if program.len() <= 2_000 {
        match first % 4 {
            0 => crate::common::program::run(program),
            2 => crate::common::program::run_trees(program),
            _ => crate::common::program::run_switch(program),
        }
    }
}
