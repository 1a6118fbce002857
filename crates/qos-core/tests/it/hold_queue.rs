//! The hold-queue of classic weighted fair queueing under a flood of random sizes to random ports: when small packets
//! come to prevail.
//!
//! The discard of the highest sequence number lets small packets in sooner than large ones, but what filled the queue
//! before it was full has all sizes and leaves first. Who measures before that is gone measures something else than the
//! steady state.

use crate::common::{self, configuration, departures, frames, interface, run, PORT, SECOND};
use qos_core::wire::Framing::Ppp;
use qos_core::{frame, Engine, Time};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

/// A flood of IP packets of 92 to 1051 bytes, one every 3 ms.
const GAP_NS: u64 = 3_000_000;
const MEAN: f64 = 571.5;

/// When what left did so, and its IP length.
fn sent(kbps: u64, seconds: u64, seed: u64) -> Vec<(Time, usize)> {
    let echo = json!({"name": "af", "priority": {"unit": "kbps", "number": 64}});
    let classes = json!([echo, {"name": "class-default", "fair_queue": {}}]);
    let mut port = interface(kbps, None, Some("P"));
    port["tx_ring_limit"] = json!(2);
    let config = configuration("classic", json!({"P": {"classes": classes}}), port);
    let mut engine: Engine<usize> = common::engine(kbps * 1000, Ppp);
    engine.configure(Time(0), &config).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut outputs = Vec::new();
    for number in 0..seconds * SECOND / GAP_NS {
        let now = Time(number * GAP_NS);
        run(&mut engine, now, &mut outputs);
        let length = 92 + (random.next_u64() % 960) as usize;
        let frame = frames::udp(length, 0, 40_000, 1 + (random.next_u64() % 65_500) as u16);
        engine.transmit(now, PORT, frame::parse(&frame, Ppp), length);
    }
    engine.audit().unwrap();
    departures(&outputs).into_iter().map(|(time, length, _)| (time, length)).collect()
}

/// Mean IP length of what leaves between two moments, in seconds.
fn mean(sent: &[(Time, usize)], from: u64, to: u64) -> f64 {
    let within = |time: &Time| (from * SECOND..to * SECOND).contains(&time.0);
    let lengths: Vec<usize> = sent.iter().filter(|(time, _)| within(time)).map(|(_, length)| *length).collect();
    lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
}

/// `first`: while the first content leaves. `window`: the third and the fourth content, in which the experiment
/// tx-ring-limit measures.
fn check(kbps: u64, first: (u64, u64), window: (u64, u64), end: u64, most: f64) {
    for seed in 0..4 {
        let sent = sent(kbps, end, seed);
        let at_first = mean(&sent, first.0, first.1);
        assert!((at_first / MEAN - 1.0).abs() < 0.1, "{at_first}");
        let measured = mean(&sent, window.0, window.1);
        assert!(measured < most, "{measured}");
        let steady = mean(&sent, window.1, end);
        assert!((measured / steady - 1.0).abs() < 0.15, "{measured}, later {steady}");
    }
}

/// 32 queues. 1000 packets of 578 bytes on the line take 36 s; the next thousand, let in meanwhile, are short.
#[test]
fn at_128_kbps_small_packets_prevail_when_the_first_thousand_are_gone() {
    check(128, (4, 36), (54, 86), 150, 330.0);
}

/// 128 queues.
#[test]
fn at_512_kbps_small_packets_prevail_when_the_first_thousand_are_gone() {
    check(512, (2, 12), (21, 36), 70, 470.0);
}
