//! Default values of fields that a configuration omits.

use qos_core::{PortsConfig, RouterConfig};
use serde_json::{json, Value};

fn complete_value(config: &Value) -> Value {
    serde_json::to_value(RouterConfig::from_json(&config.to_string()).unwrap()).unwrap()
}

/// Five minutes as the load interval; the default limits and byte counts of `priority-list` and `queue-list`, whose
/// traffic without a rule goes to the normal queue and to queue 1.
#[test]
fn omitted_interface_values_have_defaults() {
    let queueing = |queueing: Value| {
        let interface = json!({"enabled": true, "bandwidth_kbps": 2_000, "queueing": queueing});
        let config = json!({"format": 1, "router": "R1", "generation": "classic", "interfaces": {"Out": interface}});
        let whole = complete_value(&config)["interfaces"]["Out"].clone();
        assert_eq!(whole["load_interval_s"], 300);
        whole["queueing"].clone()
    };
    let priority = queueing(json!({"type": "priority", "rules": []}));
    assert_eq!((&priority["limits"], &priority["default"]), (&json!([20, 40, 60, 80]), &json!(2)));
    let custom = queueing(json!({"type": "custom", "rules": [], "queues": [{"number": 3}]}));
    assert_eq!((&custom["default"], &custom["lowest"]), (&json!(1), &json!(1)));
    assert_eq!(custom["queues"], json!([{"number": 3, "limit": 20, "byte_count": 1_500}]));
}

/// A port of a Catalyst shapes queue 1 to a 25th and shares with equal parts.
#[test]
fn omitted_switch_port_values_have_defaults() {
    let config = json!({"format": 1, "router": "S1", "generation": "classic",
        "interfaces": {"Gi1/0/1": {"enabled": true, "bandwidth_kbps": 1_000_000, "switch": {}}}});
    let port = complete_value(&config)["interfaces"]["Gi1/0/1"]["switch"].clone();
    assert_eq!((&port["shape"], &port["share"]), (&json!([25, 0, 0, 0]), &json!([25, 25, 25, 25])));
}

/// In the bad state of Gilbert's model everything is lost.
#[test]
fn omitted_link_values_have_defaults() {
    let loss = json!({"model": "gilbert_elliott", "p": 0.1, "r": 0.2});
    let link = json!({"rate_bps": 1_000_000, "framing": "ppp", "delay_ns": 0, "loss": loss});
    let wiring = json!({"ports": {"S": {"inside": "i", "wire": "w", "link": link, "paced_by_peer": false}}});
    let whole = serde_json::to_value(PortsConfig::from_json(&wiring.to_string()).unwrap()).unwrap();
    let loss = &whole["ports"]["S"]["link"]["loss"];
    assert_eq!((&loss["loss_good"], &loss["loss_bad"]), (&json!(0.0), &json!(1.0)));
}
