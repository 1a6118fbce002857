//! What a switch refuses, and where it says so.

use crate::common;
use crate::common::switch::{config, defaults, interface, name, ports};
use qos_core::{Engine, RouterConfig, Time};
use serde_json::{json, Value};

/// The path and text of the refusal; the engine must still have what it had.
fn refusal(config: &Value) -> String {
    let before = self::config(&defaults(), json!({}));
    let mut engine: Engine<u64> = Engine::new(&ports(2), Time(0)).unwrap();
    engine.configure(Time(0), &common::switch::read(&before)).unwrap();
    let error = match RouterConfig::from_json(&config.to_string()) {
        Ok(config) => engine.configure(Time(1), &config).expect_err("the configuration is wrong"),
        Err(error) => error,
    };
    assert_eq!(engine.config(), Some(&common::switch::read(&before)));
    error.to_string()
}

/// The default switch with one value changed.
fn changed(pointer: &str, value: Value) -> Value {
    let mut switch = defaults();
    *switch.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    switch
}

fn global(pointer: &str, value: Value) -> String {
    refusal(&config(&changed(pointer, value), json!({})))
}

fn on_port(switch: Value) -> String {
    refusal(&config(&defaults(), json!({name(1): interface(switch)})))
}

fn refused(text: &str, path: &str, reason: &str) {
    assert!(text.starts_with(&format!("{path}: ")) && text.contains(reason), "{text}");
}

#[test]
fn global_figures_are_checked() {
    refused(&global("/queue_sets/0/buffers", json!([25, 25, 25, 24])), "switch.queue_sets[0].buffers", "make 99");
    refused(&global("/queue_sets/1/buffers", json!([50, 0, 25, 25])), "switch.queue_sets[1].buffers[1]", "1 to 100");
    let thresholds = "switch.queue_sets[1].thresholds[2]";
    refused(&global("/queue_sets/1/thresholds/2/t1", json!(0)), &format!("{thresholds}.t1"), "1 to 3200");
    refused(&global("/queue_sets/1/thresholds/2/maximum", json!(3201)), &format!("{thresholds}.maximum"), "1 to 3200");
    refused(&global("/queue_sets/1/thresholds/2/reserved", json!(101)), &format!("{thresholds}.reserved"), "1 to 100");
    refused(&global("/maps/cos_dscp/3", json!(64)), "switch.maps.cos_dscp[3]", "0 to 63");
    refused(&global("/maps/policed_dscp/63", json!(64)), "switch.maps.policed_dscp[63]", "0 to 63");
    refused(&global("/maps/dscp_cos", json!([0])), "switch.maps.dscp_cos", "give 64");
    refused(&global("/maps/dscp_mutation", json!({"M": [1]})), "switch.maps.dscp_mutation.M", "give 64");
    refused(&global("/maps/dscp_output_q/46", json!([5, 1])), "switch.maps.dscp_output_q[46][0]", "1 to 4");
    refused(&global("/maps/dscp_output_q/46", json!([1, 4])), "switch.maps.dscp_output_q[46][1]", "1 to 3");
    refused(&global("/maps/cos_input_q/0", json!([3, 1])), "switch.maps.cos_input_q[0][0]", "1 to 2");
    refused(&global("/input/buffers", json!([90, 11])), "switch.input.buffers", "make 101");
    refused(&global("/input/priority/bandwidth", json!(41)), "switch.input.priority.bandwidth", "0 to 40");
    let policer = json!({"A": {"rate_bps": 7_999, "burst_bytes": 8_000, "exceed": "drop"}});
    refused(&global("/aggregate_policers", policer), "switch.aggregate_policers.A.rate_bps", "8000");
    assert!(global("/queue_sets", json!([])).contains("switch.queue_sets"));
    assert!(global("/input", json!({"bandwith": 1})).contains("bandwith"));
}

#[test]
fn port_figures_are_checked() {
    let at = |field: &str| format!("interfaces.{}.switch.{field}", name(1));
    refused(&on_port(json!({"share": [0, 1, 1, 1]})), &at("share[0]"), "1 to 255");
    refused(&on_port(json!({"shape": [0, 65_536, 0, 0]})), &at("shape[1]"), "0 to 65535");
    for limit in [0, 9, 91, 99, 101] {
        refused(&on_port(json!({"limit": limit})), &at("limit"), "10 to 90");
    }
    refused(&on_port(json!({"queue_set": 3})), &at("queue_set"), "no queue-set 3");
    refused(&on_port(json!({"dscp_mutation": "M"})), &at("dscp_mutation"), "no mutation map \"M\"");
    refused(&on_port(json!({"default_cos": 8})), &at("default_cos"), "0 to 7");
    refused(&on_port(json!({"switchport": {"mode": "access", "vlan": 4095}})), &at("switchport.vlan"), "1 to 4094");
    refused(&on_port(json!({"speed_bps": 10_000_000_000u64})), &at("speed_bps"), "1000000000");
    assert!(on_port(json!({"trust": "device"})).contains("trust"));
    let router =
        json!({"format": 1, "router": "R1", "generation": "classic", "interfaces": {name(1): interface(json!({}))}});
    refused(&refusal(&router), &format!("interfaces.{}.switch", name(1)), "only a switch");
}

#[test]
fn policies_are_checked() {
    let with = |class: Value, port: Value, policers: Value| {
        let mut class = class;
        class["name"] = json!("class-default");
        let mut config = config(&changed("/aggregate_policers", policers), json!({name(1): port}));
        config["policy_maps"] = json!({"P": {"classes": [class]}});
        config
    };
    let input = |switch: Value| {
        let mut port = interface(switch);
        port["service_policy_input"] = json!("P");
        port
    };
    let class = |class: Value| refusal(&with(class, input(json!({})), json!({})));
    let trusting = refusal(&with(json!({}), input(json!({"trust": "dscp"})), json!({})));
    refused(&trusting, &format!("interfaces.{}.service_policy_input", name(1)), "one of the two");
    let path = |field: &str| format!("policy_maps.P.classes[0].{field}");
    refused(&class(json!({"police_aggregate": "A"})), &path("police_aggregate"), "no aggregate policer \"A\"");
    refused(&class(json!({"shape": {"mode": "average", "rate": {"bps": 64_000}}})), &path("shape"), "no such action");
    refused(&class(json!({"trust": "cos", "set": [{"field": "dscp", "value": 1}]})), &path("trust"), "one of the two");
    refused(&class(json!({"set": [{"field": "cos", "value": 1}]})), &path("set[0].field"), "code point");
    refused(&class(json!({"police": {"cir": {"bps": 64_000}}})), &path("police.bc"), "burst in bytes");
    refused(
        &class(json!({"police": {"cir": {"bps": 64_000}, "bc": {"bytes": 7_999}}})),
        &path("police.bc.bytes"),
        "8000 to 1000000",
    );
    let marked = json!({"cir": {"bps": 64_000}, "bc": {"bytes": 8_000},
        "exceed": [{"action": "set-dscp-transmit", "value": 0}]});
    refused(&class(json!({"police": marked})), &path("police.exceed"), "policed-dscp-transmit");
    let mut port = interface(json!({}));
    port["service_policy_output"] = json!("P");
    let output = refusal(&with(json!({}), port, json!({})));
    refused(&output, &format!("interfaces.{}.service_policy_output", name(1)), "none");
    // An aggregate policer belongs to one policy-map.
    let policers = json!({"A": {"rate_bps": 8_000, "burst_bytes": 8_000, "exceed": "policed-dscp-transmit"}});
    let mut two = with(json!({"police_aggregate": "A"}), interface(json!({})), policers);
    two["policy_maps"]["Q"] = two["policy_maps"]["P"].clone();
    refused(&refusal(&two), "policy_maps.Q.classes[0].police_aggregate", "used by policy-map \"P\"");
    // What only a switch has is refused on a router.
    let mut router = with(json!({"trust": "dscp"}), input(Value::Null), json!({}));
    router["switch"] = Value::Null;
    refused(&refusal(&router), &path("trust"), "only a switch");
}

/// A port has 63 policers.
#[test]
fn policers_of_a_port_are_counted() {
    for (policers, fits) in [(63, true), (64, false)] {
        let police = json!({"cir": {"bps": 64_000}, "bc": {"bytes": 8_000}});
        let names = || (0..policers).map(|number| format!("m{number}"));
        let classes: Vec<_> = names().map(|name| json!({"name": name, "police": police})).collect();
        let mut port = interface(json!({}));
        port["service_policy_input"] = json!("P");
        let mut config = config(&defaults(), json!({name(1): port}));
        config["policy_maps"] = json!({"P": {"classes": classes}});
        let dscp = |number: usize| json!({"match": "all", "criteria": [{"type": "dscp", "values": [number % 64]}]});
        config["class_maps"] = names().enumerate().map(|(number, name)| (name, dscp(number))).collect();
        if fits {
            let mut engine: Engine<u64> = Engine::new(&ports(2), Time(0)).unwrap();
            engine.configure(Time(0), &common::switch::read(&config)).unwrap();
        } else {
            let path = format!("interfaces.{}.service_policy_input", name(1));
            refused(&refusal(&config), &path, "64 policers: a port has at most 63");
        }
    }
}
