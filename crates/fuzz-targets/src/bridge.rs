//! Any bytes as frames at a switch: none returns to its source, and only the tag of a tagged frame decides its VLAN.

use std::sync::LazyLock;

use qos_core::{PortId, RouterConfig, Time};
use qos_router::bridge::{retag, Bridge, Tag};

use serde_json::json;

use crate::decisions::Input;

const PORTS: [&str; 3] = ["FastEthernet0/1", "FastEthernet0/2", "FastEthernet0/3"];
/// Complete configuration of a switch, whose ports this target replaces.
const CONFIG: &str = include_str!("../../../fuzz/corpus/config/switch.json");

static SWITCH: LazyLock<RouterConfig> = LazyLock::new(|| {
    let mut config: serde_json::Value = serde_json::from_str(CONFIG).expect("the corpus is well-formed");
    let ports = PORTS.into_iter().zip([("access", 10), ("trunk", 10), ("trunk", 20)]);
    let port = |(name, (mode, vlan)): (&str, (&str, u16))| {
        let switch = json!({"switchport": {"mode": mode, "vlan": vlan}});
        (name.to_owned(), json!({"enabled": true, "bandwidth_kbps": 100_000, "switch": switch}))
    };
    config["interfaces"] = ports.map(port).collect();
    RouterConfig::from_json(&config.to_string()).expect("the configuration is well-formed")
});

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let mut bridge = Bridge::default();
    bridge.configure(&SWITCH, PORTS.into_iter());
    let mut input = Input(bytes);
    let (mut now, mut sent) = (0, Vec::new());
    while !input.is_empty() {
        now += u64::from(input.word()) << 24;
        let port = PortId(u16::from(input.byte()) % PORTS.len() as u16);
        let length = usize::from(input.byte());
        let frame = input.bytes(length);
        bridge.forward(Time(now), port, frame, |to, tag| {
            assert_ne!(to, port);
            retag(frame, tag, &mut sent);
            assert_eq!(sent[..12], frame[..12]);
            if let Some(tag) = tag {
                assert_eq!(Tag::of(&sent), Some(tag));
            }
            let behind = |frame: &[u8]| frame[if Tag::of(frame).is_some() { 16 } else { 12 }..].to_vec();
            let plain = if tag.is_some() { behind(&sent) } else { sent[12..].to_vec() };
            assert_eq!(plain, behind(frame));
        });
    }
}
