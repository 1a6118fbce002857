//! What an access list or an interface may not ask for is refused with the path of what is wrong; what is just within is
//! taken.

use crate::common::{self, configuration, interface};
use qos_core::wire::Framing::Ethernet;
use qos_core::{Engine, RouterConfig, Time};
use serde_json::{json, Value};

/// The path of what is refused in a configuration that was changed so, with the reason.
fn refused(change: impl FnOnce(&mut Value)) -> Option<(String, String)> {
    let mut config = serde_json::to_value(configuration("hqf", json!({}), interface(2_000, None, None))).unwrap();
    change(&mut config);
    let mut engine: Engine<()> = common::engine(100_000_000, Ethernet);
    let error = engine.configure(Time(0), &RouterConfig::from_json(&config.to_string()).unwrap()).err()?;
    assert!(engine.config().is_none(), "a refused configuration changes nothing");
    Some((error.path, error.message))
}

fn entry(protocol: Option<u8>, more: &Value) -> Option<(String, String)> {
    let any = json!({"address": "0.0.0.0", "wildcard": "255.255.255.255"});
    let mut entry = json!({"action": "permit", "protocol": protocol, "source": any, "destination": any});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    refused(|config| config["access_lists"]["asked"] = json!([entry]))
}

fn taken(protocol: Option<u8>, more: Value) {
    assert_eq!(entry(protocol, &more), None, "{more}");
}

fn not_taken(protocol: Option<u8>, more: Value, field: &str, reason: &str) {
    let (path, message) = entry(protocol, &more).unwrap_or_else(|| panic!("accepted: {more}"));
    assert_eq!(path, format!("access_lists.asked[0].{field}"), "{message}");
    assert!(message.contains(reason), "{message}");
}

#[test]
fn figures_of_an_entry_are_checked() {
    taken(None, json!({"dscp": 63}));
    not_taken(None, json!({"dscp": 64}), "dscp", "64 is out of range: give 0 to 63");
    taken(None, json!({"precedence": 7}));
    not_taken(None, json!({"precedence": 8}), "precedence", "8 is out of range: give 0 to 7");
}

/// Each field belongs to some protocols, and to no entry of any protocol.
#[test]
fn fields_of_an_entry_go_with_its_protocol() {
    let port = json!({"op": "eq", "ports": [80]});
    let fields: [(&str, Value, &[u8]); 4] = [
        ("source_port", port.clone(), &[6, 17]),
        ("destination_port", port, &[6, 17]),
        ("established", json!(true), &[6]),
        ("icmp_type", json!(3), &[1]),
    ];
    for (field, value, protocols) in fields {
        for protocol in [None, Some(1), Some(6), Some(17), Some(47), Some(58)] {
            if protocol.is_some_and(|protocol| protocols.contains(&protocol)) {
                taken(protocol, json!({field: value}));
            } else {
                not_taken(protocol, json!({field: value}), field, "set the protocol accordingly");
            }
        }
    }
    taken(Some(1), json!({"icmp_type": 3, "icmp_code": 1}));
    not_taken(Some(1), json!({"icmp_code": 1}), "icmp_code", "a code belongs to a type");
    not_taken(Some(17), json!({"icmp_type": 3, "icmp_code": 1}), "icmp_type", "only ICMP (1) packets have it");
    taken(Some(17), json!({"fragments": true}));
    for field in ["source_port", "destination_port"] {
        let both = json!({"fragments": true, field: {"op": "eq", "ports": [80]}});
        not_taken(Some(17), both, "fragments", "have no ports");
    }
}

#[test]
fn ports_go_with_their_operator() {
    for (op, ports, fits) in [
        ("eq", json!([]), false),
        ("eq", json!([80]), true),
        ("eq", json!([80, 443]), true),
        ("neq", json!([]), false),
        ("neq", json!([80]), true),
        ("gt", json!([]), false),
        ("gt", json!([80]), true),
        ("gt", json!([80, 81]), false),
        ("lt", json!([]), false),
        ("lt", json!([80]), true),
        ("lt", json!([80, 81]), false),
        ("range", json!([]), false),
        ("range", json!([80]), false),
        ("range", json!([80, 79]), false),
        ("range", json!([80, 80]), true),
        ("range", json!([80, 81]), true),
        ("range", json!([80, 81, 82]), false),
    ] {
        for field in ["source_port", "destination_port"] {
            let asked = json!({field: {"op": op, "ports": ports}});
            if fits {
                taken(Some(6), asked);
            } else {
                not_taken(Some(6), asked, &format!("{field}.ports"), "eq and neq take ports, gt and lt one");
            }
        }
    }
}

/// A segment size that TCP may be held to: 500 to 1460 bytes, of an interface and of each subinterface.
#[test]
fn segment_sizes_are_checked() {
    for (size, fits) in [(499, false), (500, true), (1_460, true), (1_461, false)] {
        let own = refused(|config| config["interfaces"]["Out"]["tcp_adjust_mss"] = json!(size));
        assert_eq!(own.map(|(path, _)| path), (!fits).then(|| "interfaces.Out.tcp_adjust_mss".to_owned()), "{size}");
        let below = refused(|config| {
            let subinterface = json!({"enabled": true, "vlan": 10, "bandwidth_kbps": 2_000, "tcp_adjust_mss": size});
            config["interfaces"]["Out"]["subinterfaces"] = json!({"Out.10": subinterface});
        });
        let path = "interfaces.Out.subinterfaces.Out.10.tcp_adjust_mss";
        assert_eq!(below.map(|(path, _)| path), (!fits).then(|| path.to_owned()), "{size}");
    }
}
