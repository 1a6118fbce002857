//! Random programs: the counters of the engine balance after every operation.

use crate::common;
use proptest::prelude::*;

proptest! {
    #![proptest_config(crate::bounded::cases(150))]

    #[test]
    fn random_programs_balance_in_a_router(program in prop::collection::vec(any::<u8>(), 0..600)) {
        common::program::run(&program);
    }

    /// The same with a switch.
    #[test]
    fn packet_counts_balance_in_random_programs_of_a_switch(program in prop::collection::vec(any::<u8>(), 0..600)) {
        common::program::run_switch(&program);
    }

    /// Mostly packets on one port under changing policies, so that queues fill.
    #[test]
    fn random_programs_balance_with_full_queues(program in filling_program()) {
        common::program::run(&program);
    }

    /// The same with trees of queues, which drop packets that waited.
    #[test]
    fn random_programs_balance_in_trees_of_queues(program in filling_program()) {
        common::program::run_trees(&program);
    }
}

/// Mostly packets on one port, under changing configurations.
fn filling_program() -> impl Strategy<Value = Vec<u8>> {
    let operations = prop::collection::vec(
        prop_oneof![
            20 => (prop::sample::select(vec![8u8, 0x18, 0x28, 0x27, 7]), any::<u8>(), any::<u8>())
                .prop_map(|(op, a, b)| vec![op, a, b]),
            4 => (15u8..26).prop_map(|gap| vec![0, gap]),
            2 => Just(vec![1]),
            1 => prop::array::uniform4(any::<u8>()).prop_map(|c| [vec![2], c.to_vec()].concat()),
            1 => Just(vec![3]),
        ],
        0..600,
    );
    (prop::array::uniform4(any::<u8>()), operations)
        .prop_map(|(start, operations)| [vec![2], start.to_vec(), operations.concat()].concat())
}
