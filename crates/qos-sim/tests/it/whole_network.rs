//! The whole network: nothing is lost count of, nothing depends on anything but the scenario, and time can begin
//! anywhere.

use crate::scene::{balanced, dumbbell, policer, policy_out, read, run, MILLI, SECOND};
use proptest::prelude::*;
use qos_sim::{Report, Simulation};
use serde_json::{json, Value};

/// Two TCP streams and a flood through a policer over a lossy link with jitter.
fn mixed_scenario(seed: u64) -> Value {
    let mut scenario = dumbbell(10_000_000, 10 * MILLI);
    scenario["seed"] = json!(seed);
    scenario["host_jitter_ns"] = Value::Null;
    scenario["start_jitter_ns"] = json!(10 * MILLI);
    scenario["links"][1]["loss"] = json!({"model": "random", "probability": 0.002});
    scenario["links"][1]["jitter"] = json!({"distribution": "uniform", "ns": MILLI});
    scenario["nodes"]["R1"]["configuration"] = policy_out("FastEthernet0/1", 10_000, policer(4_000_000, 60_000));
    scenario["flows"] = json!([
        {"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server", "port": 5201, "streams": 2,
            "duration_ns": 5 * SECOND},
        {"name": "back", "protocol": "tcp", "source": "server", "destination": "client", "port": 5201,
            "duration_ns": 2 * SECOND, "start_ns": SECOND, "congestion_control": "reno", "window_bytes": 16384},
        {"name": "noise", "protocol": "udp", "source": "client", "destination": "server", "port": null,
            "duration_ns": null,
            "gap_ns": 7 * MILLI, "dscp": 46}]);
    scenario["captures"] = json!([
        {"name": "server", "node": "server", "interface": "eth0", "file": "server"},
        {"name": "in", "node": "R1", "interface": "FastEthernet0/0", "file": "in", "filter": "tcp"}]);
    scenario
}

fn recorded_run(scenario: &Value) -> (Report, Vec<Vec<u8>>) {
    let simulation = Simulation::new(&read(scenario)).unwrap();
    let mut files = vec![Vec::new(); simulation.captures().count()];
    let report = simulation.run(files.iter_mut().collect()).unwrap();
    balanced(&report);
    (report, files)
}

#[test]
fn result_depends_only_on_the_seed() {
    let (report, files) = recorded_run(&mixed_scenario(1));
    assert_eq!((&report, &files), (&recorded_run(&mixed_scenario(1)).0, &recorded_run(&mixed_scenario(1)).1));
    assert!(files.iter().all(|file| file.len() > 10_000));
    let (other, _) = recorded_run(&mixed_scenario(2));
    assert_ne!(report.packets, other.packets);
    let flow = &report.flows["transfer"];
    assert!(
        flow.streams.iter().all(|stream| stream.connected && stream.complete && stream.bytes > 100_000),
        "{flow:?}"
    );
    let in_intervals: u64 = flow.intervals.iter().map(|interval| interval.bytes).sum();
    assert_eq!(in_intervals, flow.streams.iter().map(|stream| stream.bytes).sum::<u64>());
    assert!(report.hosts["client"].tcp.retransmitted_segments > 0);
    assert!(report.flows["noise"].streams[0].complete);
}

#[test]
fn epoch_changes_only_time_stamps() {
    let at = |epoch: u64| {
        let mut scenario = mixed_scenario(3);
        scenario["epoch_ns"] = json!(epoch);
        let mut report = recorded_run(&scenario).0;
        for sample in report.routers.get_mut("R1").unwrap().samples.iter_mut() {
            assert_eq!(sample.time_ns, epoch + sample.uptime_ns);
            sample.time_ns = 0;
        }
        report
    };
    let (zero, now) = (at(0), at(1_700_000_000_123_456_789));
    assert_eq!(zero, now);
}

#[test]
fn added_flow_does_not_change_losses_of_others() {
    // The same frames of the link are lost, regardless of their content.
    let mut alone = dumbbell(100_000_000, MILLI);
    alone["links"][1]["loss"] = json!({"model": "random", "probability": 0.1});
    alone["flows"] = json!([{"name": "a", "protocol": "udp", "source": "client", "destination": "server", "port": 1,
        "duration_ns": SECOND, "gap_ns": MILLI, "payload_bytes": 100}]);
    let mut longer = alone.clone();
    longer["flows"].as_array_mut().unwrap().push(json!({"name": "b", "protocol": "udp", "source": "client",
        "destination": "server", "port": 2, "start_ns": 2 * SECOND, "duration_ns": SECOND, "gap_ns": MILLI,
        "payload_bytes": 9}));
    let lost = |report: &Report| report.flows["a"].streams[0].lost;
    assert_eq!(lost(&run(&alone)), lost(&run(&longer)));
}

#[test]
fn stream_that_cannot_connect_is_abandoned() {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["links"][1]["loss"] = json!({"model": "random", "probability": 1.0});
    scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 5201, "duration_ns": 2 * SECOND, "cut_off_ns": 700 * MILLI}]);
    let report = run(&scenario);
    let stream = &report.flows["transfer"].streams[0];
    assert_eq!((stream.connected, stream.complete, stream.bytes, stream.seconds), (false, true, 0, 2.0));
    assert_eq!(report.virtual_ns, 2_700 * MILLI);
    // SYNs at 0 and 1 s.
    assert_eq!(report.packets.lost, 2);
    scenario["flows"][0].as_object_mut().unwrap().remove("cut_off_ns");
    scenario["drain_ns"] = json!(SECOND);
    let report = run(&scenario);
    assert!(!report.flows["transfer"].streams[0].complete);
    assert_eq!(report.virtual_ns, 3 * SECOND);
}

#[test]
fn paced_transfer_gets_its_rate_and_unlimited_transfer_the_line() {
    let goodput = |rate: Value| {
        let mut scenario = dumbbell(10_000_000, 5 * MILLI);
        scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
            "port": 5201, "duration_ns": 20 * SECOND, "rate_bps": rate, "payload_bytes": 8192}]);
        let report = run(&scenario);
        let flow = &report.flows["transfer"];
        let steady: u64 = flow.intervals[5..].iter().map(|interval| interval.bytes).sum();
        assert!((flow.streams[0].rtt_mean_ms.unwrap()) > 10.0);
        steady as f64 * 8.0 / 15.0
    };
    assert!((goodput(json!(2_000_000)) - 2e6).abs() < 1e4, "{}", goodput(json!(2_000_000)));
    // 1448 of 1538 bytes are payload; acknowledgements go the other way.
    let line = 1e7 * 1448.0 / 1538.0;
    let all = goodput(Value::Null);
    // Data that arrived after a gap counts when the gap is filled: more can be delivered in a time than arrives in it.
    assert!(all <= line * 1.002 && all > line * 0.95, "{all} of {line}");
}

/// Rate, delay, loss, and whether it is PPP between routers.
type Link = (u64, u64, Option<f64>, bool);
/// TCP on the return path, or the streams, rate and payload of UDP.
type Flow = (bool, bool, u32, u64, u32);

/// The name of a node of a chain.
fn node(routers: usize, number: usize) -> String {
    match number {
        0 => "client".to_owned(),
        n if n > routers => "server".to_owned(),
        n => format!("R{n}"),
    }
}

fn link_of(routers: usize, number: usize, (rate, delay, loss, ppp): &Link) -> Value {
    let between_routers = number > 0 && number < routers;
    json!({"name": format!("l{number}"), "rate_bps": rate, "delay_ns": delay,
        "framing": if *ppp && between_routers { "ppp" } else { "ethernet" },
        "loss": loss.map(|probability| json!({"model": "random", "probability": probability})),
        "ends": [
            {"node": node(routers, number), "interface": "right", "address": format!("10.0.{number}.1/24")},
            {"node": node(routers, number + 1), "interface": "left", "address": format!("10.0.{number}.2/24")}]})
}

fn flow_of(number: usize, (tcp, back, streams, rate, payload): &Flow) -> Value {
    let (source, destination) = if *back { ("server", "client") } else { ("client", "server") };
    let mut flow = json!({"name": format!("f{number}"), "source": source, "destination": destination,
        "port": 5000 + number, "streams": streams, "duration_ns": SECOND});
    if *tcp {
        flow["protocol"] = json!("tcp");
    } else {
        flow["protocol"] = json!("udp");
        flow["rate_bps"] = json!(rate);
        flow["payload_bytes"] = json!(payload);
    }
    flow
}

/// Two hosts and the routers between them, some with a policer of a rate and a burst.
fn nodes(routers: usize, policers: Vec<Option<(u64, u64)>>) -> Value {
    let mut nodes = json!({
        "client": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "interface": "right"}]},
        "server": {"kind": "host", "routes": [{"prefix": "0.0.0.0/0", "interface": "left"}]}});
    for (router, bounds) in (1..=routers).zip(policers) {
        let mut made = json!({"kind": "router", "routes": [
            {"prefix": "10.0.0.0/24", "interface": "left"},
            {"prefix": format!("10.0.{routers}.0/24"), "interface": "right"}]});
        if let Some((cir, bc)) = bounds {
            made["configuration"] = policy_out("right", 10_000, policer(cir, bc));
        }
        nodes[node(routers, router)] = made;
    }
    nodes
}

/// A chain of one to three routers between two hosts, with arbitrary links.
fn router_chain() -> impl Strategy<Value = Value> {
    let link = (
        prop::sample::select(vec![256_000u64, 2_000_000, 10_000_000, 100_000_000]),
        0u64..50 * MILLI,
        prop::option::of(0.0f64..0.3),
        any::<bool>(),
    );
    let policers = prop::collection::vec(prop::option::of((64_000u64..3_000_000, 3_000u64..60_000)), 3);
    let flows = prop::collection::vec((any::<bool>(), any::<bool>(), 1u32..4, 50_000u64..5_000_000, 1u32..1400), 1..4);
    let parts = (1usize..=3, prop::collection::vec(link, 4), policers, flows, any::<u64>());
    parts.prop_map(|(routers, links, policers, flows, seed)| {
        let links: Vec<_> = links[..=routers].iter().enumerate().map(|(n, link)| link_of(routers, n, link)).collect();
        let flows: Vec<_> = flows.iter().enumerate().map(|(n, flow)| flow_of(n, flow)).collect();
        let nodes = nodes(routers, policers);
        json!({"format": 1, "seed": seed, "drain_ns": 2 * SECOND, "nodes": nodes, "links": links, "flows": flows})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_of_any_network_is_accounted_for(scenario in router_chain()) {
        // `run` checks that all offered packets were delivered, dropped, lost or are still in transit.
        let report = run(&scenario);
        let last = report.routers.values().flat_map(|router| router.samples.last());
        let policed: u64 = last
            .flat_map(|sample| sample.interfaces.values())
            .filter_map(|interface| interface.policy_output.as_ref())
            .map(|policy| policy.classes.iter().map(|class| class.drops.police.packets).sum::<u64>())
            .sum();
        prop_assert_eq!(report.packets.dropped.get("police").copied().unwrap_or(0), policed);
        let lost: u64 = report.flows.values().flat_map(|flow| &flow.streams).filter_map(|stream| stream.lost).sum();
        let dropped: u64 = report.packets.dropped.values().sum();
        prop_assert!(lost <= dropped + report.packets.lost + report.packets.queued);
        for flow in report.flows.values() {
            for stream in &flow.streams {
                prop_assert!(stream.bytes <= stream.sender_bytes);
                if let (Some(sent), Some(lost)) = (stream.datagrams, stream.lost) {
                    prop_assert!(lost <= sent);
                }
            }
        }
    }
}
