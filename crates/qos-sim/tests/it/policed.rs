//! TCP behind a policer, beside measurements of Linux's own TCP (kernel 6.1 in virtual time; `docs/simulation.md`).

use crate::scene::{dumbbell, policer, policy_out, run, MILLI, SECOND};
use serde_json::{json, Value};

/// The policer counts the Ethernet header, the measurements count IP packets: a rate or size of full IP packets as the
/// policer sees it.
fn with_header(ip: u64) -> u64 {
    ip * 1514 / 1500
}

struct Case {
    control: &'static str,
    link_bps: u64,
    rtt_ms: u64,
    pir_bps: u64,
    bucket: u64,
    seconds: u64,
}

/// One flow through a policer in front of the slow link: goodput in percent of the policed rate after 10 s, dropped
/// packets in percent.
fn policed(case: &Case, seed: u64) -> (f64, f64) {
    let mut scenario = dumbbell(case.link_bps, case.rtt_ms * MILLI / 2);
    scenario["seed"] = json!(seed);
    scenario["host_jitter_ns"] = Value::Null;
    scenario["nodes"]["R1"]["configuration"] = policy_out(
        "FastEthernet0/1",
        case.link_bps / 1000,
        policer(with_header(case.pir_bps), with_header(case.bucket)),
    );
    scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 5201, "duration_ns": (10 + case.seconds) * SECOND, "congestion_control": case.control}]);
    let report = run(&scenario);
    let later = report.flows["transfer"].intervals.iter().filter(|interval| interval.start_s >= 10.0);
    let bytes: u64 = later.map(|interval| interval.bytes).sum();
    let dropped: u64 = report.packets.dropped.values().sum();
    let goodput = bytes as f64 * 8.0 / case.seconds as f64 / case.pir_bps as f64;
    (100.0 * goodput, 100.0 * dropped as f64 / report.hosts["client"].packets_sent as f64)
}

/// Compares the mean of three seeds with Linux's goodput and drops; `None`: a drop ratio that was not measured or is
/// known to differ.
fn compare(cases: &[(Case, f64, Option<f64>, f64)]) {
    let mut wrong = Vec::new();
    for (case, linux, drops, tolerance) in cases {
        let runs = [1, 2, 3].map(|seed| policed(case, seed));
        let goodput = runs.iter().map(|run| run.0).sum::<f64>() / 3.0;
        let dropped = runs.iter().map(|run| run.1).sum::<f64>() / 3.0;
        if (goodput - linux).abs() > *tolerance || drops.is_some_and(|drops| (dropped - drops).abs() > 2.0) {
            let Case { control, rtt_ms, bucket, .. } = case;
            let found = format!("{goodput:.1} % and {dropped:.1} %");
            wrong.push(format!("{control}, {rtt_ms} ms, {bucket} bytes: {found}, Linux {linux} % and {drops:?} %"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_bucket_decides_goodput_as_with_linux() {
    let case =
        |control, bucket| Case { control, link_bps: 10_000_000, rtt_ms: 50, pir_bps: 1_000_000, bucket, seconds: 60 };
    compare(&[
        (case("reno", 3000), 35.6, Some(16.9), 6.0),
        (case("reno", 4500), 57.4, Some(9.9), 6.0),
        (case("reno", 6250), 67.3, Some(7.7), 6.0),
        (case("reno", 12_500), 95.6, Some(9.2), 3.0),
        (case("reno", 31_250), 96.5, Some(10.2), 3.0),
        (case("reno", 187_500), 96.6, Some(12.8), 3.0),
        (case("cubic", 3000), 41.0, None, 6.0),
        (case("cubic", 4500), 58.7, Some(5.1), 6.0),
        (case("cubic", 6250), 82.5, Some(4.9), 6.0),
        (case("cubic", 12_500), 95.8, Some(5.8), 3.0),
        (case("cubic", 31_250), 96.4, Some(5.9), 3.0),
        (case("cubic", 187_500), 96.5, None, 3.0),
    ]);
}

#[test]
fn a_large_window_needs_a_large_bucket_as_with_linux() {
    let case =
        |control, bucket| Case { control, link_bps: 50_000_000, rtt_ms: 100, pir_bps: 10_000_000, bucket, seconds: 60 };
    compare(&[
        (case("reno", 125_000), 79.9, None, 3.0),
        (case("reno", 312_500), 87.5, None, 3.0),
        (case("reno", 580_000), 94.0, None, 3.0),
        (case("cubic", 125_000), 91.3, None, 3.0),
        (case("cubic", 312_500), 95.7, None, 3.0),
    ]);
}

#[test]
fn four_flows_without_distance_lose_a_third_and_share_fairly() {
    // Who gets how much is chance in half a minute: the mean of a few seeds.
    const SEEDS: u64 = 5;
    for (control, linux_drops) in [("cubic", 31.9), ("reno", 36.9)] {
        let (mut sum, mut drops, mut jain) = (0.0, 0.0, 0.0);
        for seed in 1..=SEEDS {
            let mut scenario = dumbbell(100_000_000, MILLI / 2);
            scenario["seed"] = json!(seed);
            scenario["host_jitter_ns"] = Value::Null;
            scenario["nodes"]["R1"]["configuration"] =
                policy_out("FastEthernet0/1", 100_000, policer(with_header(1_000_000), with_header(31_250)));
            scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client",
                "destination": "server",
                "port": 5201, "streams": 4, "duration_ns": 30 * SECOND, "congestion_control": control}]);
            let report = run(&scenario);
            let rates: Vec<f64> =
                report.flows["transfer"].streams.iter().map(|stream| stream.bytes as f64 * 8.0 / 30.0).collect();
            let total: f64 = rates.iter().sum();
            sum += total / SEEDS as f64;
            jain += total * total / (4.0 * rates.iter().map(|rate| rate * rate).sum::<f64>()) / SEEDS as f64;
            let dropped: u64 = report.packets.dropped.values().sum();
            drops += 100.0 * dropped as f64 / report.hosts["client"].packets_sent as f64 / SEEDS as f64;
        }
        assert!((sum / 1e6 - 0.97).abs() < 0.03, "{control}: {sum} b/s, Linux 97 % of 1 Mb/s");
        assert!((drops - linux_drops).abs() < 4.0 && jain >= 0.9, "{control}: {drops} % dropped, {jain}");
    }
}

#[test]
fn little_of_a_connection_waits_in_its_own_host() {
    // The line of the sender's own host is the slowest: TCP small queues keep the data in the socket.
    for control in ["reno", "cubic"] {
        let mut scenario = dumbbell(100_000_000, MILLI / 2);
        scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
            "port": 5201, "streams": 4, "duration_ns": 10 * SECOND, "congestion_control": control}]);
        let report = run(&scenario);
        assert!(report.packets.dropped.is_empty(), "{:?}", report.packets.dropped);
        let streams = &report.flows["transfer"].streams;
        let sum: f64 = streams.iter().map(|stream| stream.bytes as f64 * 8.0 / 10.0).sum();
        // 1448 bytes of payload in 1538 on the line.
        assert!((sum / 94.15e6 - 1.0).abs() < 0.01, "{sum} b/s");
        assert!(streams.iter().all(|stream| stream.rtt_mean_ms.is_some_and(|rtt| rtt < 10.0)), "{streams:?}");
    }
}
