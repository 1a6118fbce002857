//! Departures of given packets from a router's port.
//!
//! `port CONFIGURATION RATE SEED PACKETS` writes the time at which the last bit of each packet has left (u64, ns; 0:
//! dropped) to standard output. CONFIGURATION is a router's, as JSON, with the interface Fa0/0; RATE is that of its
//! Ethernet line in b/s, SEED that of its random numbers. PACKETS has the packets in the order of their times, each
//! with its arrival (u64, ns), its layer-2 bytes (u32) and a number (u32), little-endian. The number is the packet's
//! code point, and its flow.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::error::Error;
use std::io::{BufWriter, Write};
use std::net::Ipv4Addr;

use qos_core::config::{from_json, LinkConfig, PortConfig};
use qos_core::wire::{protocol, Framing};
use qos_core::{Descriptor, Engine, Output, PortsConfig, RouterConfig, Time};

const ETHERNET_HEADER_BYTES: u32 = 14;
const PACKET_BYTES: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let [_, configuration, rate, seed, packets] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("usage: port CONFIGURATION RATE SEED PACKETS".into());
    };
    let link = LinkConfig::new(rate.parse()?, Framing::Ethernet);
    let ports = PortsConfig { seed: seed.parse()?, ..PortsConfig::new().port("Fa0/0", PortConfig::new(link)) };
    let mut engine = Engine::new(&ports, Time(0))?;
    engine.configure(Time(0), &from_json::<RouterConfig>(&std::fs::read_to_string(configuration)?)?)?;
    let port = engine.port("Fa0/0").expect("it was wired");
    let ends = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let packets = std::fs::read(packets)?;
    let mut times = vec![0; packets.len() / PACKET_BYTES];
    let mut outputs = Vec::new();
    let mut note = |outputs: &mut Vec<Output<usize>>| {
        for output in outputs.drain(..) {
            if let Output::Departure(departure) = output {
                times[departure.payload] = departure.time.0;
            }
        }
    };
    for (number, packet) in packets.chunks_exact(PACKET_BYTES).enumerate() {
        let arrival = Time(u64::from_le_bytes(packet[..8].try_into()?));
        let length = u32::from_le_bytes(packet[8..12].try_into()?) - ETHERNET_HEADER_BYTES;
        let class = u8::try_from(u32::from_le_bytes(packet[12..].try_into()?))?;
        let (source, destination) = ((ends.0, 5_000 + u16::from(class)), (ends.1, 5_001));
        let mut udp = Descriptor::ipv4(protocol::UDP, source, destination, length, Framing::Ethernet);
        udp.dscp = class;
        engine.transmit(arrival, port, udp, number);
        engine.poll(arrival, &mut outputs);
        note(&mut outputs);
    }
    while let Some(deadline) = engine.next_deadline() {
        engine.poll(deadline, &mut outputs);
        note(&mut outputs);
    }
    let mut written = BufWriter::new(std::io::stdout().lock());
    for time in times {
        written.write_all(&time.to_le_bytes())?;
    }
    Ok(written.flush()?)
}
