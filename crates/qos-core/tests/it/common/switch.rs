//! Configurations of a switch.

use qos_core::config::{
    Generation, InputPriorityConfig, InputQueuesConfig, InterfaceConfig, LinkConfig, MapsConfig, PortConfig,
    QueueSetConfig, QueueThresholds, SwitchConfig, SwitchPortConfig,
};
use qos_core::wire::Framing;
use qos_core::{Engine, PortsConfig, RouterConfig, Time};

/// The platform's defaults, with QoS on.
pub fn defaults() -> SwitchConfig {
    let output = |dscp: u8| match dscp {
        0..=15 => [2, 1],
        16..=31 => [3, 1],
        40..=47 => [1, 1],
        _ => [4, 1],
    };
    let input = |dscp: u8| if (40..48).contains(&dscp) { [2, 1] } else { [1, 1] };
    let thresholds = |t: u32| QueueThresholds { t1: t, t2: t, reserved: 50, maximum: 400 };
    let set = QueueSetConfig {
        buffers: [25; 4],
        thresholds: [thresholds(100), thresholds(200), thresholds(100), thresholds(100)],
    };
    SwitchConfig {
        qos: true,
        rewrite_ip_dscp: true,
        maps: MapsConfig {
            cos_dscp: [0, 8, 16, 24, 32, 40, 48, 56],
            ip_prec_dscp: [0, 8, 16, 24, 32, 40, 48, 56],
            dscp_cos: (0..64).map(|dscp| dscp >> 3).collect(),
            policed_dscp: (0..64).collect(),
            dscp_mutation: [].into(),
            cos_output_q: [[2, 1], [2, 1], [3, 1], [3, 1], [4, 1], [1, 1], [4, 1], [4, 1]],
            dscp_output_q: (0..64).map(output).collect(),
            cos_input_q: [[1, 1], [1, 1], [1, 1], [1, 1], [1, 1], [2, 1], [1, 1], [1, 1]],
            dscp_input_q: (0..64).map(input).collect(),
        },
        queue_sets: [set.clone(), set],
        input: InputQueuesConfig {
            buffers: [90, 10],
            bandwidth: [4, 4],
            thresholds: [[100, 100], [100, 100]],
            priority: InputPriorityConfig { queue: 2, bandwidth: 10 },
        },
        aggregate_policers: [].into(),
        vlan_policies: [].into(),
    }
}

/// Name of the port with this number, from 1.
pub fn name(number: usize) -> String {
    // Two-digit numbers, so that names sort like numbers.
    format!("GigabitEthernet1/0/{number:02}")
}

/// Wiring of this many ports of 1 Gb/s whose senders keep the link's rate.
pub fn ports(count: usize) -> PortsConfig {
    let port = PortConfig { paced_by_peer: true, ..PortConfig::new(LinkConfig::new(1_000_000_000, Framing::Ethernet)) };
    (1..=count).fold(PortsConfig::new(), |ports, number| ports.port(name(number), port.clone()))
}

/// A switch of so many ports with a configuration in force.
pub fn started<P>(count: usize, config: &RouterConfig) -> Engine<P> {
    let mut engine = Engine::new(&ports(count), Time(0)).unwrap();
    engine.configure(Time(0), config).unwrap();
    engine
}

/// An interface with the given switch part.
pub fn interface(switch: SwitchPortConfig) -> InterfaceConfig {
    InterfaceConfig { load_interval_s: 30, switch: Some(switch), ..InterfaceConfig::new(1_000_000) }
}

/// A configuration without interfaces.
pub fn config(switch: SwitchConfig) -> RouterConfig {
    RouterConfig { switch: Some(switch), ..RouterConfig::new("S1", Generation::Classic) }
}

/// The switch part of an untrusted port, with the platform's defaults.
pub fn port() -> SwitchPortConfig {
    SwitchPortConfig::default()
}
