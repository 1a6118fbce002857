//! Sources that send in bursts, the times at which streams start, and one-way delays, by arithmetic.

use crate::scene::{dumbbell, refusal, run, MILLI, SECOND};
use serde_json::{json, Value};

/// Nanoseconds that a frame with so much UDP payload takes on a line of 10 Mb/s.
fn line_ns(payload: u64) -> u64 {
    (payload + 8 + 20 + 38).max(84) * 8 * 100
}

fn udp(more: Value) -> Value {
    let mut flow = json!({"name": "flow", "protocol": "udp", "source": "client", "destination": "server", "port": 9,
        "duration_ns": 10 * SECOND, "gap_ns": SECOND, "payload_bytes": 1200});
    flow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    flow
}

#[test]
fn frames_are_cut_into_datagrams_sent_at_once() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["flows"] = json!([udp(json!({"frames": [3000, 100], "duration_ns": 4 * SECOND}))]);
    let report = run(&scenario);
    let stream = &report.flows["flow"].streams[0];
    // Twice 1200, 1200, 600 and 100 bytes.
    assert_eq!((stream.datagrams, stream.bytes, stream.lost), (Some(8), 2 * 3100, Some(0)));
    let delay = report.flows["flow"].delay.as_ref().unwrap();
    assert_eq!(delay.packets, 8);
    // The last part of a frame waits for the first two, the host's line is ten times as fast.
    assert_eq!(delay.max_ns, line_ns(1200) / 10 + 2 * line_ns(1200) + line_ns(600));
    assert_eq!(delay.histogram.iter().map(|(_, packets)| packets).sum::<u64>(), 8);
}

#[test]
fn spread_streams_do_not_wait_for_each_other() {
    let mut scenario = dumbbell(10_000_000, 7 * MILLI);
    let mut most = |spread: u64| {
        scenario["flows"] = json!([udp(json!({"streams": 10, "spread_ns": spread}))]);
        let report = run(&scenario);
        let sent: u64 = report.flows["flow"].streams.iter().filter_map(|each| each.datagrams).sum();
        (report.flows["flow"].delay.as_ref().unwrap().max_ns, sent)
    };
    let alone = line_ns(1200) / 10 + 7 * MILLI + line_ns(1200);
    assert_eq!(most(0), (alone + 9 * line_ns(1200), 100));
    let (longest, sent) = most(SECOND);
    assert!((alone..alone + 3 * line_ns(1200)).contains(&longest), "{longest}");
    // Each stream ends with the flow: a stream that starts late sends at most one datagram less.
    assert!((90..=100).contains(&sent), "{sent}");
}

#[test]
fn streams_start_when_flood_starts_them() {
    let mut scenario = dumbbell(100_000_000, 0);
    for (name, protocol) in [("datagrams", "udp"), ("pages", "tcp")] {
        scenario["flows"] =
            json!([udp(json!({"name": name, "protocol": protocol, "payload_bytes": 100, "streams": 20,
            "spread_ns": 4 * SECOND, "gap_ns": 10 * MILLI, "seed": 77}))]);
        let report = run(&scenario);
        let starts = flood::starts::starts(77, 20, 4 * SECOND);
        for (stream, start) in report.flows[name].streams.iter().zip(starts) {
            // A hundred per second from the start of the stream to the end of the flow; TCP connects first.
            let (sent, expected) = (stream.bytes / 100, (10 * SECOND - start) / (10 * MILLI));
            assert!(sent.abs_diff(expected) <= 5, "{name} {}: {sent}, expected {expected}", stream.stream);
        }
    }
}

#[test]
fn a_write_over_tcp_takes_its_time_on_the_line_at_least() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["flows"] = json!([{"name": "pages", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 80, "duration_ns": 5 * SECOND, "rate_bps": 800_000, "payload_bytes": 100_000}]);
    let report = run(&scenario);
    scenario["flows"][0]["rate_bps"] = Value::Null;
    scenario["flows"][0]["gap_ns"] = json!(SECOND);
    assert_eq!(run(&scenario).flows, report.flows);
    let writes = report.flows["pages"].writes.as_ref().unwrap();
    assert_eq!(writes.packets, 5);
    let of_stream = report.flows["pages"].streams[0].writes.as_ref().unwrap();
    assert_eq!((of_stream.packets, of_stream.max_ns), (5, writes.max_ns));
    let least = 100_000 / 1448 * 1538 * 8 * 100;
    assert!(writes.p50_ns > least && writes.max_ns < 2 * least, "{writes:?}, expected above {least}");
    assert!(report.flows["pages"].delay.as_ref().unwrap().packets >= 5 * 70);
}

#[test]
fn writes_that_do_not_arrive_in_full_are_counted_apart() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["flows"] = json!([{"name": "pages", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 80, "duration_ns": 5 * SECOND, "gap_ns": SECOND, "payload_bytes": 1_400_000}]);
    let report = run(&scenario);
    let finished = report.flows["pages"].writes.as_ref().unwrap().packets;
    assert_eq!((finished, report.flows["pages"].unfinished_writes), (4, 1));
    let stream = &report.flows["pages"].streams[0];
    let counted: u64 = stream.writes.as_ref().unwrap().histogram.iter().map(|(_, count)| count).sum();
    assert_eq!((counted, stream.unfinished_writes), (4, 1));
}

#[test]
fn inconsistent_burst_source_is_refused() {
    for (more, expected) in [
        (json!({"frames": [9], "gap_ns": null, "rate_bps": 1000}), "flows[0].frames: found frames without gap_ns"),
        (json!({"frames": [0]}), "flows[0].frames: expected at most 10000 frames of 1 to 10000000 bytes"),
        (json!({"frames": [9], "take_turns": true}), "flows[0].take_turns: found true on a flow with frames"),
        (json!({"spread_ns": 10 * SECOND}), "flows[0].spread_ns: found 10000000000, expected less than duration_ns"),
        (json!({"spread_ns": 1, "take_turns": true}), "flows[0].spread_ns: found both spread_ns and take_turns"),
        (json!({"protocol": "tcp", "gap_ns": null, "frames": [9]}), "flows[0].frames: found this key on a TCP flow"),
    ] {
        let mut scenario = dumbbell(10_000_000, 0);
        scenario["flows"] = json!([udp(more)]);
        let message = refusal(&scenario);
        assert!(message.starts_with(expected), "{message}\nis not\n{expected}");
    }
}
