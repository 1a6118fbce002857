//! Switch configurations that are refused, with the path of the error.

use crate::common::build::*;
use crate::common::switch::{config, defaults, interface, name, port, started};
use qos_core::{Engine, Time};
use serde_json::{json, Value};

/// The path and text of the refusal; the engine must still have what it had.
fn refusal(config: &RouterConfig) -> String {
    let before = self::config(defaults());
    let mut engine: Engine<u64> = started(2, &before);
    let error = engine.configure(Time(1), config).expect_err("the configuration is wrong");
    assert_eq!(engine.config(), Some(&before));
    error.to_string()
}

/// The refusal of the default switch with one change.
fn global(change: impl FnOnce(&mut SwitchConfig)) -> String {
    let mut switch = defaults();
    change(&mut switch);
    refusal(&config(switch))
}

fn on_port(switch: SwitchPortConfig) -> String {
    refusal(&config(defaults()).interface(name(1), interface(switch)))
}

/// Error of a document with this value in place of the default one.
fn misreading_of(pointer: &str, value: Value) -> String {
    let mut document = serde_json::to_value(config(defaults()).interface("Gi1/0/1", interface(port()))).unwrap();
    *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    RouterConfig::from_json(&document.to_string()).unwrap_err().to_string()
}

fn refusal_of(text: &str, path: &str, reason: &str) {
    assert!(text.starts_with(&format!("{path}: ")) && text.contains(reason), "{text}");
}

#[test]
fn global_values_are_checked() {
    let set = |number: usize, change: fn(&mut QueueSetConfig)| global(|switch| change(&mut switch.queue_sets[number]));
    refusal_of(&set(0, |set| set.buffers = [25, 25, 25, 24]), "switch.queue_sets[0].buffers", "add up to 99");
    refusal_of(&set(1, |set| set.buffers = [50, 0, 25, 25]), "switch.queue_sets[1].buffers[1]", "1 to 100");
    let thresholds = "switch.queue_sets[1].thresholds[2]";
    refusal_of(&set(1, |set| set.thresholds[2].t1 = 0), &format!("{thresholds}.t1"), "1 to 3200");
    refusal_of(&set(1, |set| set.thresholds[2].maximum = 3_201), &format!("{thresholds}.maximum"), "1 to 3200");
    refusal_of(&set(1, |set| set.thresholds[2].reserved = 101), &format!("{thresholds}.reserved"), "1 to 100");
    let map = |change: fn(&mut MapsConfig)| global(|switch| change(&mut switch.maps));
    refusal_of(&map(|maps| maps.cos_dscp[3] = 64), "switch.maps.cos_dscp[3]", "0 to 63");
    refusal_of(&map(|maps| maps.policed_dscp[63] = 64), "switch.maps.policed_dscp[63]", "0 to 63");
    refusal_of(&map(|maps| maps.dscp_cos = vec![0]), "switch.maps.dscp_cos", "expected 64");
    let short = |maps: &mut MapsConfig| maps.dscp_mutation = [("M".to_owned(), vec![1])].into();
    refusal_of(&map(short), "switch.maps.dscp_mutation.M", "expected 64");
    refusal_of(&map(|maps| maps.dscp_output_q[46] = [5, 1]), "switch.maps.dscp_output_q[46][0]", "1 to 4");
    refusal_of(&map(|maps| maps.dscp_output_q[46] = [1, 4]), "switch.maps.dscp_output_q[46][1]", "1 to 3");
    refusal_of(&map(|maps| maps.cos_input_q[0] = [3, 1]), "switch.maps.cos_input_q[0][0]", "1 to 2");
    refusal_of(&global(|switch| switch.input.buffers = [90, 11]), "switch.input.buffers", "add up to 101");
    refusal_of(&global(|switch| switch.input.priority.bandwidth = 41), "switch.input.priority.bandwidth", "0 to 40");
    let slow = |switch: &mut SwitchConfig| switch.aggregate_policers = policer_a(7_999, ExceedAction::Drop);
    refusal_of(&global(slow), "switch.aggregate_policers.A.rate_bps", "8000");
    assert!(misreading_of("/switch/queue_sets", json!([])).contains("switch.queue_sets"));
    assert!(misreading_of("/switch/input", json!({"bandwith": 1})).contains("bandwith"));
}

/// An aggregate policer `A` with a burst of 8000 bytes.
fn policer_a(rate_bps: u64, exceed: ExceedAction) -> std::collections::BTreeMap<String, AggregatePolicerConfig> {
    [("A".to_owned(), AggregatePolicerConfig { rate_bps, burst_bytes: 8_000, exceed })].into()
}

#[test]
fn port_values_are_checked() {
    let at = |field: &str| format!("interfaces.{}.switch.{field}", name(1));
    let no_vlan = Some(SwitchportConfig { mode: SwitchportMode::Access, vlan: 4_095 });
    for (switch, field, reason) in [
        (SwitchPortConfig { share: [0, 1, 1, 1], ..port() }, "share[0]", "1 to 255"),
        (SwitchPortConfig { shape: [0, 65_536, 0, 0], ..port() }, "shape[1]", "0 to 65535"),
        (SwitchPortConfig { queue_set: 3, ..port() }, "queue_set", "no queue-set 3"),
        (SwitchPortConfig { dscp_mutation: Some("M".to_owned()), ..port() }, "dscp_mutation", "no mutation map \"M\""),
        (SwitchPortConfig { default_cos: 8, ..port() }, "default_cos", "0 to 7"),
        (SwitchPortConfig { switchport: no_vlan, ..port() }, "switchport.vlan", "1 to 4094"),
        (SwitchPortConfig { speed_bps: Some(10_000_000_000), ..port() }, "speed_bps", "1000000000"),
    ] {
        refusal_of(&on_port(switch), &at(field), reason);
    }
    for limit in [0, 9, 91, 99, 101] {
        refusal_of(&on_port(SwitchPortConfig { limit, ..port() }), &at("limit"), "10 to 90");
    }
    assert!(misreading_of("/interfaces/Gi1~10~11/switch/trust", json!("device")).contains("trust"));
    let router = RouterConfig::new("R1", Classic).interface(name(1), interface(port()));
    refusal_of(&refusal(&router), &format!("interfaces.{}.switch", name(1)), "only a switch");
}

#[test]
fn policies_are_checked() {
    let with = |class: PolicyClass, port: InterfaceConfig| {
        config(defaults()).policy_map("P", vec![class]).interface(name(1), port)
    };
    let own = || interface(port());
    let in_class = |class: PolicyClass| refusal(&with(class, own().input("P")));
    let trusting = interface(SwitchPortConfig { trust: Some(Trust::Dscp), ..port() });
    let both = refusal(&with(class_default(), trusting.input("P")));
    refusal_of(&both, &format!("interfaces.{}.service_policy_input", name(1)), "one of the two");
    let marked = police(64_000).bytes(8_000).exceed(PoliceAction::SetDscpTransmit { value: 0 });
    for (class, field, reason) in [
        (class_default().police_aggregate("A"), "police_aggregate", "no aggregate policer \"A\""),
        (class_default().shape_bps(64_000), "shape", "no such action"),
        (class_default().trust(Trust::Cos).set(SetField::Dscp, 1), "trust", "one of the two"),
        (class_default().set(SetField::Cos, 1), "set[0].field", "DSCP or IP precedence only"),
        (class_default().police_bps(64_000), "police.bc", "burst in bytes"),
        (class_default().police(police(64_000).bytes(7_999)), "police.bc.bytes", "8000 to 1000000"),
        (class_default().police(marked), "police.exceed", "policed-dscp-transmit"),
    ] {
        refusal_of(&in_class(class), &format!("policy_maps.P.classes[0].{field}"), reason);
    }
    let output = refusal(&with(class_default(), own().output("P")));
    refusal_of(&output, &format!("interfaces.{}.service_policy_output", name(1)), "does not have this key");
    // An aggregate policer belongs to one policy-map.
    let aggregate = || class_default().police_aggregate("A");
    let mut two = with(aggregate(), own()).policy_map("Q", vec![aggregate()]);
    two.switch.as_mut().unwrap().aggregate_policers = policer_a(8_000, ExceedAction::PolicedDscpTransmit);
    refusal_of(&refusal(&two), "policy_maps.Q.classes[0].police_aggregate", "used by policy-map \"P\"");
    // Keys of a switch are refused on a router.
    let mut router = with(class_default().trust(Trust::Dscp), InterfaceConfig { switch: None, ..own().input("P") });
    router.switch = None;
    refusal_of(&refusal(&router), "policy_maps.P.classes[0].trust", "only a switch");
}

/// A port has 63 policers.
#[test]
fn policers_of_a_port_are_counted() {
    for (policers, fits) in [(63, true), (64, false)] {
        let mut config = config(defaults()).interface(name(1), interface(port()).input("P"));
        let mut classes = Vec::new();
        for number in 0..policers {
            let class = class_of(&format!("m{number}")).police(police(64_000).bytes(8_000));
            config = config.class_map(&class.name, match_all(vec![dscp(&[number % 64])]));
            classes.push(class);
        }
        let config = config.policy_map("P", classes);
        if fits {
            started::<u64>(2, &config);
        } else {
            let path = format!("interfaces.{}.service_policy_input", name(1));
            refusal_of(&refusal(&config), &path, "64 policers: a port can have at most 63");
        }
    }
}
