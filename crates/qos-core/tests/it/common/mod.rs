//! Shared parts of the tests: frames, wiring, configurations, traffic.
// The fuzz targets include this folder and use a part of it.
#![allow(dead_code, unused_imports)]

pub mod build;
pub mod frames;
pub mod program;
pub mod switch;

use build::*;
use qos_core::counters::{ClassCounters, InterfaceCounters};
use qos_core::wire::{protocol, Framing};
use qos_core::{Descriptor, Engine, Output, PortId, Time};

pub const SECOND: u64 = 1_000_000_000;
pub const MILLI: u64 = 1_000_000;

/// The port that `engine` makes.
pub const PORT: PortId = PortId(0);

/// Wiring of one port, `Out`.
pub fn ports(link: LinkConfig) -> PortsConfig {
    PortsConfig::new().port("Out", PortConfig::new(link))
}

pub fn engine<P>(rate_bps: u64, framing: Framing) -> Engine<P> {
    Engine::new(&ports(LinkConfig::new(rate_bps, framing)), Time(0)).unwrap()
}

/// The same with a configuration in force.
pub fn started<P>(rate_bps: u64, framing: Framing, config: &RouterConfig) -> Engine<P> {
    let mut engine = engine(rate_bps, framing);
    engine.configure(Time(0), config).unwrap();
    engine
}

/// A configuration with one output policy `P` of the given classes on `Out`.
pub fn with_policy(generation: Generation, bandwidth_kbps: u64, classes: Vec<PolicyClass>) -> RouterConfig {
    with_policies(generation, bandwidth_kbps, maps([("P", classes)]))
}

/// A configuration with these policy-maps, of which `P` is the output policy on `Out`.
pub fn with_policies(generation: Generation, bandwidth_kbps: u64, maps: Maps) -> RouterConfig {
    configuration(generation, maps, interface(bandwidth_kbps, None, Some("P")))
}

/// A configuration with these policy-maps and the interface `Out`. Its class-maps are `low` (UDP to ports below 5000),
/// `af`, `udp`, and `c1` to `c9` for the code points of their numbers, of which the first seven have precedence 0.
pub fn configuration(generation: Generation, policy_maps: Maps, out: InterfaceConfig) -> RouterConfig {
    let low = AccessListEntry {
        destination: address("10.0.0.0", "0.255.255.255"),
        destination_port: build::ports(PortOperator::Lt, &[5_000]),
        ..permit(Some(17))
    };
    let mut config = RouterConfig::new("R1", generation)
        .access_list("low", vec![low])
        .class_map("low", match_all(vec![access_group("low")]))
        .class_map("af", match_all(vec![dscp(&[10, 18])]))
        .class_map("udp", match_all(vec![build::protocol(ProtocolName::Udp)]))
        .interface("Out", out);
    for value in 1..10 {
        config = config.class_map(format!("c{value}"), match_all(vec![dscp(&[value])]));
    }
    RouterConfig { policy_maps, ..config }
}

/// The frame of [`frames::udp`] as the parser describes it.
pub fn datagram(ip_len: usize, dscp: u8, source_port: u16, destination_port: u16, framing: Framing) -> Descriptor {
    let (source, destination) = ([10, 0, 10, 1].into(), [10, 0, 20, 10].into());
    let ip_len = ip_len.max(28) as u32;
    let plain =
        Descriptor::ipv4(protocol::UDP, (source, source_port), (destination, destination_port), ip_len, framing);
    Descriptor { dscp, ecn: 1, ..plain }
}

/// A UDP packet of `ip_len` bytes as it counts on a link.
pub fn udp(ip_len: usize, flow: u16, framing: Framing) -> Descriptor {
    datagram(ip_len, 0, 40_000, 5_000 + flow, framing)
}

/// The counters of `Out`.
pub fn out<P>(engine: &mut Engine<P>, now: Time) -> InterfaceCounters {
    engine.counters(now, None).interfaces["Out"].clone()
}

/// The counters of a class of the output policy on `Out`.
pub fn class<P>(engine: &mut Engine<P>, now: Time, index: usize) -> ClassCounters {
    out(engine, now).policy_output.unwrap().classes[index].clone()
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
    /// Bits of IP per second.
    pub fn new(ip_len: usize, dscp: u8, flow: u16, bps: u64) -> Source {
        Source { ip_len, dscp, flow, gap_ns: ip_len as u64 * 8 * SECOND / bps }
    }

    pub fn descriptor(&self, framing: Framing) -> Descriptor {
        datagram(self.ip_len, self.dscp, 1, 6_000 + self.flow, framing)
    }
}

/// Offers the packets of the sources until `end`; the payload is the source's number.
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

/// Sent packets, without the dropped ones.
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
