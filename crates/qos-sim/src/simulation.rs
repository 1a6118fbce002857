//! A checked scenario that is ready to run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use qos_core::{ConfigError, Time};

use crate::capture::Captures;
use crate::explain::{Explanation, Question};
use crate::network::{Network, LONGEST_NS};
use crate::probes;
use crate::report::Report;
use crate::run::{Run, World};
use crate::samples::{Sample, Samples};
use crate::scenario::{Capture, Scenario, FORMAT};
use crate::traffic::layout::lay_out;

/// Latest wall-clock time of virtual time 0, in nanoseconds since 1970: with the maximum duration it fits 64 bits.
const LATEST_EPOCH_NS: u64 = 1 << 63;
/// Maximum number of samples of the counters in a scenario.
const MOST_SAMPLES: u64 = 1_000_000;

/// A scenario, ready to run.
#[derive(Debug)]
pub struct Simulation {
    world: World,
    captures: Captures,
}

impl Simulation {
    /// Checks a scenario and sets it up.
    ///
    /// # Errors
    /// The path and reason of the first thing that cannot be simulated.
    pub fn new(scenario: &Scenario) -> Result<Simulation, ConfigError> {
        let simulation = Simulation::for_question(scenario)?;
        if scenario.flows.is_empty() && scenario.probes.is_empty() {
            return Err(ConfigError::new("flows", "found no flow, expected at least one"));
        }
        Ok(simulation)
    }

    /// Sets up a scenario like [`new`](Simulation::new), for a question about a packet; it need not have any traffic.
    ///
    /// # Errors
    /// The path and reason of the first thing that cannot be simulated.
    pub fn for_question(scenario: &Scenario) -> Result<Simulation, ConfigError> {
        check(scenario)?;
        probes::check(scenario)?;
        let start = Time(scenario.epoch_ns);
        let (network, engines) = Network::new(scenario, start)?;
        let traffic = lay_out(scenario, &network, start)?;
        let captures = Captures::new(scenario, &network)?;
        let world = World::new(scenario, start, network, engines, traffic);
        Ok(Simulation { world, captures })
    }

    /// Returns the captures of the scenario, in the order of the writers of [`run`](Simulation::run).
    pub fn captures(&self) -> impl Iterator<Item = &Capture> {
        self.captures.iter()
    }

    /// Runs to the end. Captures without a writer in `into` are not recorded.
    ///
    /// # Errors
    /// When a capture cannot be written.
    pub fn run<W: Write>(self, into: Vec<W>) -> io::Result<Report> {
        let mut routers = BTreeMap::new();
        let report = self.run_sampled(into, &mut routers)?;
        Ok(report.with_routers(routers))
    }

    /// Runs like [`run`](Simulation::run), but without routers in the report: `samples` gets their samples during the
    /// run.
    ///
    /// # Errors
    /// When a capture cannot be written, and those of `samples`.
    pub fn run_sampled<W: Write>(self, into: Vec<W>, samples: &mut dyn Samples) -> io::Result<Report<()>> {
        let (world, end) = Run::new(self.world, self.captures.record(into)?, samples).run()?;
        Ok(world.report(end))
    }

    /// Runs until the packet of a question has left its router; returns its outcome. `scenario` is the source of this
    /// simulation. No captures are written: `W` is the writer of [`run`](Simulation::run) in the same program, so that
    /// it has the code of a run once.
    ///
    /// # Errors
    /// The path and reason for a reference of the question that is not in the scenario, or if the run ends before the
    /// packet.
    pub fn explain<W: Write>(self, scenario: &Scenario, question: &Question) -> Result<Explanation, ConfigError> {
        let start = Time(scenario.epoch_ns);
        let asked = question.resolve(scenario, self.world.network(), start)?;
        let late = || {
            let at_s = question.at_ns as f64 / 1e9;
            ConfigError::new("at_ns", format!("found {at_s} s, expected a time before the end of the run"))
        };
        let recorders = self.captures.record(Vec::<W>::new());
        let answer = recorders.and_then(|recorders| Run::new(self.world, recorders, &mut Unsampled).explain(asked));
        answer.map_err(|error| ConfigError::new("", error.to_string()))?.ok_or_else(late)
    }
}

/// Discards samples.
struct Unsampled;

impl Samples for Unsampled {
    fn take(&mut self, _: &str, _: Sample) -> io::Result<()> {
        Ok(())
    }
}

/// Checks the scenario as a whole.
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
        ("tick_ns", Some(scenario.tick_ns)),
    ] {
        if value.is_some_and(|value| value > LONGEST_NS) {
            return wrong(path, format!("found more than {LONGEST_NS} ns, the longest time"));
        }
    }
    let longest = scenario.flows.iter().map(|flow| flow.start_ns.saturating_add(flow.duration_ns.unwrap_or(0)));
    let longest = longest.max().unwrap_or(0).saturating_add(scenario.drain_ns);
    if scenario.sample_ns == 0 || longest / scenario.sample_ns > MOST_SAMPLES {
        return wrong("sample_ns", format!("found {}, expected at most {MOST_SAMPLES} samples", scenario.sample_ns));
    }
    if scenario.sample_at_ns.len() as u64 > MOST_SAMPLES {
        let found = scenario.sample_at_ns.len();
        return wrong("sample_at_ns", format!("found {found} instants, expected at most {MOST_SAMPLES}"));
    }
    for (number, &at) in scenario.sample_at_ns.iter().enumerate() {
        if at > LONGEST_NS {
            let path = format!("sample_at_ns[{number}]");
            return wrong(&path, format!("found more than {LONGEST_NS} ns, the longest time"));
        }
    }
    Ok(())
}
