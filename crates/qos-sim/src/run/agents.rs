//! IP SLA of the nodes: the operations, responders and process levels that `qos-router` and `sla` run, in virtual time.

use std::collections::BTreeMap;

use ip_sla::config::{Schedule, Start};
use ip_sla::{Config, OperationReport, Prober, ProcessLevel, Report, Responder, Send};
use qos_core::{Duration, Time};

use crate::event_queue::{Event, EventQueue};
use crate::network::Network;
use crate::scenario::{Probe, Scenario};
use crate::seed::Seed;

/// First source port of UDP operations without a configured one: above those of flows.
const FIRST_PORT: u16 = 61_000;

/// IP SLA of one node.
#[derive(Debug)]
pub(super) struct Agent {
    pub prober: Prober,
    pub responder: Option<Responder>,
    pub process: ProcessLevel,
    config: Config,
    /// Source ports of UDP operations.
    ports: BTreeMap<u16, u32>,
    /// Time of its next event.
    due: Option<Time>,
    /// Whether the node has IP SLA results to report.
    tells: bool,
}

impl Agent {
    fn new(config: Option<&Config>, process_ns: Option<u64>, start: Time) -> Agent {
        let tells = config.is_some();
        let config = config.cloned().unwrap_or_default();
        let mut process = ProcessLevel::default();
        process.set(process_ns);
        let mut prober = Prober::new(0);
        prober.configure(&config, start.0);
        let responder = config.responder.then(|| {
            let mut responder = Responder::default();
            responder.configure(&config.responder_ports, &config.responder_allow);
            responder
        });
        let udp = config.operations.iter().filter(|(_, operation)| operation.kind.is_udp());
        let ports =
            (FIRST_PORT..).zip(udp).map(|(port, (number, operation))| (operation.source_port.unwrap_or(port), *number));
        Agent { prober, responder, process, ports: ports.collect(), config, due: None, tells }
    }

    /// Returns the UDP operation that sends from a port.
    pub fn operation_at(&self, port: u16) -> Option<u32> {
        self.ports.get(&port).copied()
    }

    /// Returns the port from which an operation sends.
    pub fn port_of(&self, operation: u32) -> Option<u16> {
        self.ports.iter().find(|(_, number)| **number == operation).map(|(port, _)| *port)
    }

    /// Returns whether the responder accepts packets at a port.
    pub fn listens_on(&self, port: u16) -> bool {
        let listens = |each: &Responder| port == ip_sla::packet::CONTROL_PORT || each.ports().any(|own| own == port);
        self.responder.as_ref().is_some_and(listens)
    }

    /// Returns whether an event is the current one, not a superseded one.
    pub fn is_due(&mut self, now: Time) -> bool {
        let due = self.due == Some(now);
        if due {
            self.due = None;
        }
        due
    }

    /// Starts and ends due operations, and returns the messages to send.
    pub fn poll(&mut self, now: Time) -> Vec<Send> {
        if let Some(responder) = &mut self.responder {
            responder.poll(now.0);
        }
        let mut sends = Vec::new();
        self.prober.poll(now.0, &mut sends);
        sends
    }

    /// Schedules an event for the time at which it next has work to do.
    fn schedule(&mut self, node: usize, now: Time, events: &mut EventQueue) {
        let responder = self.responder.as_ref().and_then(Responder::deadline);
        let Some(next) = [self.prober.deadline(), responder].into_iter().flatten().min() else { return };
        let next = Time(next).max(now);
        if self.due.is_none_or(|due| next < due) {
            self.due = Some(next);
            events.put(next, Event::Agent(node as u32));
        }
    }
}

/// IP SLA of all nodes.
#[derive(Debug)]
pub(super) struct Agents {
    /// Agents by node.
    agents: Vec<Agent>,
    /// Probes with their nodes, and their delay at the start.
    probes: Vec<(Probe, usize, Duration)>,
    read: BTreeMap<String, OperationReport>,
}

impl Agents {
    /// Returns the agents of a checked scenario.
    pub fn new(scenario: &Scenario, network: &Network, start: Time) -> Agents {
        let agent = |node: &crate::network::Node| {
            let config = &scenario.nodes[&node.name];
            Agent::new(config.ip_sla.as_ref(), config.process_ns, start)
        };
        // Without it the first stamp of each packet would be on a whole millisecond, and all round trips rounded down.
        let late = |probe: &Probe| {
            let mut random = Seed::new(scenario.seed).with("probe").with(&probe.name).random();
            Duration(random.up_to(scenario.start_jitter_ns))
        };
        let node = |probe: &Probe| network.nodes.iter().position(|node| node.name == probe.node);
        Agents {
            agents: network.nodes.iter().map(agent).collect(),
            probes: scenario
                .probes
                .iter()
                .filter_map(|probe| Some((probe.clone(), node(probe)?, late(probe))))
                .collect(),
            read: BTreeMap::new(),
        }
    }

    /// Inserts the initial events.
    pub fn begin(&mut self, start: Time, events: &mut EventQueue) {
        for node in 0..self.agents.len() {
            self.schedule(node, start, events);
        }
        for (number, (probe, _, late)) in self.probes.iter().enumerate() {
            events.put(start + Duration(probe.start_ns) + *late, Event::ProbeBegins(number as u32));
            events.put(start + Duration(probe.end_ns), Event::ProbeRead(number as u32));
        }
    }

    /// Returns the IP SLA of a node.
    pub fn of(&mut self, node: usize) -> &mut Agent {
        &mut self.agents[node]
    }

    /// Schedules an event for the time at which a node next has work to do.
    pub fn schedule(&mut self, node: usize, now: Time, events: &mut EventQueue) {
        self.agents[node].schedule(node, now, events);
    }

    /// Starts the operation of a probe; returns its node.
    pub fn begin_probe(&mut self, number: usize, now: Time) -> usize {
        let (probe, node, _) = &self.probes[number];
        let agent = &mut self.agents[*node];
        if let Some(operation) = agent.config.operations.get_mut(&probe.operation) {
            operation.schedule = Some(Schedule { life_s: None, start: Start::Now, ageout_s: 0, recurring: false });
        }
        agent.prober.configure(&agent.config, now.0);
        *node
    }

    /// Stores the result of a probe.
    pub fn read_probe(&mut self, number: usize, now: Time) {
        let (probe, node, _) = &self.probes[number];
        let report = self.agents[*node].prober.report(now.0, Some(probe.operation), true).remove(&probe.operation);
        self.read.extend(report.map(|report| (probe.name.clone(), report)));
    }

    /// Returns the IP SLA results of a node; `None` if it has none.
    pub fn report(&self, node: usize, now: Time) -> Option<Report> {
        let agent = &self.agents[node];
        agent.tells.then(|| Report::new(now.0, &agent.prober, agent.responder.as_ref(), None, false))
    }

    /// Returns the working time of a node's process level; `None` if it is not modelled.
    pub fn process_busy_ns(&self, node: usize) -> Option<u64> {
        let process = &self.agents[node].process;
        process.is_modelled().then(|| process.busy_ns())
    }

    /// Returns the results of the probes.
    pub fn into_probes(self) -> BTreeMap<String, OperationReport> {
        self.read
    }
}
