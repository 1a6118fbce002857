//! IPv6 through the simulated network: the header of 40 bytes in place of 20 in times, lengths, segments and captures.

use crate::scene::{dumbbell, flood, policer, policy_out, refusal, run, MILLI, SECOND};
use serde_json::{json, Value};

/// The dumbbell with both families, or with IPv6 alone.
fn dual_stack_scenario(rate_bps: u64, delay_ns: u64, with_ipv4: bool) -> Value {
    let mut scenario = dumbbell(rate_bps, delay_ns);
    for (link, network) in [(0, 1), (1, 2)] {
        for end in 0..2 {
            let end = &mut scenario["links"][link]["ends"][end];
            let router = end["node"] == "R1";
            end["ipv6_address"] = json!(format!("2001:db8:{network}::{}/64", if router { 1 } else { 10 }));
            if !with_ipv4 {
                end["address"] = Value::Null;
            }
        }
    }
    let default = json!({"prefix": "::/0", "via": "2001:db8:1::1"});
    if with_ipv4 {
        scenario["nodes"]["client"]["routes"].as_array_mut().unwrap().push(default);
        scenario["nodes"]["server"]["routes"] =
            json!([{"prefix": "0.0.0.0/0", "interface": "eth0"}, {"prefix": "::/0", "interface": "eth0"}]);
    } else {
        scenario["nodes"]["client"]["routes"] = json!([default]);
        scenario["nodes"]["server"]["routes"] = json!([{"prefix": "::/0", "via": "2001:db8:2::1"}]);
    }
    scenario
}

fn flow_over(mut flow: Value, ipv6: bool) -> Value {
    let addresses = if ipv6 { ["2001:db8:1::10", "2001:db8:2::10"] } else { ["10.0.1.10", "10.0.2.10"] };
    flow["source_address"] = json!(addresses[0]);
    flow["destination_address"] = json!(addresses[1]);
    flow
}

#[test]
fn a_datagram_takes_the_line_time_of_its_longer_header() {
    for (payload, delay) in [(1452, 0), (1452, 25 * MILLI), (18, 7)] {
        let mut scenario = dual_stack_scenario(3_000_000, delay, false);
        scenario["flows"] = json!([{"name": "one", "protocol": "udp", "source": "client", "destination": "server",
            "port": 9, "duration_ns": 1, "gap_ns": SECOND, "payload_bytes": payload}]);
        let report = run(&scenario);
        let line = (payload + 8 + 40 + 38) * 8;
        assert_eq!(report.virtual_ns, line * 10 + delay + line * 1000 / 3, "{payload} bytes");
    }
}

/// One policer for both families, after another: it pays for the IP packet and 14 bytes of Ethernet.
#[test]
fn a_policer_pays_for_twenty_bytes_more_a_packet() {
    let passed = |ipv6: bool| {
        let mut scenario = dual_stack_scenario(10_000_000, 0, true);
        scenario["nodes"]["R1"]["configuration"] = policy_out("FastEthernet0/1", 10_000, policer(1_000_000, 31_250));
        scenario["flows"] = json!([flow_over(flood("flood", 2_000_000, 200, 10), ipv6)]);
        let report = run(&scenario);
        report.flows["flood"].streams[0].bytes / 200
    };
    // The bucket at the start, and 10 s of 125 bytes per millisecond.
    let tokens = 31_250 + 125 * 10_000;
    for (ipv6, counted) in [(false, 200 + 8 + 20 + 14), (true, 200 + 8 + 40 + 14)] {
        let expected = tokens / counted;
        assert!((expected - 1..=expected).contains(&passed(ipv6)), "{} of {expected}", passed(ipv6));
    }
}

#[test]
fn a_full_segment_has_twenty_bytes_less() {
    for (ipv6, mss) in [(false, 1448), (true, 1428)] {
        let mut scenario = dual_stack_scenario(10_000_000, 5 * MILLI, true);
        let transfer = json!({"name": "transfer", "protocol": "tcp", "source": "client", "destination": "server",
            "port": 5201, "duration_ns": 5 * SECOND});
        scenario["flows"] = json!([flow_over(transfer, ipv6)]);
        let stream = &run(&scenario).flows["transfer"].streams[0];
        assert_eq!(stream.mss_bytes, Some(mss));
        // The line is full: payload relative to bytes on the wire, 1538 for a full frame.
        let share = stream.bytes as f64 * 8.0 / stream.seconds / 10_000_000.0;
        assert!((share - f64::from(mss) / 1538.0).abs() < 0.01, "{share}");
    }
}

#[test]
fn incompatible_addresses_are_refused() {
    let with = |pointer: &str, value: Value| {
        let mut scenario = dual_stack_scenario(10_000_000, 0, true);
        scenario["flows"] = json!([flow_over(flood("flood", 1_000_000, 200, 1), true)]);
        *scenario.pointer_mut(pointer).unwrap() = value;
        refusal(&scenario)
    };
    for (said, expected) in [
        (
            with("/links/0/ends/0/ipv6_address", Value::Null),
            "links[0].ends: found 10.0.1.10/24 and 10.0.1.1/24 2001:db8:1::1/64, not in the same network",
        ),
        (
            with("/links/0/ends/0/ipv6_address", json!("2001:db8:1::10/128")),
            "links[0].ends: found 10.0.1.10/24 2001:db8:1::10/128 and",
        ),
        (
            with("/nodes/client/routes/1/via", json!("10.0.1.1")),
            "nodes.client.routes[1].via: found 10.0.1.1, expected an address of the same family as ::/0",
        ),
        (
            with("/flows/0/source_address", json!("10.0.1.10")),
            "flows[0]: found 10.0.1.10 and 2001:db8:2::10, of different address families",
        ),
        (
            with("/flows/0/source_address", Value::Null),
            "flows[0].source_address: found none, expected one of the addresses of client: 10.0.1.10, 2001:db8:1::10",
        ),
        (with("/flows/0/payload_bytes", json!(1453)), "flows[0].payload_bytes: found 1453, expected 1 to 1452 bytes"),
    ] {
        assert!(said.starts_with(expected), "{said}");
    }
    let mut bare = dual_stack_scenario(10_000_000, 0, false);
    for end in 0..2 {
        bare["links"][0]["ends"][end]["ipv6_address"] = Value::Null;
    }
    assert_eq!(
        refusal(&bare),
        "links[0].ends: found no address of client, expected an IPv4 address, an IPv6 address or both"
    );
}
