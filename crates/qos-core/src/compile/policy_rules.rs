//! The rules of policies as data, for other programs that check policies: facts, combinations, ranges, generations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::compile::combinations::{
    Combination, Fact, IMPOSSIBLE, ONE_UNIT, ON_SUBINTERFACE, PORT_OR_SUBINTERFACE, QUEUEING,
};
use crate::compile::generation::{properties, Properties, GENERATIONS};
use crate::compile::order::{Order, ORDERED};
use crate::compile::range::RANGES;
use crate::compile::sums::{Sum, SUMS};
use crate::config::Generation;

/// The rules of policy-maps.
#[derive(Debug, Serialize)]
pub struct PolicyRules {
    facts: Vec<FactRule>,
    /// Rules in the order of evaluation.
    impossible: &'static [Combination],
    /// Additional rules for the policy-map of a subinterface.
    on_subinterface: &'static [Combination],
    queueing: &'static [Fact],
    one_unit: Fact,
    /// Pairs of policer values, the first of which is at most the second.
    ordered: &'static [Order],
    /// Sums over the classes of a policy-map, with their limits.
    sums: &'static [Sum],
    port_or_subinterface: [&'static str; 2],
    /// Least and greatest value.
    ranges: BTreeMap<&'static str, [u64; 2]>,
    generations: Vec<GenerationRules>,
}

#[derive(Debug, Serialize)]
struct FactRule {
    name: Fact,
    key: &'static str,
    words: &'static [&'static str],
}

#[derive(Debug, Serialize)]
struct GenerationRules {
    name: Generation,
    adds_percentages: bool,
    /// Properties that allow refused combinations.
    allowed: BTreeSet<&'static str>,
    class_flow_queues: u32,
    default_class_reserves: bool,
    flow_limit_with_random_detect: bool,
    priority_burst_step_kbps: u64,
    priority_queue_limit: u32,
    random_detect_by_limit: bool,
    random_detect_min: [u32; 8],
    random_detect_min_by_dscp: ([u32; 3], u32),
    reservable_percent: Option<u32>,
    tx_ring: Option<u32>,
}

/// Returns the rules of all generations.
pub fn policy_rules() -> PolicyRules {
    let named = |row: &Combination| [Some(row.of), row.with].into_iter().flatten().chain(row.without.iter().copied());
    let facts: BTreeSet<Fact> = IMPOSSIBLE.iter().flat_map(named).collect();
    PolicyRules {
        facts: facts
            .into_iter()
            .filter(|fact| *fact != Fact::QueueingChild)
            .map(|name| FactRule { name, key: name.path(), words: name.words() })
            .collect(),
        impossible: IMPOSSIBLE,
        on_subinterface: ON_SUBINTERFACE,
        queueing: QUEUEING,
        one_unit: ONE_UNIT,
        ordered: ORDERED,
        sums: SUMS,
        port_or_subinterface: PORT_OR_SUBINTERFACE,
        ranges: RANGES.iter().map(|(key, range)| (*key, [*range.start(), *range.end()])).collect(),
        generations: GENERATIONS.map(generation).into(),
    }
}

fn generation(name: Generation) -> GenerationRules {
    let of: &Properties = properties(name);
    let allowing = IMPOSSIBLE.iter().filter_map(|row| row.unless);
    GenerationRules {
        name,
        adds_percentages: of.adds_percentages,
        allowed: allowing.filter(|property| (property.has)(of)).map(|property| property.name).collect(),
        class_flow_queues: of.class_flow_queues,
        default_class_reserves: of.default_class_reserves,
        flow_limit_with_random_detect: of.flow_limit_with_random_detect,
        priority_burst_step_kbps: of.priority_burst_step_kbps,
        priority_queue_limit: of.priority_queue_limit,
        random_detect_by_limit: of.random_detect_by_limit,
        random_detect_min: of.random_detect_min,
        random_detect_min_by_dscp: of.random_detect_min_by_dscp,
        reservable_percent: of.reservable_percent,
        tx_ring: of.tx_ring,
    }
}
