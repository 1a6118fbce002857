//! The article on tx-ring-limit in the engine alone: the mean round-trip time of priority probes behind a flood of
//! random sizes, which classic weighted fair queueing holds back, at two line rates and with rings of several sizes.

use crate::common::build::*;
use crate::common::{self, configuration, PORT, SECOND};
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Time};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs;

/// Line in kb/s, ring in packets, published mean in ms.
const PUBLISHED: [(u64, u32, f64); 6] =
    [(512, 2, 16.0), (512, 5, 31.0), (512, 10, 57.0), (128, 1, 36.0), (128, 2, 49.0), (128, 5, 95.0)];

/// The flood sends a packet so often.
const FLOOD_GAP_NS: u64 = 3_000_000;
/// An operation of ten probes starts every two seconds.
const OPERATION_NS: u64 = 2 * SECOND;
const PROBE_GAP_NS: u64 = 20_000_000;
/// Time that sender, responder and sender again take for a probe, ms.
const PROCESS_MS: f64 = 3.0 * 0.32;

/// Mean round-trip time in ms of the probes sent in each window, given in seconds.
fn means(kbps: u64, ring: u32, seed: u64, windows: &[(u64, u64)]) -> Vec<f64> {
    let echo = class_of("af").priority_kbps(64);
    let classes = vec![echo, class_default().fair_queue()];
    let mut port = interface(kbps, None, Some("P"));
    port.tx_ring_limit = Some(ring);
    let config = configuration(Classic, maps([("P", classes)]), port);
    let mut engine: Engine<Option<u64>> = common::started(kbps * 1000, Ppp, &config);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // The senders have no common clock.
    let phase = random.next_u64() % FLOOD_GAP_NS;
    let end = windows.last().unwrap().1 * SECOND;
    let probes = (0..end / OPERATION_NS)
        .flat_map(|operation| (0..10).map(move |probe| operation * OPERATION_NS + probe * PROBE_GAP_NS));
    let floods = (0..end / FLOOD_GAP_NS).map(|number| number * FLOOD_GAP_NS + phase);
    let mut arrivals: Vec<_> =
        probes.map(|at| (at, true)).chain(floods.map(|at| (at, false))).filter(|(at, _)| *at < end).collect();
    arrivals.sort_unstable();
    let mut outputs = Vec::new();
    for (at, probe) in arrivals {
        common::run(&mut engine, Time(at), &mut outputs);
        let packet = if probe {
            common::datagram(40, 10, 1, 7, Ppp)
        } else {
            let length = 92 + (random.next_u64() % 960) as usize;
            common::datagram(length, 0, 40_000, 1 + (random.next_u64() % 65_500) as u16, Ppp)
        };
        engine.transmit(Time(at), PORT, packet, probe.then_some(at));
    }
    common::run(&mut engine, Time(end + SECOND), &mut outputs);
    // The return path is empty: the probe's own time on the line.
    let back_ms = 47.0 * 8.0 / kbps as f64;
    let departures = common::departures(&outputs);
    let trips = departures.iter().filter_map(|(time, sent, _)| {
        let sent = (*sent)?;
        Some((sent, time.0 - sent))
    });
    let trips: Vec<_> = trips.collect();
    let mean = |(from, to): &(u64, u64)| {
        let within = trips.iter().filter(|(sent, _)| (from * SECOND..to * SECOND).contains(sent));
        let (count, sum) = within.fold((0, 0), |(count, sum), (_, trip)| (count + 1, sum + trip));
        sum as f64 / f64::from(count) / 1e6 + back_ms + PROCESS_MS
    };
    windows.iter().map(mean).collect()
}

/// Root of the mean square of the logarithms of measured to published.
fn log_error(means: &[f64]) -> f64 {
    let squares = means.iter().zip(PUBLISHED).map(|(mean, (_, _, published))| (mean / published).ln().powi(2));
    (squares.sum::<f64>() / means.len() as f64).sqrt()
}

/// Place of the table of `mean_delays_match_published_ones_in_any_window`, between two marks.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/results.md");
const BEGIN: &str = "<!-- variable floods -->\n";
const END: &str = "<!-- end of variable floods -->\n";

/// The table as the document has it, or with WRITE_TABLES in the environment: from now on.
#[expect(clippy::disallowed_methods, reason = "reads and writes a document; the engine has no part in it")]
fn documented(table: &str) -> String {
    let text = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (old, after) = rest.split_once(END).unwrap();
    if std::env::var_os("WRITE_TABLES").is_none() {
        return old.to_owned();
    }
    fs::write(DOCUMENT, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    table.to_owned()
}

/// The means fit the published ones as well in any window; `docs/reference/results.md` has them.
#[test]
fn mean_delays_match_published_ones_in_any_window() {
    let windows = [(3, 27), (30, 54), (60, 84), (150, 174)];
    let rows: Vec<Vec<f64>> = PUBLISHED
        .iter()
        .map(|(kbps, ring, _)| {
            let runs: Vec<_> = (0..5).map(|seed| means(*kbps, *ring, seed, &windows)).collect();
            (0..windows.len()).map(|window| runs.iter().map(|run| run[window]).sum::<f64>() / 5.0).collect()
        })
        .collect();
    let errors: Vec<f64> =
        (0..windows.len()).map(|window| log_error(&rows.iter().map(|row| row[window]).collect::<Vec<_>>())).collect();
    for (window, error) in windows.iter().zip(&errors) {
        assert!(*error < 0.13, "{window:?} s: {rows:?} ms, {error}");
    }
    let cells = |values: &[f64], digits: usize| {
        values.iter().map(|value| format!(" {value:.digits$} |")).collect::<Vec<_>>().concat()
    };
    let spans: Vec<_> = windows.iter().map(|(from, to)| format!(" {from}-{to} s |")).collect();
    let rule = "---|".repeat(windows.len());
    let mut table = format!("\n| line, ring | published |{}\n|---|---|{rule}\n", spans.concat());
    for ((kbps, ring, published), row) in PUBLISHED.iter().zip(&rows) {
        table += &format!("| {kbps} kb/s, {ring} | {published} |{}\n", cells(row, 1));
    }
    table += &format!("| rms of the logarithm of measured to published | |{}\n\n", cells(&errors, 2));
    assert_eq!(documented(&table), table, "WRITE_TABLES=1 puts it into {DOCUMENT}");
}
