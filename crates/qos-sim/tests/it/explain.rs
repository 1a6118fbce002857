//! A question about one packet: its answer equals the counters of the same packet sent as traffic.

use crate::scene::{dumbbell, flood, policer, policy_out, read, run, MILLI, SECOND};
use qos_sim::explain::End;
use qos_sim::{Explanation, Question, Simulation};
use serde_json::{json, Value};

/// A datagram of 972 bytes of payload from the client to the server.
fn question(at_ns: u64) -> Value {
    json!({"router": "R1", "at_ns": at_ns, "input": {"interface": "FastEthernet0/0"},
        "packet": {"protocol": 17, "source": "10.0.1.10", "destination": "10.0.2.10", "source_port": 4000, "dscp": 0,
            "destination_port": 5002, "length": 1000},
        "routes": [{"prefix": "10.0.2.0/24", "output": {"interface": "FastEthernet0/1"}}]})
}

fn ask(scenario: &Value, question: &Value) -> Explanation {
    let scenario = read(scenario);
    let question = Question::from_json(&question.to_string()).unwrap();
    Simulation::for_question(&scenario).unwrap().explain::<Vec<u8>>(&scenario, &question).unwrap()
}

fn policed(flows: Value) -> Value {
    let mut scenario = dumbbell(2_000_000, 5 * MILLI);
    scenario["nodes"]["R1"]["configuration"] = policy_out("FastEthernet0/1", 2_000, policer(1_000_000, 2_500));
    scenario["flows"] = flows;
    scenario
}

#[test]
fn at_an_idle_router_the_bucket_is_full_and_the_packet_leaves_at_once() {
    let answer = ask(&policed(json!([])), &question(0));
    let output = answer.output.expect("it goes out");
    assert_eq!((answer.end, answer.route), (End::Sent, Some(0)));
    let committed = |buckets: &[qos_core::counters::ClassBuckets]| buckets[0].police.unwrap().committed_bytes;
    assert_eq!((committed(&output.before.buckets), committed(&output.after.buckets)), (2_500, 2_500 - 1_014));
    // 1038 bytes on a line of 2 Mb/s, and 5 ms to the other end.
    assert_eq!((output.sent_ns, output.time_ns), (Some(4_152_000), Some(9_152_000)));
}

#[test]
fn explanation_shows_bucket_and_queue_during_a_flood() {
    let scenario = policed(json!([flood("flood", 4_000_000, 972, 1)]));
    let answer = ask(&scenario, &question(SECOND / 2));
    let output = answer.output.expect("it came to the output");
    let tokens = output.before.buckets[0].police.unwrap().committed_bytes;
    assert!(tokens < 2_500, "{tokens}");
    assert_eq!(answer.end, if tokens < 1_014 { End::DroppedAtOutput } else { End::Sent });
    assert_eq!(output.dropped.as_deref(), (tokens < 1_014).then_some("police"));
}

#[test]
fn explained_packet_is_treated_like_a_packet_of_a_host() {
    let mut scenario = policed(json!([flood("one", 1_000, 972, 1)]));
    scenario["flows"][0]["gap_ns"] = json!(2 * SECOND);
    scenario["flows"][0]["rate_bps"] = Value::Null;
    let report = run(&scenario);
    let sent = report.routers["R1"].samples.last().unwrap().interfaces["FastEthernet0/1"].clone();
    let asked = ask(&policed(json!([])), &question(0)).output.expect("it goes out").after.interface;
    let counted = |port: &qos_core::counters::InterfaceCounters| {
        let class = &port.policy_output.as_ref().unwrap().classes[0];
        (class.packets, class.bytes, class.police.as_ref().unwrap().conformed.packets)
    };
    assert_eq!(counted(&asked), counted(&sent));
}

#[test]
fn inconsistent_question_is_refused() {
    let refused = |path: &str, value: Value| {
        let mut asked = question(0);
        *asked.pointer_mut(path).unwrap() = value;
        let scenario = read(&policed(json!([])));
        let asked = Question::from_json(&asked.to_string()).unwrap();
        Simulation::for_question(&scenario).unwrap().explain::<Vec<u8>>(&scenario, &asked).unwrap_err().to_string()
    };
    assert!(refused("/router", json!("R9")).starts_with("router: found \"R9\""));
    assert!(refused("/router", json!("client")).starts_with("router: found \"client\", a host"));
    assert!(refused("/input/interface", json!("Serial0")).starts_with("input.interface: found \"Serial0\""));
    assert!(refused("/packet/destination", json!("2001:db8::1")).starts_with("packet.destination: found"));
    assert!(refused("/packet/dscp", json!(64)).starts_with("packet: found a value out of range"));
}

#[test]
fn a_packet_without_a_route_or_to_the_router_is_not_sent() {
    let mut nowhere = question(0);
    nowhere["routes"] = json!([]);
    assert_eq!(ask(&policed(json!([])), &nowhere).end, End::NoRoute);
    nowhere["addresses"] = json!(["10.0.2.10"]);
    assert_eq!(ask(&policed(json!([])), &nowhere).end, End::Received);
    let mut dropped = question(0);
    dropped["routes"] = json!([{"prefix": "10.0.2.0/24"}, {"prefix": "0.0.0.0/0"}]);
    let answer = ask(&policed(json!([])), &dropped);
    assert_eq!((answer.end, answer.route), (End::NullRoute, Some(0)));
}
