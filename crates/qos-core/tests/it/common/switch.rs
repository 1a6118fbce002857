//! Configurations of a switch.

use qos_core::{PortsConfig, RouterConfig};
use serde_json::{json, Value};

/// The platform's defaults, with QoS on.
pub fn defaults() -> Value {
    let by_dscp = |queue: fn(usize) -> (u8, u8)| (0..64).map(queue).collect::<Vec<_>>();
    let output = |dscp: usize| match dscp {
        0..=15 => (2, 1),
        16..=31 => (3, 1),
        40..=47 => (1, 1),
        _ => (4, 1),
    };
    let input = |dscp: usize| if (40..48).contains(&dscp) { (2, 1) } else { (1, 1) };
    let thresholds = |t: u32| json!({"t1": t, "t2": t, "reserved": 50, "maximum": 400});
    let set = json!({"buffers": [25, 25, 25, 25],
        "thresholds": [thresholds(100), thresholds(200), thresholds(100), thresholds(100)]});
    json!({
        "qos": true, "rewrite_ip_dscp": true,
        "maps": {
            "cos_dscp": [0, 8, 16, 24, 32, 40, 48, 56], "ip_prec_dscp": [0, 8, 16, 24, 32, 40, 48, 56],
            "dscp_cos": (0..64).map(|dscp| dscp >> 3).collect::<Vec<u8>>(),
            "policed_dscp": (0..64).collect::<Vec<u8>>(),
            "dscp_mutation": {},
            "cos_output_q": [[2, 1], [2, 1], [3, 1], [3, 1], [4, 1], [1, 1], [4, 1], [4, 1]],
            "dscp_output_q": by_dscp(output),
            "cos_input_q": [[1, 1], [1, 1], [1, 1], [1, 1], [1, 1], [2, 1], [1, 1], [1, 1]],
            "dscp_input_q": by_dscp(input)},
        "queue_sets": [set, set],
        "input": {"buffers": [90, 10], "bandwidth": [4, 4], "thresholds": [[100, 100], [100, 100]],
            "priority": {"queue": 2, "bandwidth": 10}},
        "aggregate_policers": {}})
}

/// Name of the port with this number, from 1.
pub fn name(number: usize) -> String {
    // Numbers of two digits, so that the order of names is that of numbers.
    format!("GigabitEthernet1/0/{number:02}")
}

/// Wiring of so many ports of 1 Gb/s, whose senders keep the link's rate.
pub fn ports(count: usize) -> PortsConfig {
    let port = |number: usize| {
        (
            name(number),
            json!({"inside": format!("i{number}"), "wire": format!("w{number}"), "paced_by_peer": true,
            "link": {"rate_bps": 1_000_000_000, "framing": "ethernet", "delay_ns": 0}}),
        )
    };
    let ports: serde_json::Map<String, Value> = (1..=count).map(port).collect();
    PortsConfig::from_json(&json!({"ports": ports}).to_string()).unwrap()
}

/// An interface with the given switch part.
pub fn interface(switch: Value) -> Value {
    json!({"enabled": true, "bandwidth_kbps": 1_000_000, "load_interval_s": 30, "switch": switch})
}

/// A whole configuration.
pub fn config(switch: &Value, interfaces: Value) -> Value {
    json!({"format": 1, "router": "S1", "generation": "classic", "switch": switch, "interfaces": interfaces})
}

pub fn read(config: &Value) -> RouterConfig {
    RouterConfig::from_json(&config.to_string()).unwrap()
}
