//! Decisions of policers on given packets, through a port's input policy.
//!
//! `meter METERS PACKETS` writes one byte for each packet to standard output: 1 conform, 2 exceed, 3 violate. METERS
//! has a line for each policer: committed rate (b/s), committed burst (bytes), peak rate (b/s), excess or peak burst
//! (bytes), number of packets. Without a peak rate (0) the policer has one rate, without an excess burst one bucket.
//! PACKETS has the packets of all policers in this order, each with its arrival (u64, ns) and its layer-2 bytes (u32),
//! little-endian.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::net::Ipv4Addr;

use qos_core::config::{
    Generation, InterfaceConfig, LinkConfig, PoliceAction, PoliceBurst, PoliceConfig, PolicyClass, PortConfig, RateSpec,
};
use qos_core::wire::{protocol, Framing};
use qos_core::{ConfigError, Descriptor, Engine, PortId, PortsConfig, RouterConfig, Time};

const ETHERNET_HEADER_BYTES: u32 = 14;
const PACKET_BYTES: usize = 12;

/// A policer that marks packets with their colour.
fn policer([cir_bps, bc_bytes, pir_bps, be_bytes]: [u64; 4]) -> PoliceConfig {
    let mark = |value| Some(vec![PoliceAction::SetDscpTransmit { value }]);
    let mut police = PoliceConfig::new(RateSpec::Bps(cir_bps)).burst(PoliceBurst::Bytes(bc_bytes));
    (police.conform, police.exceed) = (mark(1), mark(2));
    if be_bytes > 0 {
        police.be = Some(PoliceBurst::Bytes(be_bytes));
        police.pir = (pir_bps > 0).then_some(RateSpec::Bps(pir_bps));
        police.violate = mark(3);
    }
    police
}

/// An engine with the policer in the input policy of its port, at time 0.
fn engine(police: PoliceConfig) -> Result<(Engine<()>, PortId), ConfigError> {
    let link = LinkConfig::new(10_000_000_000, Framing::Ethernet);
    let mut engine = Engine::new(&PortsConfig::new().port("Fa0/0", PortConfig::new(link)), Time(0))?;
    let class = PolicyClass::new("class-default").police(police);
    let mut interface = InterfaceConfig::new(10_000_000);
    interface.service_policy_input = Some("Meter".into());
    let config = RouterConfig::new("R1", Generation::Hqf).policy_map("Meter", vec![class]);
    engine.configure(Time(0), &config.interface("Fa0/0", interface))?;
    let port = engine.port("Fa0/0").expect("it was wired");
    Ok((engine, port))
}

fn main() -> Result<(), Box<dyn Error>> {
    let [_, meters, packets] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("usage: meter METERS PACKETS".into());
    };
    let ends = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let mut packets = BufReader::with_capacity(1 << 20, File::open(packets)?);
    let mut colours = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    for line in std::fs::read_to_string(meters)?.lines() {
        let numbers = line.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let &[cir_bps, bc_bytes, pir_bps, be_bytes, count] = &numbers[..] else {
            return Err(format!("found {line:?}, expected five numbers").into());
        };
        let (mut engine, port) = engine(policer([cir_bps, bc_bytes, pir_bps, be_bytes]))?;
        let mut packet = [0; PACKET_BYTES];
        for _ in 0..count {
            packets.read_exact(&mut packet)?;
            let (arrival, length) = packet.split_at(8);
            let (arrival, length) = (u64::from_le_bytes(arrival.try_into()?), u32::from_le_bytes(length.try_into()?));
            let network_len = length - ETHERNET_HEADER_BYTES;
            let udp = protocol::UDP;
            let mut packet = Descriptor::ipv4(udp, (ends.0, 5_000), (ends.1, 5_001), network_len, Framing::Ethernet);
            engine.admit(Time(arrival), port, &mut packet);
            colours.write_all(&[packet.dscp])?;
        }
    }
    Ok(colours.flush()?)
}
