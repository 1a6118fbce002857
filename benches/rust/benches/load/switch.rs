//! A switch with all its ports saturated.

use qos_core::frame::parse;
use qos_core::wire::Framing;
use qos_core::Label;
use qos_core::{Descriptor, Engine, Output, PortId, PortsConfig, RouterConfig, Time};
use serde_json::{json, Map, Value};

use super::{frame, PACKETS};

/// Ports with their queues full, and the packets to come.
pub struct SwitchLoad {
    engine: Engine<u32>,
    outputs: Vec<Output<u32>>,
    descriptors: [Descriptor; 2],
    now: u64,
    gap: u64,
    ports: u64,
}

fn name(number: usize) -> String {
    format!("GigabitEthernet1/0/{number:02}")
}

/// The global part, with queue-set thresholds.
fn switch(thresholds: &Value) -> Value {
    let output = |dscp: usize| if (40..48).contains(&dscp) { (1, 1) } else { (2, 1) };
    let pairs = |count| vec![(1, 1); count];
    let set = json!({"buffers": [25, 25, 25, 25], "thresholds": vec![thresholds; 4]});
    json!({"qos": true, "rewrite_ip_dscp": true,
        "maps": {"cos_dscp": [0, 8, 16, 24, 32, 40, 48, 56], "ip_prec_dscp": [0, 8, 16, 24, 32, 40, 48, 56],
            "dscp_cos": (0..64).map(|dscp| dscp >> 3).collect::<Vec<u8>>(),
            "policed_dscp": (0..64).collect::<Vec<u8>>(),
            "cos_output_q": pairs(8), "cos_input_q": pairs(8), "dscp_input_q": pairs(64),
            "dscp_output_q": (0..64).map(output).collect::<Vec<_>>()},
        "queue_sets": [set, set],
        "input": {"buffers": [90, 10], "bandwidth": [4, 4], "thresholds": [[100, 100], [100, 100]],
            "priority": {"queue": 2, "bandwidth": 10}}})
}

impl SwitchLoad {
    /// Number of ports of 100 Mb/s with `share 30 70 1 1`, each offered 150 Mb/s in two of its queues, in their steady
    /// state. With `short` memory nearly every cell is common, and they do not suffice.
    pub fn new(ports: usize, short: bool) -> SwitchLoad {
        let thresholds = match short {
            false => json!({"t1": 100, "t2": 100, "reserved": 50, "maximum": 400}),
            true => json!({"t1": 400, "t2": 400, "reserved": 1, "maximum": 400}),
        };
        let wiring: Map<String, Value> = (1..=ports)
            .map(|number| {
                let link = json!({"rate_bps": 100_000_000, "framing": "ethernet"});
                (name(number), json!({"inside": "i", "wire": "w", "paced_by_peer": true, "link": link}))
            })
            .collect();
        let interfaces: Map<String, Value> = (1..=ports)
            .map(|number| {
                let port = json!({"shape": [0, 0, 0, 0], "share": [30, 70, 1, 1]});
                (name(number), json!({"enabled": true, "bandwidth_kbps": 100_000, "switch": port}))
            })
            .collect();
        let config = json!({"format": 1, "router": "S1", "generation": "classic", "switch": switch(&thresholds),
            "interfaces": interfaces});
        let wiring = json!({"ports": wiring}).to_string();
        let mut engine = Engine::new(&PortsConfig::from_json(&wiring).unwrap(), Time(0)).unwrap();
        engine.configure(Time(0), &RouterConfig::from_json(&config.to_string()).unwrap()).unwrap();
        let descriptor = |dscp| Descriptor {
            label: Some(Label { dscp, ..Label::default() }),
            ..parse(&frame(u32::from(dscp), 700), Framing::Ethernet)
        };
        let mut load = SwitchLoad {
            engine,
            outputs: Vec::with_capacity(4 * PACKETS),
            descriptors: [descriptor(46), descriptor(0)],
            now: 0,
            gap: 738 * 8 * 10 * 2 / 3 / ports as u64,
            ports: ports as u64,
        };
        load.pass();
        load.pass();
        load
    }

    /// Offers [`PACKETS`] packets, one port after the other, and collects the output.
    pub fn pass(&mut self) -> usize {
        self.outputs.clear();
        for packet in 0..PACKETS as u64 {
            let port = PortId((packet % self.ports) as u16);
            let descriptor = self.descriptors[(packet / self.ports % 2) as usize];
            self.engine.transmit(Time(self.now), port, descriptor, packet as u32);
            self.engine.poll(Time(self.now), &mut self.outputs);
            self.now += self.gap;
        }
        self.outputs.len()
    }
}
