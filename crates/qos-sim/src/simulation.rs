//! A scenario, checked and set up, from which a run comes.

use std::io::{self, Write};

use qos_core::ConfigError;
use qos_core::Time;

use crate::capture::{Filter, Recorder};
use crate::driver::Running;
use crate::network::{Network, LONGEST_NS};
use crate::report::Report;
use crate::scenario::{Capture, Scenario, FORMAT};
use crate::traffic::{lay_out, MOST_PARTS};
use crate::world::World;

/// Latest wall time that virtual time 0 may stand for, in nanoseconds since 1970: with the longest times it fits 64 bits.
const LATEST_EPOCH_NS: u64 = 1 << 63;

/// A scenario, ready to run.
#[derive(Debug)]
pub struct Simulation {
    world: World,
    captures: Vec<(Capture, Filter)>,
}
impl Simulation {
    /// Checks a scenario and sets it up.
    ///
    /// # Errors
    /// The path and reason of the first thing that cannot be simulated.
    pub fn new(scenario: &Scenario) -> Result<Simulation, ConfigError> {
        check(scenario)?;
        let start = Time(scenario.epoch_ns);
        let (network, engines) = Network::new(scenario, start)?;
        let traffic = lay_out(scenario, &network, start)?;
        let (captures, seen) = lay_out_captures(scenario, &network)?;
        let world = World::new(scenario, start, (network, engines), traffic, seen);
        Ok(Simulation { world, captures })
    }

    /// The captures that the scenario asks for, in the order in which [`run`](Simulation::run) wants somewhere to write them.
    pub fn captures(&self) -> impl Iterator<Item = &Capture> {
        self.captures.iter().map(|(capture, _)| capture)
    }

    /// Runs to the end. Captures without a writer in `into` are not kept.
    ///
    /// # Errors
    /// When a capture cannot be written.
    pub fn run<W: Write>(self, into: Vec<W>) -> io::Result<Report> {
        let recorders = self.captures.iter().zip(into);
        let recorders = recorders.map(|((capture, filter), into)| Recorder::new(capture, *filter, into));
        let running = Running { world: self.world, recorders: recorders.collect::<io::Result<_>>()? };
        let (world, end) = running.run()?;
        Ok(world.report(end))
    }
}
/// Checks what concerns the scenario as a whole.
fn check(scenario: &Scenario) -> Result<(), ConfigError> {
    let wrong = |path: &str, message: String| Err(ConfigError::new(path, message));
    if scenario.format != FORMAT {
        return wrong("format", format!("found {}, expected {FORMAT}", scenario.format));
    }
    if scenario.epoch_ns > LATEST_EPOCH_NS {
        return wrong("epoch_ns", format!("found {}, expected at most {LATEST_EPOCH_NS}", scenario.epoch_ns));
    }
    for (path, value) in [
        ("drain_ns", Some(scenario.drain_ns)),
        ("start_jitter_ns", Some(scenario.start_jitter_ns)),
        ("host_jitter_ns", scenario.host_jitter_ns),
    ] {
        if value.is_some_and(|value| value > LONGEST_NS) {
            return wrong(path, format!("found more than {LONGEST_NS} ns, which is the longest time"));
        }
    }
    let longest = scenario.flows.iter().map(|flow| flow.start_ns.saturating_add(flow.duration_ns.unwrap_or(0)));
    let longest = longest.max().unwrap_or(0).saturating_add(scenario.drain_ns);
    if scenario.sample_ns == 0 || longest / scenario.sample_ns > MOST_PARTS {
        return wrong("sample_ns", format!("found {}, expected at most {MOST_PARTS} samples", scenario.sample_ns));
    }
    Ok(())
}

/// The captures, and which of them see each end of a link.
#[allow(clippy::type_complexity)]
fn lay_out_captures(
    scenario: &Scenario,
    network: &Network,
) -> Result<(Vec<(Capture, Filter)>, Vec<Vec<usize>>), ConfigError> {
    let mut seen = vec![Vec::new(); network.ends.len()];
    let mut captures: Vec<(Capture, Filter)> = Vec::new();
    for (number, capture) in scenario.captures.iter().enumerate() {
        let path = format!("captures[{number}]");
        let wrong = |field: &str, message: String| Err(ConfigError::new(format!("{path}.{field}"), message));
        if captures.iter().any(|(other, _)| other.name == capture.name) {
            return wrong("name", format!("found {:?} a second time", capture.name));
        }
        if let Some((other, _)) = captures.iter().find(|(other, _)| other.file == capture.file) {
            return wrong("file", format!("found {:?}, which capture {} writes", capture.file, other.name));
        }
        if capture.snaplen == 0 {
            return wrong("snaplen", "found 0, expected the bytes to keep of each frame".to_owned());
        }
        let node = network.node(&capture.node, &format!("{path}.node"))?;
        let Some(end) = network.interface(node, &capture.interface) else {
            let message = format!("found {:?}, which no link of {} uses", capture.interface, capture.node);
            return wrong("interface", message);
        };
        seen[end].push(number);
        captures.push((capture.clone(), Filter::of(capture, &path)?));
    }
    Ok((captures, seen))
}
