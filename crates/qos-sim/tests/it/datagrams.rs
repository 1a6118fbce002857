//! UDP through the simulated network: counts, times and rates that can be worked out by hand.

use crate::scene::{dumbbell, flood, policer, policy_out, run, MILLI, SECOND};
use qos_core::Counters;
use qos_sim::Report;
use serde_json::json;

/// Bytes on the line of a frame with so much UDP payload.
fn line_scenario(payload: u64) -> u64 {
    payload + 8 + 20 + 38
}

#[test]
fn a_policer_passes_exactly_the_packets_covered_by_tokens() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["nodes"]["R1"]["configuration"] = policy_out("FastEthernet0/1", 10_000, policer(1_000_000, 31_250));
    scenario["flows"] = json!([flood("flood", 2_000_000, 1470, 10)]);
    let report = run(&scenario);
    // The bucket counts the frame without its FCS; datagrams arrive every 5.88 ms, and the first one finds a full
    // bucket.
    let frame = 1470 + 8 + 20 + 14;
    let (mut tokens, mut passed, mut last) = (31_250u128 * 8 * 1_000_000_000, 0u64, 0u64);
    for number in 0..1701u64 {
        let now = number * 5_880_000;
        tokens = (tokens + u128::from(now - last) * 1_000_000).min(31_250 * 8 * 1_000_000_000);
        last = now;
        let price = frame * 8 * 1_000_000_000;
        if tokens >= price {
            tokens -= price;
            passed += 1;
        }
    }
    let stream = &report.flows["flood"].streams[0];
    assert_eq!(stream.datagrams, Some(1701));
    assert_eq!(stream.bytes, passed * 1470);
    assert_eq!(stream.lost, Some(1701 - passed));
    assert_eq!(report.packets.dropped["police"], 1701 - passed);
    assert_eq!(stream.jitter_ms, Some(0.0));
    assert_eq!(stream.seconds, 10.0);
    let counters = &report.routers["R1"].samples.last().unwrap().interfaces["FastEthernet0/1"];
    let classes = &counters.policy_output.as_ref().unwrap().classes;
    assert_eq!(classes[0].police.as_ref().unwrap().conformed.packets, passed);
}

/// The report has the packets that wait at its time, not at the whole second before: a burst of two hundred comes at
/// 1.5 s.
#[test]
fn counters_are_read_at_requested_times() {
    let mut scenario = dumbbell(3_000_000, 0);
    scenario["flows"] = json!([{"name": "burst", "protocol": "udp", "source": "client", "destination": "server",
        "port": 9, "start_ns": 3 * SECOND / 2, "duration_ns": 200, "gap_ns": 1, "payload_bytes": 1470}]);
    let report = run(&scenario);
    scenario["sample_at_ns"] = json!([1_540_000_000u64, 1_000_000_000, 1_580_000_000, 1_540_000_000]);
    let looked = run(&scenario);
    assert_eq!(serde_json::to_string(&looked.flows).unwrap(), serde_json::to_string(&report.flows).unwrap());
    let waiting = |report: &Report| -> Vec<(u64, u64)> {
        let samples = &report.routers["R1"].samples;
        let of = |each: &Counters| each.interfaces["FastEthernet0/1"].queue.depth;
        samples.iter().map(|each| ((each.time_ns - samples[0].time_ns) / MILLI, of(each))).collect()
    };
    let (seconds, moments) = (waiting(&report), waiting(&looked));
    assert_eq!(seconds.iter().map(|each| each.0 % 1000).filter(|&rest| rest != 0).count(), 1, "{seconds:?}");
    let extra: Vec<_> = moments.iter().filter(|each| !seconds.contains(each)).copied().collect();
    assert_eq!(extra.iter().map(|each| each.0).collect::<Vec<_>>(), [1540, 1580], "{moments:?}");
    // A frame takes 4.1 ms on the line: nine or ten left in 40 ms.
    assert!((9..=10).contains(&(extra[0].1 - extra[1].1)), "{moments:?}");
}

#[test]
fn a_datagram_takes_its_line_times_and_its_delay_to_the_nanosecond() {
    for (payload, delay) in [(1472, 0), (1472, 25 * MILLI), (18, 7), (1, 0)] {
        let mut scenario = dumbbell(3_000_000, delay);
        scenario["flows"] = json!([{"name": "one", "protocol": "udp", "source": "client", "destination": "server",
            "port": 9, "duration_ns": 1, "gap_ns": SECOND, "payload_bytes": payload}]);
        let report = run(&scenario);
        // Short frames are padded to 64 bytes with the FCS, 84 with preamble and gap.
        let line = line_scenario(payload).max(84) * 8;
        assert_eq!(report.virtual_ns, line * 10 + delay + line * 1000 / 3, "{payload} bytes");
    }
}

#[test]
fn a_saturated_line_carries_exactly_its_rate_framing_included() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["flows"] = json!([flood("flood", 20_000_000, 1000, 4)]);
    let report = run(&scenario);
    // Work conservation: from the first frame to the last one the line never pauses.
    let frames = report.packets.delivered;
    let line = line_scenario(1000) * 8;
    assert_eq!(report.virtual_ns, line * 10 + frames * line * 100);
    assert_eq!(report.packets.dropped.keys().collect::<Vec<_>>(), ["tail"]);
}

#[test]
fn a_serial_line_has_seven_bytes_of_framing() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["nodes"]["R2"] = json!({"kind": "router", "routes": [{"prefix": "10.0.1.0/24", "via": "10.0.3.1"}]});
    scenario["nodes"]["R1"]["routes"] = json!([{"prefix": "10.0.2.0/24", "via": "10.0.3.2"}]);
    scenario["links"][1]["ends"][0]["node"] = json!("R2");
    scenario["links"].as_array_mut().unwrap().push(json!({"name": "serial", "rate_bps": 512_000, "framing": "ppp",
        "delay_ns": 3 * MILLI, "ends": [
            {"node": "R1", "interface": "Serial0/0", "address": "10.0.3.1/30"},
            {"node": "R2", "interface": "Serial0/0", "address": "10.0.3.2/30"}]}));
    scenario["flows"] = json!([{"name": "one", "protocol": "udp", "source": "client", "destination": "server",
        "port": 9, "duration_ns": 1, "gap_ns": SECOND, "payload_bytes": 100}]);
    let serial = (100 + 28 + 7) * 8 * 1_000_000_000 / 512_000;
    let ethernet = line_scenario(100) * 8;
    // The serial line's rate and delay apply once, although there is an engine at each end.
    assert_eq!(run(&scenario).virtual_ns, ethernet * 10 + serial + 3 * MILLI + ethernet * 100);
}

#[test]
fn two_hosts_on_one_link_need_no_router() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["nodes"] = json!({"client": {"kind": "host"}, "server": {"kind": "host"}});
    scenario["links"] = json!([{"name": "cable", "rate_bps": 10_000_000, "framing": "ethernet", "delay_ns": 5, "ends": [
        {"node": "client", "interface": "eth0", "address": "10.0.1.10/24"},
        {"node": "server", "interface": "eth0", "address": "10.0.1.11/24"}]}]);
    scenario["flows"] = json!([flood("flood", 20_000_000, 1000, 2)]);
    let report = run(&scenario);
    let line = line_scenario(1000) * 8 * 100;
    assert_eq!(report.virtual_ns, report.packets.delivered * line + 5);
    // The host's own queue overflows.
    assert_eq!(report.packets.dropped.keys().collect::<Vec<_>>(), ["host_queue"]);
    assert_eq!(report.hosts["client"].queue_drops, report.packets.dropped["host_queue"]);
}

#[test]
fn random_loss_has_its_probability_and_its_seed() {
    let lost = |seed: u64| {
        let mut scenario = dumbbell(100_000_000, MILLI);
        scenario["seed"] = json!(seed);
        scenario["links"][1]["loss"] = json!({"model": "random", "probability": 0.01});
        scenario["flows"] = json!([flood("flood", 10_000_000, 100, 8)]);
        let report = run(&scenario);
        assert_eq!(report.packets.offered, 100_000);
        assert_eq!(report.flows["flood"].streams[0].lost, Some(report.packets.lost));
        report.packets.lost
    };
    let (first, second) = (lost(1), lost(2));
    // Five standard deviations of a binomial distribution: 5 · √(100000 · 0.01 · 0.99).
    assert!(first.abs_diff(1000) < 158 && second.abs_diff(1000) < 158, "{first}, {second}");
    assert_ne!(first, second);
    assert_eq!(first, lost(1));
}

#[test]
fn streams_that_take_turns_are_evenly_spaced() {
    let mut scenario = dumbbell(100_000_000, 0);
    scenario["flows"] = json!([{"name": "flood", "protocol": "udp", "source": "client", "destination": "server",
        "port": 7,
        "client_port": 50_000, "streams": 4, "take_turns": true, "duration_ns": SECOND, "rate_bps": 1_000_000,
        "rate_layer": "ip", "payload_bytes": 222, "interval_ns": 500 * MILLI}]);
    let report = run(&scenario);
    let flow = &report.flows["flood"];
    assert_eq!(
        flow.streams.iter().map(|stream| stream.local_port).collect::<Vec<_>>(),
        [50_000, 50_001, 50_002, 50_003]
    );
    for stream in &flow.streams {
        // 250 bytes of IP at 1 Mb/s: every 2 ms.
        assert_eq!((stream.datagrams, stream.lost, stream.jitter_ms), (Some(500), Some(0), Some(0.0)));
        let intervals: Vec<_> = flow.intervals.iter().filter(|each| each.stream == stream.stream).collect();
        assert_eq!(intervals.iter().map(|each| each.bytes).collect::<Vec<_>>(), [250 * 222, 250 * 222]);
        assert_eq!((intervals[1].start_s, intervals[1].end_s), (0.5, 1.0));
    }
}

#[test]
fn random_lengths_and_ports_are_those_of_a_flood() {
    let mut scenario = dumbbell(100_000_000, 0);
    scenario["flows"] = json!([{"name": "flood", "protocol": "udp", "source": "client", "destination": "server",
        "port": null, "duration_ns": 10 * SECOND, "gap_ns": MILLI}]);
    let report = run(&scenario);
    let stream = &report.flows["flood"].streams[0];
    assert_eq!((stream.datagrams, stream.lost), (Some(10_000), Some(0)));
    let mean = stream.bytes as f64 / 10_000.0;
    // Evenly from 64 to 1023: mean 543.5, and its error 277/√10000.
    assert!((mean - 543.5).abs() < 14.0, "{mean}");
}
