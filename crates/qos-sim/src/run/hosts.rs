//! Hosts: their interfaces and counters.

use qos_core::{Descriptor, Time};

use super::host_interface::{Interface, Taken};
use crate::network::{End, Network};
use crate::report::{HostReport, TcpReport};
use crate::scenario::{NodeKind, Scenario};
use crate::seed::Seed;

/// All hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    /// Interfaces by end of a link; hosts only.
    interfaces: Vec<Option<Interface>>,
    /// Counters by node; empty for routers.
    reports: Vec<HostReport>,
}

impl Hosts {
    pub fn new(scenario: &Scenario, network: &Network, start: Time) -> Hosts {
        let interface = |end: &End| {
            let node = &network.nodes[end.node];
            let random = Seed::new(scenario.seed).with("host").with(&node.name).with(&end.interface).random();
            (node.kind == NodeKind::Host).then(|| Interface::new(end.rate_bps, scenario.host_jitter_ns, random, start))
        };
        Hosts {
            interfaces: network.ends.iter().map(interface).collect(),
            reports: vec![HostReport::default(); network.nodes.len()],
        }
    }

    /// Sends a packet of a host by one of its ends. `None`: its queue is full.
    pub fn send(&mut self, host: usize, end: usize, now: Time, descriptor: &Descriptor) -> Option<Taken> {
        let report = &mut self.reports[host];
        report.packets_sent += 1;
        let interface = self.interfaces[end].as_mut().expect("a host's end has an interface");
        let taken = interface.send(now, descriptor.counted_len, descriptor.line_len);
        report.queue_drops += u64::from(taken.is_none());
        taken
    }

    /// Counts a packet that has arrived at its host.
    pub fn count_received(&mut self, host: usize) {
        self.reports[host].packets_received += 1;
    }

    /// Adds the counters of the TCP at an end of a connection.
    pub fn add_tcp(&mut self, host: usize, counts: TcpReport) {
        self.reports[host].tcp.add(counts);
    }

    /// Returns the number of packets dropped by full queues of hosts.
    pub fn queue_drops(&self) -> u64 {
        self.reports.iter().map(|host| host.queue_drops).sum()
    }

    /// Returns the counters by node.
    pub fn into_reports(self) -> Vec<HostReport> {
        self.reports
    }
}
