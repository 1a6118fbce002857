//! Three flows of 2, 6 and 12 Mb/s on a port of 10 Mb/s: their rates with a FIFO and with fair queueing.
#![allow(clippy::disallowed_macros)]

use std::net::Ipv4Addr;

use qos_core::config::{Generation, InterfaceConfig, LinkConfig, PolicyClass, PortConfig};
use qos_core::wire::{protocol, Framing};
use qos_core::{ConfigError, Descriptor, Engine, Output, PortsConfig, RouterConfig, Time};

const SECOND: u64 = 1_000_000_000;

const OFFERED_BPS: [u64; 3] = [2_000_000, 6_000_000, 12_000_000];

/// A port of 10 Mb/s with an output policy of one class.
fn port_with(class: PolicyClass) -> Result<Engine<usize>, ConfigError> {
    let link = LinkConfig::new(10_000_000, Framing::Ethernet);
    let mut engine = Engine::new(&PortsConfig::new().port("Fa0/0", PortConfig::new(link)), Time(0))?;
    let config = RouterConfig::new("R1", Generation::Hqf).policy_map("Policy", vec![class]);
    engine.configure(Time(0), &config.interface("Fa0/0", InterfaceConfig::new(10_000).output("Policy")))?;
    Ok(engine)
}

/// A UDP packet of 1000 bytes; each flow has its own source port.
fn packet(flow: u16) -> Descriptor {
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    Descriptor::ipv4(protocol::UDP, (source, 5_000 + flow), (destination, 5_001), 1_000, Framing::Ethernet)
}

/// Bits per second of each flow that reach the other end, over ten seconds.
fn goodput(class: PolicyClass) -> Result<[u64; 3], ConfigError> {
    let mut engine = port_with(class)?;
    let port = engine.port("Fa0/0").expect("it was wired");
    let gaps = OFFERED_BPS.map(|bps| 1_000 * 8 * SECOND / bps);
    let mut next = [0; 3];
    let mut outputs = Vec::new();
    while let Some((flow, at)) =
        next.into_iter().enumerate().min_by_key(|(_, at)| *at).filter(|(_, at)| *at < 10 * SECOND)
    {
        engine.poll(Time(at), &mut outputs);
        engine.transmit(Time(at), port, packet(flow as u16), flow);
        next[flow] += gaps[flow];
    }
    engine.poll(Time(10 * SECOND), &mut outputs);
    let mut bits = [0; 3];
    for output in outputs {
        if let Output::Departure(departure) = output {
            bits[departure.payload] += u64::from(departure.descriptor.network_len) * 8;
        }
    }
    Ok(bits.map(|bits| bits / 10))
}

/// Printed lines.
pub fn report() -> Result<Vec<String>, ConfigError> {
    let class = || PolicyClass::new("class-default");
    let (fifo, fair) = (goodput(class())?, goodput(class().fair_queue())?);
    let mut lines = vec!["offered  FIFO   fair queueing (Mb/s)".to_owned()];
    for flow in 0..3 {
        let mbps = |bps: u64| bps as f64 / 1e6;
        lines.push(format!("{:7.2}  {:5.2}  {:5.2}", mbps(OFFERED_BPS[flow]), mbps(fifo[flow]), mbps(fair[flow])));
    }
    Ok(lines)
}

fn main() -> Result<(), ConfigError> {
    report()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
