//! A policer of 1 Mb/s, offered 2 Mb/s for ten seconds: passed and dropped traffic.
#![allow(clippy::disallowed_macros)]

use std::net::Ipv4Addr;

use qos_core::config::{Generation, InterfaceConfig, LinkConfig, PoliceConfig, PolicyClass, PortConfig, RateSpec};
use qos_core::wire::{protocol, Framing};
use qos_core::{ConfigError, Descriptor, Engine, PortsConfig, RouterConfig, Time};

const SECOND: u64 = 1_000_000_000;

/// A port of 10 Mb/s with an output policy of one class.
fn port_with(class: PolicyClass) -> Result<Engine<()>, ConfigError> {
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
    let police = PoliceConfig::new(RateSpec::Bps(1_000_000));
    let mut engine = port_with(PolicyClass::new("class-default").police(police))?;
    let port = engine.port("Fa0/0").expect("it was wired");
    // Policers count 1014 bytes of each: IP packet and Ethernet header.
    let gap = 1_014 * 8 * SECOND / 2_000_000;
    let mut outputs = Vec::new();
    for number in 0..10 * SECOND / gap {
        engine.transmit(Time(number * gap), port, packet(0), ());
        engine.poll(Time(number * gap), &mut outputs);
    }
    let counters = engine.counters(Time(10 * SECOND), None);
    let policy = counters.interfaces["Fa0/0"].policy_output.as_ref().expect("it was configured");
    let police = policy.classes[0].police.as_ref().expect("it was configured");
    let mut lines = vec![format!("rate {} b/s, burst {} bytes", police.cir_bps, police.bc_bytes)];
    for (name, count) in [("conformed", police.conformed), ("exceeded", police.exceeded)] {
        let mbps = count.bytes as f64 * 8.0 / 10.0 / 1e6;
        lines.push(format!("{name:9} {:5} packets, {mbps:.3} Mb/s", count.packets));
    }
    Ok(lines)
}

fn main() -> Result<(), ConfigError> {
    report()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
