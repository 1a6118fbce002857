//! Scenarios that cannot be simulated are refused, with the place and the remedy.

use crate::scene::{balanced, dumbbell, flood, policer, policy_out, refusal, MILLI, SECOND};
use proptest::prelude::*;
use qos_sim::{Scenario, Simulation};
use serde_json::{json, Value};

/// A scenario that can run.
fn valid_scenario() -> Value {
    let mut scenario = dumbbell(10_000_000, 0);
    scenario["flows"] = json!([flood("flood", 1_000_000, 100, 1)]);
    scenario
}

/// The refusal of a sound scenario with some values replaced.
fn with(changes: &[(&str, Value)]) -> String {
    let mut scenario = valid_scenario();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = scenario.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(list) => match key {
                "-" => list.push(value.clone()),
                index => list[index.parse::<usize>().unwrap()] = value.clone(),
            },
            parent => parent[key] = value.clone(),
        }
    }
    refusal(&scenario)
}

fn check(cases: &[(String, &str)]) {
    for (message, expected) in cases {
        assert!(message.starts_with(expected), "{message}\nis not\n{expected}");
    }
}

#[test]
fn errors_of_the_scenario_are_reported() {
    check(&[
        (with(&[("/format", json!(2))]), "format: found 2, expected 1"),
        (with(&[("/speed", json!(2))]), "speed: unknown field `speed`"),
        (with(&[("/sample_ns", json!(1))]), "sample_ns: found 1, expected at most 1000000 samples"),
        (
            with(&[("/sample_at_ns", json!([0, u64::MAX]))]),
            "sample_at_ns[1]: found more than 1000000000000000 ns, the longest time",
        ),
        (
            with(&[("/sample_at_ns", json!(vec![1; 1_000_001]))]),
            "sample_at_ns: found 1000001 instants, expected at most 1000000",
        ),
        (with(&[("/drain_ns", json!(u64::MAX))]), "drain_ns: found more than 1000000000000000 ns"),
    ]);
}

#[test]
fn errors_of_a_link_are_reported() {
    let lan = "/links/0/ends/0";
    check(&[
        (
            with(&[(&format!("{lan}/node"), json!("nobody"))]),
            "links[0].ends[0].node: found \"nobody\", not a node: there are R1, client, server",
        ),
        (
            with(&[(&format!("{lan}/address"), json!("10.0.1.1/24"))]),
            "links[0].ends[1].address: found 10.0.1.1/24, already used by links[0].ends[0]",
        ),
        (
            with(&[(&format!("{lan}/address"), json!("10.0.9.1/24"))]),
            "links[0].ends: found 10.0.9.1/24 and 10.0.1.1/24, not in the same network",
        ),
        (with(&[(&format!("{lan}/address"), json!("10.0.1.300/24"))]), "links[0].ends[0].address: "),
        (
            with(&[("/links/1/ends/0/interface", json!("FastEthernet0/0"))]),
            "links[1].ends[0].interface: found \"FastEthernet0/0\", already used by another link of R1",
        ),
        (with(&[("/links/0/framing", json!("ppp"))]), "links[0].ends[0].node: found a host on a serial link"),
        (with(&[("/links/0/rate_bps", json!(0))]), "links[0].rate_bps: 0 b/s: set the rate"),
        (
            with(&[("/links/1/loss", json!({"model": "random", "probability": 2}))]),
            "links[1].loss.probability: 2: expected a probability from 0 to 1",
        ),
        (with(&[("/links/1/name", json!("lan"))]), "links[1].name: found \"lan\", already used by links[0]"),
    ]);
}

#[test]
fn errors_of_a_node_are_reported() {
    check(&[
        (with(&[("/nodes/R9", json!({"kind": "router"}))]), "nodes.R9: no link ends at this node"),
        (
            with(&[("/nodes/client/configuration", json!({"format": 1, "router": "c", "generation": "hqf"}))]),
            "nodes.client.configuration: found this key on a host",
        ),
        (with(&[("/nodes/R1/tcp", json!({}))]), "nodes.R1.tcp: found this key on a router"),
        (
            with(&[("/nodes/R1/configuration", policy_out("FastEthernet0/7", 10, policer(1_000_000, 3000)))]),
            "nodes.R1.configuration.interfaces.FastEthernet0/7: the router has no such port",
        ),
        (
            with(&[("/nodes/R1/configuration", policy_out("FastEthernet0/1", 10, policer(1_000_000, 1)))]),
            "nodes.R1.configuration.policy_maps.P.classes[0].police.bc: ",
        ),
        (
            with(&[(
                "/nodes/R1/configuration",
                json!({"format": 1, "router": "R1", "generation": "hqf", "policy_map": {}}),
            )]),
            "nodes.R1.configuration.policy_map: unknown field",
        ),
    ]);
}

#[test]
fn errors_of_a_route_are_reported() {
    check(&[
        (with(&[("/nodes/client/routes", json!([]))]), "flows[0]: no route to 10.0.2.10 at client: client"),
        (
            with(&[("/nodes/client/routes/0/via", json!("10.0.1.7"))]),
            "nodes.client.routes[0].via: found 10.0.1.7, expected the address of the other end of a link of client",
        ),
        (
            with(&[("/nodes/client/routes/0", json!({"prefix": "0.0.0.0/0"}))]),
            "nodes.client.routes[0]: found neither a next hop nor an interface",
        ),
        (
            with(&[("/nodes/client/routes/0", json!({"prefix": "0.0.0.0/0", "interface": "eth7"}))]),
            "nodes.client.routes[0].interface: found \"eth7\", not an interface with a link on client",
        ),
        (
            with(&[("/flows/0/destination_address", json!("10.0.2.11"))]),
            "flows[0].destination_address: found 10.0.2.11, expected an address of server: 10.0.2.10",
        ),
    ]);
}

#[test]
fn errors_of_a_flow_are_reported() {
    check(&[
        (with(&[("/flows", json!([]))]), "flows: found no flow, expected at least one"),
        (with(&[("/flows/0/duration_ns", Value::Null)]), "flows: found no flow with a duration"),
        (with(&[("/flows/-", flood("flood", 1000, 100, 1))]), "flows[1].name: found \"flood\" a second time"),
        (
            with(&[("/flows/-", flood("other", 1000, 100, 1))]),
            "flows[1].port: found 5002, already used by server for flow \"flood\"",
        ),
        (with(&[("/flows/0/source", json!("R1"))]), "flows[0].source: found the router \"R1\", expected a host"),
        (with(&[("/flows/0/destination", json!("client"))]), "flows[0].destination: found \"client\", also the source"),
        (with(&[("/flows/0/rate_bps", Value::Null)]), "flows[0].rate_bps: a UDP flow needs either rate_bps or gap_ns"),
        (with(&[("/flows/0/rate_bps", json!(0))]), "flows[0].rate_bps: found a pace"),
        (
            with(&[("/flows/0/payload_bytes", json!(1473))]),
            "flows[0].payload_bytes: found 1473, expected 1 to 1472 bytes: fragments are not simulated",
        ),
        (
            with(&[("/flows/0/payload_bytes", Value::Null)]),
            "flows[0].rate_bps: found a rate with random payload lengths, expected gap_ns",
        ),
        (with(&[("/flows/0/window_bytes", json!(16384))]), "flows[0].window_bytes: found this key on a UDP flow"),
        (with(&[("/flows/0/streams", json!(0))]), "flows[0].streams: found 0, expected 1 to 10000"),
        (with(&[("/flows/0/dscp", json!(64))]), "flows[0].dscp: found 64, expected 0 to 63"),
        (
            with(&[("/flows/0/client_port", json!(65_535)), ("/flows/0/streams", json!(2))]),
            "flows[0].client_port: found 65535 as the first of 2 ports",
        ),
    ]);
}

#[test]
fn errors_of_a_tcp_flow_are_reported() {
    let tcp = json!({"name": "t", "protocol": "tcp", "source": "client", "destination": "server", "port": 5201,
        "duration_ns": SECOND});
    let changed = |key: &str, value: Value| {
        let mut flow = tcp.clone();
        flow[key] = value;
        with(&[("/flows/0", flow)])
    };
    check(&[
        (changed("gap_ns", json!(0)), "flows[0].gap_ns: found 0, expected 1 ns to an hour"),
        (changed("port", Value::Null), "flows[0].port: found none, expected the port of the receiver"),
        (changed("window_bytes", json!(100)), "flows[0].window_bytes: found 100, expected a full segment (1448)"),
        (changed("congestion_control", json!("bbr")), "flows[0].congestion_control: unknown variant `bbr`"),
    ]);
}

#[test]
fn errors_of_a_capture_are_reported() {
    check(&[
        (
            with(&[("/captures", json!([{"name": "c", "node": "server", "interface": "eth1", "file": "c"}]))]),
            "captures[0].interface: found \"eth1\", not an interface with a link on server",
        ),
        (
            with(&[(
                "/captures",
                json!([{"name": "c", "node": "server", "interface": "eth0", "file": "c", "filter": "tcp port 80"}]),
            )]),
            "captures[0].filter: found \"tcp port 80\", expected no filter, ip, ip6, tcp, udp, icmp or icmp6",
        ),
        (
            with(&[(
                "/captures",
                json!([{"name": "c", "node": "server", "interface": "eth0", "file": "c", "snaplen": 0}]),
            )]),
            "captures[0].snaplen: found 0",
        ),
    ]);
}

#[test]
fn a_loop_is_found_before_the_run() {
    let mut scenario = valid_scenario();
    scenario["nodes"]["R2"] = json!({"kind": "router", "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.3.1"}]});
    scenario["nodes"]["R1"]["routes"] = json!([{"prefix": "10.0.2.0/25", "via": "10.0.3.2"}]);
    scenario["links"].as_array_mut().unwrap().push(
        json!({"name": "between", "rate_bps": 1_000_000, "framing": "ethernet", "ends": [
        {"node": "R1", "interface": "FastEthernet1/0", "address": "10.0.3.1/30"},
        {"node": "R2", "interface": "FastEthernet1/0", "address": "10.0.3.2/30"}]}),
    );
    assert_eq!(refusal(&scenario), "flows[0]: a loop on the way to 10.0.2.10: client → R1 → R2 → R1");
}

#[test]
fn a_profile_that_no_model_has_is_refused_with_its_key() {
    let mut scenario = valid_scenario();
    scenario["flows"] = json!([{"name": "t", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 5201, "duration_ns": SECOND}]);
    for (key, value, expected) in [
        ("congestion_control", json!("vegas"), "nodes.client.tcp.congestion_control: unknown variant `vegas`"),
        ("early_retrans", json!(1), "nodes.client.tcp.early_retrans: found 1, expected 0, 3 or 4"),
        ("initcwnd", json!(0), "nodes.client.tcp.initcwnd: found 0, expected 1 to 255 segments"),
        ("ecn", json!(1), "nodes.client.tcp.ecn: invalid type: integer `1`, expected a boolean"),
        ("pacing", json!(1), "nodes.client.tcp.pacing: unknown field `pacing`"),
    ] {
        let mut wrong = scenario.clone();
        wrong["nodes"]["client"]["tcp"] = json!({ key: value });
        let message = refusal(&wrong);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn invalid_scenario_text_is_refused() {
    let read = |text: &str| qos_sim::Scenario::from_json(text).unwrap_err().to_string();
    assert!(read("").contains("EOF"), "{}", read(""));
    assert!(read("{} {}").contains("missing field"), "{}", read("{} {}"));
    let sound = valid_scenario().to_string();
    assert!(read(&format!("{sound} x")).contains("trailing characters"));
}

/// The places of all values in a document.
fn places(value: &Value, here: &str, into: &mut Vec<String>) {
    into.push(here.to_owned());
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(key, each)| places(each, &format!("{here}/{key}"), into))
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, each)| places(each, &format!("{here}/{}", key.replace('/', "~1")), into));
        }
        _ => {}
    }
}

/// Everything that a scenario can have, in brief.
fn full_scenario() -> Value {
    let mut scenario = dumbbell(10_000_000, MILLI);
    scenario["drain_ns"] = json!(MILLI);
    scenario["epoch_ns"] = json!(0);
    scenario["sample_ns"] = json!(SECOND);
    scenario["sample_at_ns"] = json!([MILLI]);
    scenario["nodes"]["client"]["tcp"] = serde_json::to_value(qos_sim::tcp::Profile::default()).unwrap();
    scenario["nodes"]["R1"]["configuration"] = policy_out("FastEthernet0/1", 10_000, policer(1_000_000, 3_000));
    scenario["links"][1]["loss"] =
        json!({"model": "gilbert_elliott", "p": 0.01, "r": 0.1, "loss_good": 0.0, "loss_bad": 0.5});
    scenario["links"][1]["jitter"] = json!({"distribution": "normal", "ns": 1000, "correlation": 0.5, "reorder": true});
    let common = json!({"source": "client", "source_address": "10.0.1.10", "destination": "server",
        "destination_address": "10.0.2.10",
        "client_port": 4000, "streams": 2, "start_ns": 0, "duration_ns": 20 * MILLI, "cut_off_ns": MILLI, "dscp": 0,
        "interval_ns": 10 * MILLI, "rate_bps": 1_000_000, "rate_layer": "payload", "payload_bytes": 1000});
    let flow = |more: Value| {
        let mut flow = common.clone();
        flow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        flow
    };
    scenario["flows"] = json!([
        flow(json!({"name": "u", "protocol": "udp", "port": 1, "gap_ns": null, "take_turns": true, "seed": 3})),
        flow(json!({"name": "t", "protocol": "tcp", "port": 2, "congestion_control": "reno", "window_bytes": 16384}))
    ]);
    scenario["captures"] = json!([{"name": "c", "node": "R1", "interface": "FastEthernet0/1", "snaplen": 60,
        "filter": "tcp", "file": "c"}]);
    scenario
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_changed_scenario_is_refused_or_runs(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![
            json!(null), json!(0), json!(1), json!(2), json!(7), json!(1_000_000), json!(u64::MAX), json!(-1),
            json!(0.5), json!(1e300), json!(""), json!("client"), json!("R1"), json!("10.0.1.10"),
            json!("10.0.2.1/0"), json!("0.0.0.0/0"), json!("tcp"), json!("udp"),
            json!("ppp"), json!([]), json!({}), json!(true)])), 1..4)
    ) {
        let mut scenario = full_scenario();
        for (place, value) in changes {
            let mut all = Vec::new();
            places(&scenario, "", &mut all);
            *scenario.pointer_mut(place.get::<String>(&all)).unwrap() = value;
        }
        let Ok(mut scenario) = Scenario::from_json(&scenario.to_string()) else { return Ok(()) };
        if Simulation::new(&scenario).is_err() {
            return Ok(());
        }
        // A longer or faster flow would only take more time.
        scenario.drain_ns = scenario.drain_ns.min(SECOND);
        scenario.start_jitter_ns = scenario.start_jitter_ns.min(SECOND);
        scenario.sample_ns = scenario.sample_ns.max(100 * MILLI);
        for flow in &mut scenario.flows {
            flow.start_ns = flow.start_ns.min(SECOND);
            flow.duration_ns = flow.duration_ns.map(|duration| duration.min(20 * MILLI));
            flow.rate_bps = flow.rate_bps.map(|rate| rate.min(10_000_000));
            flow.gap_ns = flow.gap_ns.map(|gap| gap.max(100_000));
            flow.payload_bytes = flow.payload_bytes.map(|bytes| bytes.max(100));
        }
        if let Ok(simulation) = Simulation::new(&scenario) {
            balanced(&simulation.run(vec![Vec::new(); scenario.captures.len()]).unwrap());
        }
    }
}
