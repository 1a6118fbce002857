//! TCP behind a policer, compared with measurements of Linux's own TCP (kernel 6.1 in virtual time;
//! `docs/internals/simulator.md`).

use crate::scene::{dumbbell, policer, policy_out, run, sample_only, MILLI, SECOND};
use serde_json::{json, Value};
use std::fs;

/// The policer counts the Ethernet header, the measurements count IP packets: a rate or size of full IP packets as the
/// policer sees it.
fn with_header(ip: u64) -> u64 {
    ip * 1514 / 1500
}

/// A connection through a policer in front of a slow link.
struct Way {
    control: &'static str,
    link_bps: u64,
    rtt_ms: u64,
    pir_bps: u64,
}

/// Results of Linux with a bucket, in percent: goodput relative to the policed rate, dropped packets if they were
/// counted, and the tolerance of the simulated goodput; none if it is known to differ.
struct Measured(u64, f64, Option<f64>, Option<f64>);

/// Seeds of each case.
const SEEDS: u64 = 5;
/// The short level simulates every fifth case.
const SAMPLE: usize = 5;
/// Tolerance of drops, in points.
const DROPS_WITHIN: f64 = 2.0;
/// The kernel of the measurements had 1000 Hz.
const LINUX_TICK_NS: u64 = MILLI;

const CASES: [(Way, &[Measured]); 6] = [
    (
        Way { control: "reno", link_bps: 10_000_000, rtt_ms: 50, pir_bps: 1_000_000 },
        &[
            Measured(3000, 35.6, Some(16.9), Some(6.0)),
            Measured(4500, 57.4, Some(9.9), Some(6.0)),
            Measured(6250, 67.3, Some(7.7), Some(6.0)),
            Measured(9000, 92.3, Some(8.3), None),
            Measured(12_500, 95.6, Some(9.2), Some(3.0)),
            Measured(15_625, 96.7, Some(9.7), Some(3.0)),
            Measured(20_000, 96.3, Some(9.4), Some(3.0)),
            Measured(31_250, 96.5, Some(10.2), Some(3.0)),
            Measured(62_500, 96.6, Some(10.4), Some(3.0)),
            Measured(187_500, 96.6, Some(12.8), Some(3.0)),
        ],
    ),
    (
        Way { control: "cubic", link_bps: 10_000_000, rtt_ms: 50, pir_bps: 1_000_000 },
        &[
            Measured(3000, 41.0, Some(15.4), Some(6.0)),
            Measured(4500, 58.7, Some(5.1), Some(6.0)),
            Measured(6250, 82.5, Some(4.9), Some(6.0)),
            Measured(9000, 96.1, Some(5.4), Some(3.0)),
            Measured(12_500, 95.8, Some(5.8), Some(3.0)),
            Measured(15_625, 91.3, Some(5.9), None),
            Measured(20_000, 95.9, Some(5.7), Some(3.0)),
            Measured(31_250, 96.4, Some(5.9), Some(3.0)),
            Measured(62_500, 96.5, Some(7.4), Some(3.0)),
            Measured(187_500, 96.5, Some(6.5), None),
        ],
    ),
    (
        Way { control: "reno", link_bps: 50_000_000, rtt_ms: 100, pir_bps: 10_000_000 },
        &[
            Measured(125_000, 79.9, None, Some(3.0)),
            Measured(312_500, 87.5, None, Some(3.0)),
            Measured(580_000, 94.0, None, Some(3.0)),
            Measured(1_875_000, 96.9, None, Some(3.0)),
        ],
    ),
    (
        Way { control: "cubic", link_bps: 50_000_000, rtt_ms: 100, pir_bps: 10_000_000 },
        &[Measured(125_000, 91.3, None, Some(3.0)), Measured(312_500, 95.7, None, Some(3.0))],
    ),
    (
        Way { control: "reno", link_bps: 10_000_000, rtt_ms: 10, pir_bps: 1_000_000 },
        &[
            Measured(1500, 7.2, None, None),
            Measured(3000, 63.2, None, None),
            Measured(12_500, 96.5, None, None),
            Measured(31_250, 96.4, None, Some(3.0)),
        ],
    ),
    (
        Way { control: "reno", link_bps: 10_000_000, rtt_ms: 100, pir_bps: 1_000_000 },
        &[
            Measured(12_500, 86.7, None, Some(3.0)),
            Measured(31_250, 96.4, None, Some(3.0)),
            Measured(62_500, 96.5, None, Some(3.0)),
        ],
    ),
];

/// One flow through a policer in front of the slow link: goodput in percent of the policed rate from 10 to 70 s,
/// dropped packets in percent.
fn policed(way: &Way, bucket: u64, seed: u64) -> (f64, f64) {
    const SECONDS: u64 = 60;
    let mut scenario = dumbbell(way.link_bps, way.rtt_ms * MILLI / 2);
    scenario["seed"] = json!(seed);
    scenario["host_jitter_ns"] = Value::Null;
    scenario["tick_ns"] = json!(LINUX_TICK_NS);
    scenario["nodes"]["R1"]["configuration"] =
        policy_out("FastEthernet0/1", way.link_bps / 1000, policer(with_header(way.pir_bps), with_header(bucket)));
    scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 5201, "duration_ns": (10 + SECONDS) * SECOND, "congestion_control": way.control}]);
    let report = run(&scenario);
    let later = report.flows["transfer"].intervals.iter().filter(|interval| interval.start_s >= 10.0);
    let bytes: u64 = later.map(|interval| interval.bytes).sum();
    let dropped: u64 = report.packets.dropped.values().sum();
    let goodput = bytes as f64 * 8.0 / SECONDS as f64 / way.pir_bps as f64;
    (100.0 * goodput, 100.0 * dropped as f64 / report.hosts["client"].packets_sent as f64)
}

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals/simulator.md");
const BEGIN: &str = "<!-- one connection -->\n";
const END: &str = "<!-- end of one connection -->\n";

/// The table as the document has it, or with WRITE_TABLES in the environment: from now on.
#[expect(clippy::disallowed_methods, reason = "reads and writes a document; the simulator has no part in it")]
fn documented_values(table: &str) -> String {
    let text = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (old, after) = rest.split_once(END).unwrap();
    if std::env::var_os("WRITE_TABLES").is_none() {
        return old.to_owned();
    }
    fs::write(DOCUMENT, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    table.to_owned()
}

#[test]
fn goodput_behind_a_policer_equals_that_of_linux() {
    let mut table = String::from(
        "| control | link, round trip, PIR | bucket, bytes | goodput here | Linux | dropped here | Linux |\n\
         |---|---|--:|---|--:|--:|--:|\n",
    );
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    let every = if sample_only() { SAMPLE } else { 1 };
    let cases = CASES.iter().flat_map(|(way, cases)| cases.iter().map(move |case| (way, case)));
    for (way, Measured(bucket, linux, linux_drops, within)) in cases.step_by(every) {
        let Way { control, link_bps, rtt_ms, pir_bps } = way;
        let runs: Vec<(f64, f64)> = (1..=SEEDS).map(|seed| policed(way, *bucket, seed)).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (goodput, drops) = (mean(|run| run.0), mean(|run| run.1));
        let least = runs.iter().map(|run| run.0).fold(f64::INFINITY, f64::min);
        let most = runs.iter().map(|run| run.0).fold(0.0, f64::max);
        let counted = linux_drops.map_or_else(String::new, |drops| format!("{drops:.1}"));
        let place =
            format!("{control} | {} Mb/s, {rtt_ms} ms, {} Mb/s | {bucket}", link_bps / 1_000_000, pir_bps / 1_000_000);
        let row = format!("| {place} | {goodput:.1} ({least:.1} to {most:.1}) | {linux:.1} | {drops:.1} | {counted} |");
        let far = within.is_some_and(|within| {
            let other_drops = linux_drops.is_some_and(|linux| (drops - linux).abs() > DROPS_WITHIN);
            (goodput - linux).abs() > within || other_drops
        });
        if far {
            wrong.push(row.clone());
        }
        table += &format!("{row}\n");
        rows.push(row);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let documented = documented_values(&table);
    let changed: Vec<_> = rows.iter().filter(|row| !documented.contains(row.as_str())).collect();
    assert!(changed.is_empty(), "WRITE_TABLES=1 puts them into {DOCUMENT}: {changed:#?}");
    assert!(every > 1 || documented == table, "WRITE_TABLES=1 writes {DOCUMENT}");
}

#[test]
fn four_flows_without_distance_lose_a_third_and_share_fairly() {
    // In half a minute the shares depend on chance: use the mean of a few seeds.
    for (control, linux_drops) in [("cubic", 31.9), ("reno", 36.9)] {
        let (mut sum, mut drops, mut jain) = (0.0, 0.0, 0.0);
        for seed in 1..=SEEDS {
            let mut scenario = dumbbell(100_000_000, MILLI / 2);
            scenario["seed"] = json!(seed);
            scenario["host_jitter_ns"] = Value::Null;
            scenario["tick_ns"] = json!(LINUX_TICK_NS);
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
fn small_queue_limits_data_waiting_in_the_host() {
    // The sender's own access line is the slowest: TCP small queues keep the data in the socket.
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
