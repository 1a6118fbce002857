//! IP SLA in virtual time: round trips are the arithmetic of lines, process level and the transmit ring.

use crate::scene::{dumbbell, flood, read, refusal, MILLI, SECOND};
use ip_sla::{OperationReport, ReturnCode};
use qos_core::frame;
use qos_core::wire::Framing;
use qos_sim::{Report, Simulation};
use serde_json::{json, Value};

/// 320 µs, as of a 2811.
const PROCESS: u64 = 320_000;

/// Two routers on a PPP line of 512 kb/s between the hosts. `a1` has operation 1 as it is given, and so has the client.
fn routers(operation: &Value) -> Value {
    let mut scenario = dumbbell(100_000_000, 0);
    scenario["nodes"]["a1"] = json!({"kind": "router", "routes": [{"prefix": "10.0.2.0/24", "via": "10.0.9.2"}],
        "ip_sla": {"operations": {"1": operation}}});
    scenario["nodes"]["a2"] = json!({"kind": "router", "routes": [{"prefix": "10.0.1.0/24", "via": "10.0.9.1"}]});
    scenario["nodes"].as_object_mut().unwrap().remove("R1");
    scenario["links"][0]["ends"][1]["node"] = json!("a1");
    scenario["links"][1]["ends"][0]["node"] = json!("a2");
    scenario["links"].as_array_mut().unwrap().push(json!({"name": "line", "rate_bps": 512_000, "framing": "ppp",
        "ends": [{"node": "a1", "interface": "Serial0/0", "address": "10.0.9.1/30"},
            {"node": "a2", "interface": "Serial0/0", "address": "10.0.9.2/30"}]}));
    scenario["probes"] = json!([{"name": "p", "node": "a1", "operation": 1, "start_ns": SECOND, "end_ns": 5 * SECOND}]);
    scenario
}

fn operation(kind: &str, target: &str) -> Value {
    json!({"type": kind, "target": target, "frequency_s": 2, "timeout_ms": 1000})
}

fn jitter(target: &str) -> Value {
    let mut operation = operation("udp-jitter", target);
    operation["target_port"] = json!(5000);
    operation
}

fn run(scenario: &Value) -> Report {
    let report = Simulation::new(&read(scenario)).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
    let packets = &report.packets;
    let dropped: u64 = packets.dropped.values().sum();
    assert_eq!(packets.offered, packets.delivered + dropped + packets.lost + packets.queued, "{packets:?}");
    report
}

/// Nanoseconds between the stamps of each packet.
fn round_trips(report: &OperationReport) -> Vec<u64> {
    report.samples.iter().map(|sample| sample.arrived_ns - sample.sent_ns).collect()
}

/// Nanoseconds on the line of `bytes` of IP packet, with 7 of PPP.
fn line_time(bytes: u64) -> u64 {
    (bytes + 7) * 8 * SECOND / 512_000
}

#[test]
fn probe_over_an_idle_line_takes_line_and_processing_times() {
    for (kind, bytes, packets) in [("icmp-echo", 20 + 8 + 8 + 28, 2), ("icmp-jitter", 40, 20)] {
        for process in [None, Some(PROCESS)] {
            let mut scenario = routers(&operation(kind, "10.0.9.2"));
            for router in ["a1", "a2"] {
                scenario["nodes"][router]["process_ns"] = json!(process);
            }
            let report = run(&scenario);
            let expected = 2 * line_time(bytes) + 3 * process.unwrap_or(0);
            assert_eq!(round_trips(&report.probes["p"]), vec![expected; packets], "{kind}");
            let busy = &report.routers["a2"].process_busy_ns;
            assert_eq!(busy.last().copied(), process.map(|each| packets as u64 * each));
        }
    }
}

#[test]
fn control_message_precedes_a_probe_of_a_responder() {
    let mut scenario = routers(&jitter("10.0.9.2"));
    scenario["nodes"]["a2"]["ip_sla"] = json!({"responder": true});
    let report = run(&scenario);
    assert_eq!(round_trips(&report.probes["p"]), vec![2 * line_time(20 + 8 + 32); 20]);
    let responder = report.routers["a2"].ip_sla.last().unwrap().responder.clone().unwrap();
    assert_eq!((responder.counts.control_messages, responder.counts.packets, responder.counts.errors), (2, 20, 0));
    assert!(report.routers["a1"].ip_sla.last().unwrap().responder.is_none());
    assert!(report.routers["a1"].ip_sla.iter().all(|sample| sample.operations[&1].samples.is_empty()));
}

#[test]
fn no_answer_comes_without_responder_or_route() {
    let silent = run(&routers(&jitter("10.0.9.2")));
    assert_eq!(silent.probes["p"].latest.return_code, ReturnCode::NoConnection);
    assert_eq!((silent.probes["p"].successes, silent.probes["p"].failures), (0, 2));
    let nowhere = run(&routers(&operation("icmp-echo", "10.7.7.7")));
    assert_eq!((nowhere.packets.offered, nowhere.probes["p"].failures), (0, 2));
}

#[test]
fn a_probe_of_a_host_passes_its_queue() {
    let mut scenario = routers(&operation("icmp-echo", "10.0.9.2"));
    scenario["nodes"]["client"]["ip_sla"] = json!({"operations": {"7": jitter("10.0.2.10")}});
    scenario["nodes"]["server"]["ip_sla"] = json!({"responder": true, "responder_ports": [5000]});
    scenario["probes"] = json!([{"name": "p", "node": "client", "operation": 7, "end_ns": 5 * SECOND}]);
    // In each direction a frame of 60 bytes, plus 38 of Ethernet, on two 100 Mb/s lines.
    let expected = 2 * (2 * (60 + 38) * 80 + line_time(60));
    assert_eq!(round_trips(&run(&scenario).probes["p"]), vec![expected; 30]);
}

#[test]
fn the_longest_wait_is_for_the_ring_and_the_packet_on_the_line() {
    for ring in [1, 2, 5] {
        let mut scenario = routers(&operation("icmp-jitter", "10.0.9.2"));
        let out = json!({"enabled": true, "bandwidth_kbps": 512, "tx_ring_limit": ring, "service_policy_output": "P"});
        scenario["nodes"]["a1"]["configuration"] = json!({"format": 1, "router": "a1", "generation": "classic",
            "class_maps": {"echo": {"match": "all", "criteria": [{"type": "protocol", "name": "icmp"}]}},
            "policy_maps": {"P": {"classes": [{"name": "echo", "priority": {"unit": "kbps", "number": 64}},
                {"name": "class-default", "fair_queue": {"queues": null}}]}},
            "interfaces": {"Serial0/0": out, "FastEthernet0/0": {"enabled": true, "bandwidth_kbps": 100_000}}});
        scenario["flows"] = json!([flood("load", 700_000, 172, 20)]);
        scenario["probes"][0]["end_ns"] = json!(20 * SECOND);
        let waits = round_trips(&run(&scenario).probes["p"]);
        let bound = (ring + 1) * line_time(200) + 2 * line_time(40);
        let longest = *waits.iter().max().unwrap();
        assert!(
            waits.len() >= 90 && longest <= bound && longest > bound - line_time(200) / 5,
            "{ring}: {longest} {bound}"
        );
    }
}

#[test]
fn captures_contain_probe_messages() {
    let mut scenario = routers(&operation("icmp-echo", "10.0.2.10"));
    scenario["nodes"]["a1"]["ip_sla"]["operations"]["1"]["tos"] = json!(0xb8);
    scenario["captures"] = json!([{"name": "c", "node": "server", "interface": "eth0", "file": "c", "filter": "icmp"}]);
    let mut file = Vec::new();
    let report = Simulation::new(&read(&scenario)).unwrap().run(vec![&mut file]).unwrap();
    assert_eq!(report.probes["p"].successes, 2);
    let mut reader = pcap_file::pcapng::PcapNgReader::new(file.as_slice()).unwrap();
    let mut seen = Vec::new();
    while let Some(block) = reader.next_block() {
        let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let found = frame::parse(&packet.data, Framing::Ethernet);
        seen.push((found.icmp, found.dscp, found.network_len));
        assert_eq!(ip_sla::packet::checksum(&packet.data[14 + 20..]), 0);
    }
    assert_eq!(seen, [(Some((8, 0)), 46, 64), (Some((0, 0)), 46, 64)].repeat(2));
}

#[test]
fn errors_of_a_probe_are_reported() {
    let sound = routers(&operation("icmp-echo", "10.0.9.2"));
    let with = |pointer: &str, value: Value| {
        let mut scenario = sound.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        scenario.pointer_mut(parent).unwrap()[key] = value;
        refusal(&scenario)
    };
    let operation = "/nodes/a1/ip_sla/operations/1";
    for (message, expected) in [
        (with("/probes/0/node", json!("R9")), "probes[0].node: found \"R9\", not a node: there are a1, a2,"),
        (
            with("/probes/0/operation", json!(2)),
            "probes[0].operation: found 2, expected an operation of nodes.a1.ip_sla",
        ),
        (with("/probes/0/end_ns", json!(SECOND)), "probes[0].end_ns: found 1000000000, expected more than start_ns"),
        (
            with(&format!("{operation}/schedule"), json!({"life_s": null, "start": "now"})),
            "probes[0].operation: found 1 with a schedule",
        ),
        (
            with(&format!("{operation}/source"), json!("10.0.9.2")),
            "nodes.a1.ip_sla.operations.1.source: found 10.0.9.2, expected an address of a1 on a link",
        ),
        (
            with(&format!("{operation}/request_data_size"), json!(1465)),
            "nodes.a1.ip_sla.operations.1.request_data_size: found a packet of 1501 bytes, expected at most 1500",
        ),
        (
            with(&format!("{operation}/timeout_ms"), json!(3000)),
            "nodes.a1.ip_sla.operations.1.timeout_ms: found 3000 ms",
        ),
        (with("/nodes/a1/process_ns", json!(1000 * MILLI + 1)), "nodes.a1.process_ns: found 1000000001, expected"),
        (with("/nodes/client/process_ns", json!(1)), "nodes.client.process_ns: found this key on a host"),
    ] {
        assert!(message.starts_with(expected), "{message}\nis not\n{expected}");
    }
}
