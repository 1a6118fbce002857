//! Any text as a configuration: it is refused, or it takes effect, is printed unchanged, and packets pass.

use qos_core::{frame, Duration, Engine, Output, PortId, PortsConfig, RouterConfig, Time};

const PORTS: &str = r#"{"ports": {
    "FastEthernet0/1": {"inside": "a", "wire": "b", "link": {"rate_bps": 100000000, "framing": "ethernet"},
        "paced_by_peer": false},
    "Serial0/1/0": {"inside": "c", "wire": "d", "link": {"rate_bps": 512000, "framing": "ppp"},
        "paced_by_peer": true}}}"#;

/// Ports of a switch, which has only Ethernet links.
const SWITCH_PORTS: &str = r#"{"ports": {
    "FastEthernet0/0": {"inside": "a", "wire": "b", "link": {"rate_bps": 100000000, "framing": "ethernet"},
        "paced_by_peer": false},
    "FastEthernet0/1": {"inside": "c", "wire": "d", "link": {"rate_bps": 100000000, "framing": "ethernet"},
        "paced_by_peer": true}}}"#;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = PortsConfig::from_json(text);
    let Ok(config) = RouterConfig::from_json(text) else { return };
    let ports = if config.switch.is_some() { SWITCH_PORTS } else { PORTS };
    let mut engine = Engine::new(&PortsConfig::from_json(ports).unwrap(), Time(0)).unwrap();
    if engine.configure(Time(0), &config).is_err() {
        assert!(engine.config().is_none());
        return;
    }
    let written = serde_json::to_string(&config).unwrap();
    assert_eq!(RouterConfig::from_json(&written).unwrap(), config);
    let mut frame = [0; 114];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[23] = 17;
    let mut outputs = Vec::new();
    for step in 0..64u64 {
        frame[37] = step as u8;
        let port = PortId((step % 2) as u16);
        let descriptor = frame::parse(&frame, engine.framing(port));
        engine.receive(Time(step), port, descriptor, ());
        engine.transmit(Time(step), port, descriptor, ());
    }
    engine.poll_inside(Time(1_000_000), Duration::ZERO, &mut outputs);
    for output in outputs.drain(..) {
        // With its label from the switch.
        if let Output::Departure(inside) = output {
            engine.transmit(inside.time, PortId(1 - inside.port.0), inside.descriptor, ());
        }
    }
    engine.poll(Time(1_000_000_000), &mut outputs);
    engine.audit().unwrap();
    engine.counters(Time(1_000_000_000), None);
    engine.resolve();
}
