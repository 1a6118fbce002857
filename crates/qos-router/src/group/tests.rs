//! Chains of switches, which need no kernel to forward, joined in memory.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use qos_core::frame::parse;
use qos_core::wire::Framing;
use qos_core::{Engine, Output, PortId, PortsConfig, RouterConfig, Side};
use serde_json::{json, Value};

use super::*;
use crate::capture::tests::read;
use crate::config::DataPlaneConfig;
use crate::plane::Dataplane;
use crate::requests::Service;

const START: Time = Time(1_000_000_000);
/// Time after the last frame until everything has left.
const LATER: u64 = 10_000_000_000;

/// A frame that comes to one end of a chain.
#[derive(Clone, Debug)]
struct Sent {
    /// After the start, ns.
    at: u64,
    length: usize,
    /// To the last switch of the chain, not its first.
    back: bool,
}

fn frame(sent: &Sent) -> Vec<u8> {
    let mut frame = vec![0; sent.length];
    frame[..6].copy_from_slice(if sent.back { b"\x02aaaaa" } else { b"\x02bbbbb" });
    frame[6..12].copy_from_slice(if sent.back { b"\x02bbbbb" } else { b"\x02aaaaa" });
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn wiring(rates: [u64; 2], delays: [u64; 2]) -> PortsConfig {
    let port = |side: usize| {
        json!({"inside": "", "wire": "", "paced_by_peer": true,
               "link": {"rate_bps": rates[side], "framing": "ethernet", "delay_ns": delays[side]}})
    };
    PortsConfig::from_json(&json!({"ports": {"A": port(0), "B": port(1)}}).to_string()).unwrap()
}

/// All frames have one queue of the fewest cells, so that bursts are dropped.
fn configuration(name: &str) -> String {
    let all = |count: usize, value: Value| Value::Array(vec![value; count]);
    let thresholds = json!({"t1": 100, "t2": 100, "reserved": 50, "maximum": 100});
    let set = json!({"buffers": [25, 25, 25, 25], "thresholds": all(4, thresholds)});
    let switch = json!({
        "qos": true, "rewrite_ip_dscp": true,
        "maps": {
            "cos_dscp": all(8, json!(0)), "ip_prec_dscp": all(8, json!(0)), "dscp_cos": all(64, json!(0)),
            "policed_dscp": (0..64).collect::<Vec<u8>>(), "dscp_mutation": {},
            "cos_output_q": all(8, json!([2, 1])), "dscp_output_q": all(64, json!([2, 1])),
            "cos_input_q": all(8, json!([1, 1])), "dscp_input_q": all(64, json!([1, 1]))},
        "queue_sets": [set, set],
        "input": {"buffers": [90, 10], "bandwidth": [4, 4], "thresholds": [[100, 100], [100, 100]],
            "priority": {"queue": 2, "bandwidth": 10}},
        "aggregate_policers": {}});
    let port = json!({"enabled": true, "bandwidth_kbps": 100_000,
                      "switch": {"switchport": {"mode": "access", "vlan": 10}}});
    let interfaces = json!({"A": port, "B": port});
    json!({"format": 1, "router": name, "generation": "classic", "switch": switch, "interfaces": interfaces})
        .to_string()
}

/// The links of a chain, each with its rate and delay, the ends of the chain included: one more than switches.
type Chain = Vec<(u64, u64)>;

fn wirings(chain: &Chain) -> Vec<PortsConfig> {
    chain.windows(2).map(|link| wiring([link[0].0, link[1].0], [link[0].1, link[1].1])).collect()
}

fn group(chain: &Chain) -> Group {
    let clock = Clock::new();
    let members: Vec<_> = (0..)
        .zip(wirings(chain))
        .map(|(number, wiring)| {
            let name = format!("S{number}");
            let mut plane = Dataplane::in_memory(&wiring, START, clock);
            plane.configure(&DataPlaneConfig::from_json(&configuration(&name)).unwrap()).unwrap();
            Member::new(Service::new(name, plane), None, None)
        })
        .collect();
    let last = members.len() - 1;
    let links = (0..=last).map(|n| vec![n.checked_sub(1).map(|n| (n, 1)), (n < last).then_some((n + 1, 0))]).collect();
    let mut group = Group::new(clock, members, links, false);
    group.horizon = START;
    group
}

/// Times at which frames have left the ends of the chain, and the end: after rounds that catch up at these times, and a
/// last one when everything is over.
fn through_group(chain: &Chain, frames: &[Sent], rounds: &[u64]) -> Vec<(Time, bool)> {
    let mut group = group(chain);
    drive_group(&mut group, frames, rounds);
    let left: Vec<_> = group.left.iter().map(|(time, member, _)| (*time, *member == 0)).collect();
    assert!(left.is_sorted_by_key(|(time, _)| *time), "in the order of event time");
    left
}

/// Lets frames come to the ends of a chain, in rounds that catch up at these times, and a last one when all is over.
fn drive_group(group: &mut Group, frames: &[Sent], rounds: &[u64]) {
    let last = group.members.len() - 1;
    let mut frames = frames.iter().peekable();
    for until in rounds.iter().copied().chain([LATER]) {
        while let Some(sent) = frames.next_if(|sent| sent.at <= until) {
            let (number, port) = if sent.back { (last, 1) } else { (0, 0) };
            group.members[number].service.plane.arrive(port, Time(START.0 + sent.at), &frame(sent));
        }
        group.horizon = Time(START.0 + until);
        group.advance_in_order(Duration::ZERO);
    }
}

/// The same of frames in one direction, engine after engine without anything around them.
fn through_engines(chain: &Chain, frames: &[Sent]) -> Vec<Time> {
    let mut arrivals: Vec<_> = frames.iter().map(|sent| (Time(START.0 + sent.at), sent.length)).collect();
    for (number, wiring) in wirings(chain).iter().enumerate() {
        let mut engine: Engine<usize> = Engine::new(wiring, START).unwrap();
        engine.configure(START, &RouterConfig::from_json(&configuration(&format!("S{number}"))).unwrap()).unwrap();
        let (mut left, mut outputs) = (Vec::new(), Vec::new());
        let mut next = arrivals.iter().peekable();
        loop {
            let times = [next.peek().map(|(time, _)| *time), engine.next_deadline()];
            let Some(now) = times.into_iter().flatten().min() else { break };
            while let Some((time, length)) = next.next_if(|(time, _)| *time <= now) {
                let bytes = frame(&Sent { at: 0, length: *length, back: false });
                engine.receive(*time, PortId(0), parse(&bytes, Framing::Ethernet), *length);
            }
            engine.poll_inside(now, Duration::ZERO, &mut outputs);
            for output in outputs.drain(..) {
                if let Output::Departure(departure) = output {
                    engine.transmit(departure.time, PortId(1), departure.descriptor, departure.payload);
                }
            }
            engine.poll(now, &mut outputs);
            for output in outputs.drain(..) {
                match output {
                    Output::Departure(departure) if departure.side == Side::Wire => {
                        left.push((departure.time, departure.payload));
                    }
                    _ => {}
                }
            }
        }
        arrivals = left;
    }
    arrivals.into_iter().map(|(time, _)| time).collect()
}

fn chains() -> impl Strategy<Value = Chain> {
    let rate = prop_oneof![Just(10_000_000u64), Just(100_000_000), 1_000_000..1_000_000_000u64];
    prop::collection::vec((rate, prop_oneof![Just(0u64), 0..5_000_000u64]), 3..6)
}

fn traffic() -> impl Strategy<Value = Vec<Sent>> {
    let sent = (prop_oneof![Just(0u64), 0..1_000_000u64], 60..1515usize, any::<bool>());
    prop::collection::vec(sent, 1..200).prop_map(|frames| {
        let mut at = 0;
        let each = frames.into_iter().map(|(gap, length, back)| {
            at += gap;
            Sent { at, length, back }
        });
        each.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_leave_a_chain_at_the_times_of_its_engines(chain in chains(), mut frames in traffic()) {
        // One burst needs no queue: the first frame has taught every switch the destination of the others.
        frames.iter_mut().for_each(|sent| sent.back = false);
        let expected = through_engines(&chain, &frames);
        let found: Vec<_> = through_group(&chain, &frames, &[]).into_iter().map(|(time, _)| time).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_stalled_thread_changes_no_departure(
        chain in chains(),
        frames in traffic(),
        mut rounds in prop::collection::vec(0..200_000_000u64, 0..50),
    ) {
        rounds.sort_unstable();
        let punctual: Vec<_> = (0..4_000).map(|number| number * 50_000).collect();
        let expected = through_group(&chain, &frames, &punctual);
        prop_assert_eq!(through_group(&chain, &frames, &rounds), expected);
    }
}

/// Has a switch carry out a request of the control protocol.
fn ask(group: &mut Group, number: usize, request: &Value) -> Value {
    let reply = group.members[number].service.answer(request.to_string().as_bytes());
    let reply: Value = serde_json::from_slice(&reply).unwrap();
    assert_eq!(reply["ok"], json!(true), "{reply}");
    reply
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn captures_have_event_time_however_late_the_thread_is(
        chain in chains(),
        mut frames in traffic(),
        mut rounds in prop::collection::vec(0..200_000_000u64, 0..50),
    ) {
        frames.iter_mut().for_each(|sent| sent.back = false);
        rounds.sort_unstable();
        let folder = new_folder();
        let mut group = group(&chain);
        let mut files = Vec::new();
        for number in 0..group.members.len() {
            for port in ["A", "B"] {
                let file = folder.join(format!("{number}{port}"));
                ask(&mut group, number, &json!({"op": "capture", "interface": port, "file": file, "snaplen": 64}));
                files.push((number, file));
            }
        }
        drive_group(&mut group, &frames, &rounds);
        for (number, file) in &files {
            ask(&mut group, *number, &json!({"op": "end_capture", "file": file}));
        }
        let captured = |file: &PathBuf| read(file).into_iter().map(|(time, ..)| Time(time)).collect();
        let times: Vec<Vec<Time>> = files.iter().map(|(_, file)| captured(file)).collect();
        std::fs::remove_dir(&folder).unwrap();
        // Frames received by the first port, some of which the queues may drop.
        prop_assert_eq!(times[0].len(), frames.len());
        // One half of a link's delay belongs to the sender.
        for (link, (_, delay)) in times[1..times.len() - 1].chunks(2).zip(&chain[1..]) {
            let arrived: Vec<_> = link[0].iter().map(|left| Time(left.0 + delay.div_ceil(2))).collect();
            prop_assert_eq!(&arrived, &link[1]);
        }
        let left: Vec<_> = group.left.iter().map(|(time, ..)| *time).collect();
        prop_assert_eq!(times.last().unwrap(), &left);
        prop_assert_eq!(left, through_engines(&chain, &frames));
    }
}

/// A new folder for captures.
fn new_folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("qos-router-captures-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn a_panic_stops_only_its_router() {
    let path = std::env::temp_dir().join(format!("qos-router-ended-{}", std::process::id()));
    let mut group = group(&vec![(100_000_000, 0); 4]);
    group.members[1] = {
        let plane = Dataplane::in_memory(&wiring([100_000_000; 2], [0; 2]), START, group.clock).without_ports();
        Member::new(Service::new("S1".to_owned(), plane), None, Some(path.clone()))
    };
    for number in [0, 2] {
        group.members[number].service.plane.arrive(0, START, &frame(&Sent { at: 0, length: 100, back: false }));
    }
    group.horizon = Time(START.0 + LATER);
    group.advance_in_order(Duration::ZERO);
    // The frame of the third left the chain, that of the first met the second, which has failed.
    assert_eq!(group.left.iter().map(|(_, member, port)| (*member, *port)).collect::<Vec<_>>(), [(2, 1)]);
    let health = |group: &mut Group, number: usize| -> Value {
        serde_json::from_slice(&group.members[number].service.answer(br#"{"op": "health"}"#)).unwrap()
    };
    let reply = health(&mut group, 1);
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("the data plane of S1 failed: ") && message.contains("index"), "{reply}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{message}\n"));
    std::fs::remove_file(&path).unwrap();
    // The others continue, and count the lost frames.
    group.members[0].service.plane.arrive(0, group.horizon, &frame(&Sent { at: 0, length: 100, back: false }));
    group.horizon = Time(START.0 + 2 * LATER);
    group.advance_in_order(Duration::ZERO);
    assert_eq!((&health(&mut group, 0)["unsent"], &health(&mut group, 2)["transmitted"]), (&json!(1), &json!(0)));
    assert!(!group.members[1].is_running() && group.members[0].is_running());
}

#[test]
fn a_router_that_has_failed_refuses_all_but_its_end() {
    let mut group = group(&vec![(100_000_000, 0); 2]);
    let member = &mut group.members[0];
    let answer = |member: &mut Member, request: Value| -> Value {
        serde_json::from_slice(&member.service.answer(request.to_string().as_bytes())).unwrap()
    };
    assert_eq!(answer(member, json!({"op": "hello"}))["ok"], json!(true));
    member.fail("it was its turn");
    for request in [
        json!({"op": "hello"}),
        json!({"op": "configure", "config": {"format": 1, "router": "S0", "generation": "hqf"}}),
        json!({"op": "config"}),
        json!({"op": "counters"}),
        json!({"op": "clear"}),
        json!({"op": "ip_sla"}),
        json!({"op": "health"}),
        json!({"op": "capture", "interface": "A", "file": "/nowhere/f", "snaplen": 64}),
        json!({"op": "end_capture", "file": "/nowhere/f"}),
    ] {
        let reply = answer(member, request.clone());
        let why = json!({"code": "internal", "message": "the data plane of S0 failed: it was its turn"});
        assert_eq!((&reply["ok"], &reply["error"]), (&json!(false), &why), "{request}");
    }
    assert!(!member.service.stopping);
    assert_eq!(answer(member, json!({"op": "shutdown"}))["ok"], json!(true));
    assert!(member.service.stopping);
}
