//! A shaper of 1 Mb/s, offered a burst of 100 packets at once: when they leave, and how long they waited.
#![allow(clippy::disallowed_macros)]

use std::net::Ipv4Addr;

use qos_core::config::{Generation, InterfaceConfig, LinkConfig, PolicyClass, PortConfig, RateSpec, ShapeConfig};
use qos_core::wire::{protocol, Framing};
use qos_core::{ConfigError, Descriptor, Engine, Output, PortsConfig, RouterConfig, Time};

const SECOND: u64 = 1_000_000_000;

/// A port of 10 Mb/s with an output policy of one class.
fn port_with(class: PolicyClass) -> Result<Engine<u64>, ConfigError> {
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

/// Printed lines.
pub fn report() -> Result<Vec<String>, ConfigError> {
    let shape = ShapeConfig::average(RateSpec::Bps(1_000_000));
    let mut engine = port_with(PolicyClass::new("class-default").shape(shape).queue_limit(200))?;
    let port = engine.port("Fa0/0").expect("it was wired");
    for number in 0..100 {
        engine.transmit(Time(0), port, packet(0), number);
    }
    let mut outputs = Vec::new();
    while let Some(deadline) = engine.next_deadline() {
        engine.poll(deadline, &mut outputs);
    }
    let mut lines = vec!["packet  leaves after".to_owned()];
    for output in &outputs {
        if let Output::Departure(departure) = output {
            if departure.payload % 10 == 9 {
                lines.push(format!("{:6}  {:.1} ms", departure.payload + 1, departure.time.0 as f64 / 1e6));
            }
        }
    }
    let counters = engine.counters(Time(SECOND), None);
    let delay = counters.interfaces["Fa0/0"].queueing_delay.expect("packets have left");
    let [mean, most] = [delay.mean_ns, delay.max_ns].map(|ns| ns as f64 / 1e6);
    lines.push(format!("waited {mean:.1} ms on average, {most:.1} ms at most"));
    Ok(lines)
}

fn main() -> Result<(), ConfigError> {
    report()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
