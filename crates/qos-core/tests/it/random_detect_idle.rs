//! Random early detection on a line that is idle, or has been: what once filled the queue is forgotten.

use crate::common::{self, load, with_policy, Source, PORT, SECOND};
use qos_core::wire::Framing::Ppp;
use qos_core::{frame, Engine, Time};
use serde_json::json;

/// Packets dropped of 300 at `bps` in packets of `ip_len` bytes, on a line of 2 Mb/s that 4 Mb/s came to for ten
/// seconds and nothing for so many after them.
fn dropped(generation: &str, silence: u64, ip_len: usize, bps: u64) -> u64 {
    let red = json!({"name": "class-default", "bandwidth": {"kbps": 1000}, "random_detect": {"basis": "precedence"}});
    let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
    engine.configure(Time(0), &with_policy(generation, 2_000, json!([red]))).unwrap();
    load(&mut engine, Ppp, &[Source::new(1000, 0, 0, 4_000_000)], Time(10 * SECOND));
    let class = common::class(&mut engine, Time(10 * SECOND), 0);
    assert!(class.random_detect.unwrap().mean_depth > 20.0, "early detection has been at work");
    let flood = class.drops;
    let light = frame::parse(&common::frames::udp(ip_len, 0, 1, 7), Ppp);
    let (mut outputs, gap) = (Vec::new(), ip_len as u64 * 8 * SECOND / bps);
    let mut now = (10 + silence) * SECOND;
    for _ in 0..300 {
        common::run(&mut engine, Time(now), &mut outputs);
        engine.transmit(Time(now), PORT, light, 0);
        now += gap;
    }
    engine.audit().unwrap();
    let drops = common::class(&mut engine, Time(now), 0).drops;
    drops.random.packets + drops.random_tail.packets + drops.tail.packets
        - (flood.random.packets + flood.random_tail.packets + flood.tail.packets)
}

/// 40 kb/s are 2 % of the line: nothing ever waits. Before the mean aged, 11 of 300 packets were dropped, after 5 s and
/// after 300 s alike, and 6 of 119 at 95 % of the line.
#[test]
fn an_idle_line_drops_nothing() {
    for generation in ["classic", "hqf"] {
        for silence in [5, 300] {
            assert_eq!(dropped(generation, silence, 200, 40_000), 0, "{generation} after {silence} s");
            assert_eq!(dropped(generation, silence, 1000, 1_900_000), 0, "{generation} at 95 % after {silence} s");
        }
    }
}

/// A queue ages at what its line can send now, not at what it could before.
#[test]
fn a_queue_ages_at_the_rate_of_the_line() {
    let mean = |before: u64| {
        let red = json!([{"name": "class-default", "random_detect": {"basis": "precedence"}}]);
        let with = |clock: u64| {
            let mut config = serde_json::to_value(with_policy("hqf", 2_000, red.clone())).unwrap();
            config["interfaces"]["Out"]["clock_rate_bps"] = json!(clock);
            common::read(&config)
        };
        let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
        engine.configure(Time(0), &with(before)).unwrap();
        engine.configure(Time(0), &with(2_000_000)).unwrap();
        load(&mut engine, Ppp, &[Source::new(1000, 0, 0, 4_000_000)], Time(10 * SECOND));
        common::run(&mut engine, Time(11 * SECOND), &mut Vec::new());
        engine.transmit(Time(11 * SECOND), PORT, common::udp(1000, 0, Ppp), 0);
        common::class(&mut engine, Time(11 * SECOND), 0).random_detect.unwrap().mean_depth
    };
    let expected = mean(2_000_000);
    assert!(expected > 0.1, "{expected}");
    assert_eq!(mean(64_000), expected);
}
