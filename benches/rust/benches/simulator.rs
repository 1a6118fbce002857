//! Events and packets a second. Only as good as the machine is quiet.
#![allow(missing_docs, clippy::disallowed_macros)]

use criterion::{criterion_group, criterion_main, BatchSize, BenchmarkId, Criterion, Throughput};
use qos_sim::{Report, Scenario, Simulation};
use serde_json::{json, Value};

const SECOND: u64 = 1_000_000_000;

/// TCP over a policer, as in the figure of bucket size and goodput: 50 ms, one second of samples left out.
fn policed(rate_bps: u64, link_bps: u64, streams: u32, seconds: u64) -> Value {
    json!({"format": 1, "seed": 1, "sample_ns": 1000 * SECOND,
        "nodes": {
            "client": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "interface": "eth0"}]},
            "R1": {"kind": "router", "configuration": {"format": 1, "router": "R1", "generation": "hqf",
                "policy_maps": {"P": {"classes": [{"name": "class-default", "police": {"cir": {"bps": rate_bps},
                    "conform": [{"action": "transmit"}], "exceed": [{"action": "drop"}]}}]}},
                "interfaces": {"F0": {"enabled": true, "bandwidth_kbps": 100_000, "service_policy_input": "P"}}}},
            "server": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "interface": "eth0"}]}},
        "links": [
            {"name": "lan", "rate_bps": 1_000_000_000, "framing": "ethernet", "ends": [
                {"node": "client", "interface": "eth0", "address": "10.0.1.10/24"},
                {"node": "R1", "interface": "F0", "address": "10.0.1.1/24"}]},
            {"name": "wan", "rate_bps": link_bps, "framing": "ethernet", "delay_ns": 25_000_000, "ends": [
                {"node": "R1", "interface": "F1", "address": "10.0.2.1/24"},
                {"node": "server", "interface": "eth0", "address": "10.0.2.10/24"}]}],
        "flows": [{"name": "t", "protocol": "tcp", "source": "client", "destination": "server", "port": 5201,
            "streams": streams, "duration_ns": seconds * SECOND}]})
}

/// A flood of full-sized datagrams at the rate of the line.
fn flood(seconds: u64) -> Value {
    let mut scenario = policed(100_000_000, 100_000_000, 1, seconds);
    scenario["flows"] = json!([{"name": "t", "protocol": "udp", "source": "client", "destination": "server",
        "port": 5201,
        "duration_ns": seconds * SECOND, "rate_bps": 90_000_000, "payload_bytes": 1472}]);
    scenario
}

/// One router with a FIFO, four CUBIC flows at 1 Gb/s: the load of `benches/simulator.py`.
fn fifo() -> Value {
    serde_json::from_str(include_str!("fifo.scenario.json")).unwrap()
}

fn run(simulation: Simulation) -> Report {
    simulation.run(Vec::<Vec<u8>>::new()).unwrap()
}

fn speed(criterion: &mut Criterion) {
    for (name, scenario) in [
        ("tcp_policed_1M", policed(1_000_000, 10_000_000, 1, 400)),
        ("tcp_policed_10M", policed(10_000_000, 50_000_000, 1, 60)),
        ("tcp_policed_100M_10_streams", policed(100_000_000, 500_000_000, 10, 6)),
        ("udp_90M", flood(10)),
        ("tcp_fifo_1G_4_streams", fifo()),
    ] {
        let scenario = Scenario::from_json(&scenario.to_string()).unwrap();
        let report = run(Simulation::new(&scenario).unwrap());
        for (unit, count) in [("events", report.events), ("data_packets", report.hosts["client"].packets_sent)] {
            let mut group = criterion.benchmark_group(unit);
            group.sample_size(10).throughput(Throughput::Elements(count));
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter_batched(|| Simulation::new(&scenario).unwrap(), run, BatchSize::PerIteration);
            });
        }
    }
}

criterion_group!(benches, speed);
criterion_main!(benches);
