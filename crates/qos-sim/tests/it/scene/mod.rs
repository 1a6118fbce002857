//! Scenarios that the tests share.
#![allow(dead_code)]

use qos_sim::{Report, Scenario, Simulation};
use serde_json::{json, Value};

pub const SECOND: u64 = 1_000_000_000;
pub const MILLI: u64 = 1_000_000;

/// Whether long tests run a sample of their cases: the short level of the checks sets `QOS_CASES_AT_MOST` (`tox.ini`).
/// A written table has all cases.
pub fn sample_only() -> bool {
    std::env::var_os("QOS_CASES_AT_MOST").is_some() && std::env::var_os("WRITE_TABLES").is_none()
}

/// `client` — R1 — `server`: 100 Mb/s, then `rate_bps` with `delay_ns`. Nothing is random; there is no flow yet.
pub fn dumbbell(rate_bps: u64, delay_ns: u64) -> Value {
    json!({"format": 1, "seed": 1, "host_jitter_ns": 0, "start_jitter_ns": 0,
        "nodes": {
            "client": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.1.1"}]},
            "R1": {"kind": "router"},
            "server": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "interface": "eth0"}]}},
        "links": [
            {"name": "lan", "rate_bps": 100_000_000, "framing": "ethernet", "ends": [
                {"node": "client", "interface": "eth0", "address": "10.0.1.10/24"},
                {"node": "R1", "interface": "FastEthernet0/0", "address": "10.0.1.1/24"}]},
            {"name": "wan", "rate_bps": rate_bps, "framing": "ethernet", "delay_ns": delay_ns, "ends": [
                {"node": "R1", "interface": "FastEthernet0/1", "address": "10.0.2.1/24"},
                {"node": "server", "interface": "eth0", "address": "10.0.2.10/24"}]}],
        "flows": []})
}

/// A router's configuration with one policy-map of the given classes, on the way out of `interface`.
pub fn policy_out(interface: &str, bandwidth_kbps: u64, classes: Value) -> Value {
    json!({"format": 1, "router": "R1", "generation": "hqf", "policy_maps": {"P": {"classes": classes}},
        "interfaces": {interface: {"enabled": true, "bandwidth_kbps": bandwidth_kbps, "service_policy_output": "P"}}})
}

/// A class-default that polices to `cir` with a bucket of `bc` bytes.
pub fn policer(cir: u64, bc: u64) -> Value {
    json!([{"name": "class-default", "police": {"cir": {"bps": cir}, "bc": {"bytes": bc},
        "conform": [{"action": "transmit"}], "exceed": [{"action": "drop"}]}}])
}

/// A flood from `client` to `server`.
pub fn flood(name: &str, rate_bps: u64, payload: u32, seconds: u64) -> Value {
    json!({"name": name, "protocol": "udp", "source": "client", "destination": "server", "port": 5002,
        "duration_ns": seconds * SECOND, "rate_bps": rate_bps, "payload_bytes": payload})
}

pub fn read(scenario: &Value) -> Scenario {
    Scenario::from_json(&scenario.to_string()).unwrap()
}

pub fn run(scenario: &Value) -> Report {
    let simulation = Simulation::new(&read(scenario)).unwrap();
    let report = simulation.run(Vec::<Vec<u8>>::new()).unwrap();
    balanced(&report);
    report
}

/// Every packet is accounted for.
pub fn balanced(report: &Report) {
    let packets = &report.packets;
    let dropped: u64 = packets.dropped.values().sum();
    assert_eq!(packets.offered, packets.delivered + dropped + packets.lost + packets.queued, "{packets:?}");
    let sent: u64 = report.hosts.values().map(|host| host.packets_sent).sum();
    let received: u64 = report.hosts.values().map(|host| host.packets_received).sum();
    assert_eq!((sent, received), (packets.offered, packets.delivered));
}

/// Error of a scenario.
pub fn refusal(scenario: &Value) -> String {
    match Scenario::from_json(&scenario.to_string()) {
        Err(error) => error.to_string(),
        Ok(scenario) => Simulation::new(&scenario).expect_err("a scenario that is refused").to_string(),
    }
}
