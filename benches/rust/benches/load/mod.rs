//! Measured load of the benchmarks: a saturated port, and packets of many flows through it.

pub mod switch;

use std::net::Ipv4Addr;

use qos_core::frame::parse;
use qos_core::wire::Framing;
use qos_core::{Descriptor, Engine, Output, PortId, PortsConfig, RouterConfig, Time};
use serde_json::{json, Value};

/// Packets of one measured pass.
pub const PACKETS: usize = 20_000;

const PORT: PortId = PortId(0);

/// Address of the first flow's source, 10.0.0.0.
const FIRST_SOURCE: u32 = 0x0a00_0000;

/// A port with its queues full, and the packets to come.
pub struct Load {
    engine: Engine<u32>,
    outputs: Vec<Output<u32>>,
    descriptors: Vec<Descriptor>,
    now: u64,
    gap: u64,
}

/// Configuration of the port.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Fifo,
    Policer,
    ClassicShaper,
    HqfShaper,
    FairQueue,
    WeightedFair,
    /// Number of classes, all with waiting packets.
    Hqf(u16),
    /// The same in the classic generation.
    Classic(u16),
    /// Like the first, but each class is matched by an access list.
    HqfAccessLists(u16),
}

impl Kind {
    /// Number of classes in addition to class-default, and the generation if these are measured.
    fn many(self) -> Option<(&'static str, u16)> {
        match self {
            Kind::Hqf(classes) | Kind::HqfAccessLists(classes) => Some(("hqf", classes)),
            Kind::Classic(classes) => Some(("classic", classes)),
            _ => None,
        }
    }

    fn classes(self) -> (&'static str, Value) {
        let shape = json!({"mode": "average", "rate": {"bps": 50_000_000}});
        let queues = json!({"queues": 4096});
        match self {
            Kind::Fifo => ("classic", json!({})),
            Kind::Policer => (
                "classic",
                json!({"police": {"cir": {"bps": 50_000_000}, "exceed": [{"action": "drop"}],
                    "violate": [{"action": "drop"}]}}),
            ),
            Kind::ClassicShaper => ("classic", json!({"shape": shape})),
            Kind::HqfShaper => ("hqf", json!({"shape": shape})),
            Kind::FairQueue => ("hqf", json!({"fair_queue": queues})),
            Kind::WeightedFair => ("classic", json!({"fair_queue": queues})),
            Kind::Hqf(_) | Kind::Classic(_) | Kind::HqfAccessLists(_) => ("hqf", json!({})),
        }
    }
}

impl Load {
    /// A port of 100 Mb/s that is offered 150 Mb/s in packets of `flows` flows, in its steady state.
    pub fn new(kind: Kind, flows: u32) -> Load {
        let ports = json!({"ports": {"Out": {"inside": "i", "wire": "w", "paced_by_peer": false,
            "link": {"rate_bps": 100_000_000, "framing": "ethernet"}}}});
        let (generation, mut class) = kind.classes();
        class["name"] = json!("class-default");
        let mut classes = vec![class];
        let (mut class_maps, mut access_lists) = (json!({}), json!({}));
        let (generation, many) = kind.many().unwrap_or((generation, 0));
        for number in 1..=many {
            let name = format!("c{number}");
            let criterion = match kind {
                Kind::HqfAccessLists(_) => json!({"type": "access_group", "name": name}),
                _ => json!({"type": "qos_group", "value": number}),
            };
            class_maps[&name] = json!({"match": "all", "criteria": [criterion]});
            let source = json!({"address": Ipv4Addr::from(FIRST_SOURCE + u32::from(number)), "wildcard": "0.0.0.0"});
            access_lists[&name] = json!([{"action": "permit", "protocol": 17, "source": source,
                "destination": {"address": "0.0.0.0", "wildcard": "255.255.255.255"}}]);
            classes.push(json!({"name": name, "bandwidth": {"kbps": 70_000 / u32::from(many)}}));
        }
        let config = json!({"format": 1, "router": "R1", "generation": generation,
            "access_lists": access_lists, "class_maps": class_maps, "policy_maps": {"P": {"classes": classes}},
            "interfaces": {"Out": {"enabled": true, "bandwidth_kbps": 100_000, "service_policy_output": "P"}}});
        let mut engine = Engine::new(&PortsConfig::from_json(&ports.to_string()).unwrap(), Time(0)).unwrap();
        engine.configure(Time(0), &RouterConfig::from_json(&config.to_string()).unwrap()).unwrap();
        let descriptor = |flow: u32| Descriptor {
            qos_group: (flow % (u32::from(many) + 1)) as u16,
            ..parse(&frame(flow, 700), Framing::Ethernet)
        };
        let mut load = Load {
            engine,
            outputs: Vec::with_capacity(4 * PACKETS),
            descriptors: (0..flows.max(u32::from(many) + 1)).map(descriptor).collect(),
            now: 0,
            gap: 738 * 8 * 10 * 2 / 3,
        };
        // Run until every queue is full.
        for _ in 0..(2 * flows as usize + 200 * usize::from(many)).div_ceil(PACKETS).max(2) {
            load.pass();
        }
        load
    }

    /// Offers [`PACKETS`] packets, one flow after the other, and collects the output.
    pub fn pass(&mut self) -> usize {
        self.outputs.clear();
        for packet in 0..PACKETS {
            let flow = (self.now / self.gap) as usize % self.descriptors.len();
            self.engine.transmit(Time(self.now), PORT, self.descriptors[flow], packet as u32);
            self.engine.poll(Time(self.now), &mut self.outputs);
            self.now += self.gap;
        }
        self.outputs.len()
    }
}

/// An Ethernet frame with a UDP packet of a flow.
pub fn frame(flow: u32, ip_len: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + ip_len];
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&(ip_len as u16).to_be_bytes());
    frame[23] = 17;
    frame[26..30].copy_from_slice(&(FIRST_SOURCE + flow).to_be_bytes());
    frame[30..34].copy_from_slice(&[10, 0, 20, 10]);
    frame[36..38].copy_from_slice(&5001u16.to_be_bytes());
    frame
}
