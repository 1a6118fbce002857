//! Functions at the edges of a router's interfaces: access lists that filter, and the segment size that SYNs may
//! request.

use crate::scene::{dumbbell, flood, run, MILLI, SECOND};
use serde_json::{json, Value};

/// TCP's timestamps in each segment (RFC 7323).
const TIMESTAMPS: u32 = 12;

/// A network whose router has these settings on an interface, and these access lists.
fn scenario_with(interface: &str, more: Value, lists: Value) -> Value {
    let mut own = json!({"enabled": true, "bandwidth_kbps": 100_000});
    own.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut scenario = dumbbell(100_000_000, 5 * MILLI);
    scenario["nodes"]["R1"]["configuration"] = json!({"format": 1, "router": "R1", "generation": "hqf",
        "access_lists": lists, "interfaces": {interface: own}});
    scenario["flows"] = json!([{"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
        "port": 5_001, "duration_ns": SECOND}]);
    scenario
}

/// Whichever of its ports says so, both ends take the smaller size; without a word they take that of their links.
#[test]
fn both_tcp_ends_use_the_segment_size_set_by_a_router() {
    let size = |interface: &str, more: Value| {
        let report = run(&scenario_with(interface, more, json!({})));
        report.flows["transfer"].streams[0].mss_bytes
    };
    assert_eq!(size("FastEthernet0/0", json!({})), Some(1_460 - TIMESTAMPS));
    for interface in ["FastEthernet0/0", "FastEthernet0/1"] {
        assert_eq!(size(interface, json!({"tcp_adjust_mss": 1_360})), Some(1_360 - TIMESTAMPS), "{interface}");
    }
}

/// Packets denied by a list are accounted for, and other packets pass.
#[test]
fn denied_packets_are_accounted_for() {
    let any = json!({"address": "0.0.0.0", "wildcard": "255.255.255.255"});
    let entry = |action: &str, protocol: Value| {
        json!({"action": action, "protocol": protocol, "source": any,
            "destination": any})
    };
    let lists = json!({"NoUdp": [entry("deny", json!(17)), entry("permit", Value::Null)]});
    let mut scenario = scenario_with("FastEthernet0/1", json!({"access_groups_output": ["NoUdp"]}), lists);
    scenario["flows"].as_array_mut().unwrap().push(flood("flood", 1_000_000, 1_000, 1));
    let report = run(&scenario);
    let flood = &report.flows["flood"].streams[0];
    assert_eq!((flood.bytes, flood.lost), (0, flood.datagrams));
    assert_eq!(Some(report.packets.dropped["denied"]), flood.datagrams);
    assert!(report.flows["transfer"].streams[0].bytes > 1_000_000);
}
