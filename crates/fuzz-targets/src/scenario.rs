//! Any text as a scenario of the simulator: it is refused, or it runs and every packet is accounted for.

use qos_sim::{Scenario, Simulation};

/// Limit of durations: longer runs and faster flows would only take more time.
const LONGEST_NS: u64 = 1_000_000;
const FASTEST_BPS: u64 = 10_000_000;
/// Limit of a probe: five packets of a jitter operation.
const LONGEST_PROBE_NS: u64 = 100_000_000;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(mut scenario) = Scenario::from_json(text) else { return };
    let written = serde_json::to_string(&scenario).unwrap();
    assert_eq!(Scenario::from_json(&written).unwrap(), scenario);
    if Simulation::new(&scenario).is_err() {
        return;
    }
    scenario.drain_ns = scenario.drain_ns.min(LONGEST_NS);
    scenario.start_jitter_ns = scenario.start_jitter_ns.min(LONGEST_NS);
    scenario.sample_ns = scenario.sample_ns.max(LONGEST_NS);
    for probe in &mut scenario.probes {
        probe.start_ns = probe.start_ns.min(LONGEST_NS);
        probe.end_ns = probe.end_ns.min(LONGEST_PROBE_NS);
    }
    for flow in &mut scenario.flows {
        flow.start_ns = flow.start_ns.min(LONGEST_NS);
        flow.duration_ns = flow.duration_ns.map(|duration| duration.min(LONGEST_NS));
        flow.interval_ns = flow.interval_ns.max(LONGEST_NS);
        flow.rate_bps = flow.rate_bps.map(|rate| rate.min(FASTEST_BPS));
        flow.gap_ns = flow.gap_ns.map(|gap| gap.max(1000));
        flow.streams = flow.streams.min(4);
    }
    // With a slower or shorter flow, another flow might be refused first.
    let Ok(simulation) = Simulation::new(&scenario) else { return };
    let packets = simulation.run(Vec::<Vec<u8>>::new()).unwrap().packets;
    let dropped: u64 = packets.dropped.values().sum();
    assert_eq!(packets.offered, packets.delivered + dropped + packets.lost + packets.queued);
}
