//! What the tests share: frames, wiring, configurations.
#![allow(dead_code)]

pub mod frames;
pub mod program;
pub mod switch;

use qos_core::counters::ClassCounters;
use qos_core::wire::Framing;
use qos_core::{Descriptor, Engine, Output, PortId, PortsConfig, RouterConfig, Time};
use serde_json::{json, Value};

pub const SECOND: u64 = 1_000_000_000;
pub const MILLI: u64 = 1_000_000;

/// The port that `engine` makes.
pub const PORT: PortId = PortId(0);

/// Wiring of one port, `Out`.
pub fn ports(rate_bps: u64, framing: Framing) -> PortsConfig {
    let framing = serde_json::to_value(framing).unwrap();
    let text = json!({"ports": {"Out": {"inside": "o.in", "wire": "o",
        "link": {"rate_bps": rate_bps, "framing": framing, "delay_ns": 0}, "paced_by_peer": false}}});
    PortsConfig::from_json(&text.to_string()).unwrap()
}

pub fn engine<P>(rate_bps: u64, framing: Framing) -> Engine<P> {
    Engine::new(&ports(rate_bps, framing), Time(0)).unwrap()
}

/// A configuration with one output policy `P` of the given classes on `Out`.
pub fn with_policy(generation: &str, bandwidth_kbps: u64, classes: Value) -> RouterConfig {
    configuration(generation, json!({"P": {"classes": classes}}), interface(bandwidth_kbps, None, Some("P")))
}

pub fn interface(bandwidth_kbps: u64, input: Option<&str>, output: Option<&str>) -> Value {
    json!({"enabled": true, "bandwidth_kbps": bandwidth_kbps, "load_interval_s": 30,
        "service_policy_input": input, "service_policy_output": output})
}

pub fn configuration(generation: &str, policy_maps: Value, interface: Value) -> RouterConfig {
    let class = |kind: Value| json!({"match": "all", "criteria": [kind]});
    let mut config = json!({"format": 1, "router": "R1", "generation": generation,
        "access_lists": {"low": [{"action": "permit", "protocol": 17,
            "source": {"address": "0.0.0.0", "wildcard": "255.255.255.255"},
            "destination": {"address": "10.0.0.0", "wildcard": "0.255.255.255"},
            "destination_port": {"op": "lt", "ports": [5000]}}]},
        "class_maps": {
            "low": class(json!({"type": "access_group", "name": "low"})),
            "af": class(json!({"type": "dscp", "values": [10, 18]})),
            "udp": class(json!({"type": "protocol", "name": "udp"}))},
        "policy_maps": policy_maps,
        "interfaces": {"Out": interface}});
    // Code points, of which the first seven have precedence 0.
    for dscp in 1..10 {
        config["class_maps"][format!("c{dscp}")] = class(json!({"type": "dscp", "values": [dscp]}));
    }
    read(&config)
}

/// Gives an object the fields of another one.
pub fn extend(object: &mut Value, more: &Value) {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
}

pub fn read(config: &Value) -> RouterConfig {
    RouterConfig::from_json(&config.to_string()).unwrap()
}

/// A UDP packet of `ip_len` bytes as it counts on a link.
pub fn udp(ip_len: usize, flow: u16, framing: Framing) -> Descriptor {
    qos_core::frame::parse(&frames::udp(ip_len, 0, 40_000, 5_000 + flow), framing)
}

/// The counters of a class of the output policy on `Out`.
pub fn class<P>(engine: &mut Engine<P>, now: Time, index: usize) -> ClassCounters {
    engine.counters(now, None).interfaces["Out"].policy_output.clone().unwrap().classes[index].clone()
}

/// Packets of one kind at even distances.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub ip_len: usize,
    pub dscp: u8,
    pub flow: u16,
    pub gap_ns: u64,
}

impl Source {
    /// So many bits of IP a second.
    pub fn new(ip_len: usize, dscp: u8, flow: u16, bps: u64) -> Source {
        Source { ip_len, dscp, flow, gap_ns: ip_len as u64 * 8 * SECOND / bps }
    }

    pub fn descriptor(&self, framing: Framing) -> Descriptor {
        qos_core::frame::parse(&frames::udp(self.ip_len, self.dscp, 1, 6_000 + self.flow), framing)
    }
}

/// Offers what the sources send until `end`; the payload is the source's number.
pub fn load(engine: &mut Engine<usize>, framing: Framing, sources: &[Source], end: Time) -> Vec<Output<usize>> {
    let descriptors: Vec<_> = sources.iter().map(|source| source.descriptor(framing)).collect();
    let mut next: Vec<u64> = (0..sources.len() as u64).collect();
    let mut outputs = Vec::new();
    loop {
        let (source, at) = next.iter().enumerate().min_by_key(|(_, at)| **at).unwrap();
        let at = Time(*at);
        if at > end {
            break;
        }
        run(engine, at, &mut outputs);
        engine.transmit(at, PORT, descriptors[source], source);
        next[source] += sources[source].gap_ns;
    }
    run(engine, end, &mut outputs);
    outputs
}

/// Counted bytes that left, by source.
pub fn bytes_by_source(outputs: &[Output<usize>], sources: usize) -> Vec<u64> {
    let mut bytes = vec![0; sources];
    for (_, source, counted) in departures(outputs) {
        bytes[source] += u64::from(counted);
    }
    bytes
}

/// What left (not what was dropped).
pub fn departures<P: Copy>(outputs: &[Output<P>]) -> Vec<(Time, P, u32)> {
    let departure = |output: &Output<P>| match output {
        Output::Departure(d) => Some((d.time, d.payload, d.descriptor.counted_len)),
        Output::Dropped(_) => None,
    };
    outputs.iter().filter_map(departure).collect()
}

/// Polls at every deadline until `end`.
pub fn run<P>(engine: &mut Engine<P>, end: Time, outputs: &mut Vec<Output<P>>) {
    while let Some(deadline) = engine.next_deadline().filter(|deadline| *deadline <= end) {
        engine.poll(deadline, outputs);
    }
    engine.poll(end, outputs);
}

/// Offers packets of `ip_len` bytes at even distances of `gap_ns` until `end`, polling punctually.
pub fn offer(engine: &mut Engine<u64>, descriptor: Descriptor, gap_ns: u64, from: Time, end: Time) -> Vec<Output<u64>> {
    let mut outputs = Vec::new();
    let mut at = from.0;
    while at < end.0 {
        run(engine, Time(at), &mut outputs);
        engine.transmit(Time(at), PORT, descriptor, at);
        at += gap_ns;
    }
    run(engine, end, &mut outputs);
    outputs
}
