//! The network at some moment, and what happens to it that needs nothing written down.

use std::collections::BTreeMap;

use qos_core::{Departure, Descriptor, DropReason, Duration, Engine, Output, Time};

use crate::agenda::{Agenda, Event};
use crate::host::Interface;
use crate::network::{End, Network, Runs};
use crate::packet::{PacketId, Pool, Way};
use crate::report::{HostReport, PacketsReport, Report, RouterReport};
use crate::scenario::{NodeKind, Scenario, FORMAT};
use crate::seed::Seed;
use crate::tcp::Segment;
use crate::traffic::{Kind, Traffic};

/// No route.
const NOWHERE: u32 = u32::MAX;

/// An engine and when it is next due.
#[derive(Debug)]
pub(crate) struct Station {
    pub engine: Engine<PacketId>,
    pub runs: Runs,
    /// The earliest event for it that is to come.
    pub due: Option<Time>,
}

/// The drops that no engine counts.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    pub by_engine: [u64; DropReason::ALL.len()],
    pub expired: u64,
}

#[derive(Debug)]
pub(crate) struct World {
    pub start: Time,
    pub network: Network,
    pub stations: Vec<Station>,
    /// By end of a link; of hosts only.
    pub interfaces: Vec<Option<Interface>>,
    /// By node and number of the destination: the end by which to send.
    pub next: Vec<Vec<u32>>,
    pub traffic: Traffic,
    pub pool: Pool,
    pub agenda: Agenda,
    /// By node; empty for nodes of the other kind.
    pub hosts: Vec<HostReport>,
    pub routers: Vec<RouterReport>,
    pub sample_ns: u64,
    pub drain_ns: u64,
    pub draining: bool,
    /// Streams whose result is not there yet.
    pub open: usize,
    pub offered: u64,
    pub delivered: u64,
    pub lost: Lost,
    /// Captures by end of a link.
    pub seen: Vec<Vec<usize>>,
    pub outputs: Vec<Output<PacketId>>,
    pub segments: Vec<Segment>,
}
impl World {
    /// A network at its start. `seen` has the captures by end of a link.
    pub fn new(
        scenario: &Scenario,
        start: Time,
        (network, engines): (Network, Vec<Engine<PacketId>>),
        traffic: Traffic,
        seen: Vec<Vec<usize>>,
    ) -> World {
        let route = |node: usize| {
            let to = |address| network.next_hop(node, address).ok().flatten().map_or(NOWHERE, |end| end as u32);
            traffic.addresses.iter().map(|address| to(*address)).collect::<Vec<u32>>()
        };
        let next = (0..network.nodes.len()).map(route).collect();
        let interface = |end: &End| {
            let node = &network.nodes[end.node];
            let random = Seed::new(scenario.seed).with("host").with(&node.name).with(&end.interface).random();
            (node.kind == NodeKind::Host).then(|| Interface::new(end.rate_bps, scenario.host_jitter_ns, random, start))
        };
        let interfaces = network.ends.iter().map(interface).collect();
        let nodes = network.nodes.len();
        let stations = engines
            .into_iter()
            .zip(&network.runs)
            .map(|(engine, runs)| Station { engine, runs: *runs, due: None })
            .collect();
        let open = traffic.streams.iter().filter(|stream| !stream.complete).count();
        World {
            start,
            stations,
            interfaces,
            next,
            traffic,
            pool: Pool::default(),
            agenda: Agenda::default(),
            hosts: vec![HostReport::default(); nodes],
            routers: vec![RouterReport::default(); nodes],
            sample_ns: scenario.sample_ns,
            drain_ns: scenario.drain_ns,
            draining: false,
            open,
            offered: 0,
            delivered: 0,
            lost: Lost::default(),
            seen,
            outputs: Vec::new(),
            segments: Vec::new(),
            network,
        }
    }

    pub fn begin(&mut self) {
        self.agenda.put(self.start, Event::Sample);
        for (number, source) in self.traffic.sources.iter().enumerate() {
            let flow = self.traffic.streams[source.streams.start].flow;
            self.agenda.put(self.traffic.flows[flow].start, Event::Datagram(number as u32));
        }
        for (number, stream) in self.traffic.streams.iter().enumerate() {
            let flow = &self.traffic.flows[stream.flow];
            if matches!(stream.kind, Kind::Tcp(_)) {
                self.agenda.put(flow.start, Event::Connect(number as u32));
            }
            if let (Some(after), false) = (flow.cut_off_ns, flow.background) {
                let time = flow.start + Duration(flow.duration_ns) + Duration(after);
                self.agenda.put(time, Event::GiveUp(number as u32));
            }
        }
        self.agenda.put(self.traffic.end, Event::Drain);
        self.agenda.put(self.traffic.end + Duration(self.drain_ns), Event::End);
    }

    /// Sees to it that there is an event when an engine is next due.
    pub fn schedule(&mut self, station: usize) {
        let each = &mut self.stations[station];
        let Some(next) = each.engine.next_deadline() else { return };
        if each.due.is_none_or(|due| next < due) {
            each.due = Some(next);
            self.agenda.put(next, Event::Engine(station as u32));
        }
    }

    /// A router sends a packet on.
    pub fn forward(&mut self, station: usize, node: usize, departure: Departure<PacketId>) {
        let Departure { time, descriptor, payload, .. } = departure;
        let packet = self.pool.get_mut(payload);
        packet.dscp = descriptor.dscp;
        let stream = &self.traffic.streams[packet.stream as usize];
        let to = match packet.way {
            Way::Forward => stream.to[1],
            Way::Backward => stream.to[0],
        };
        packet.ttl -= 1;
        // Every path was checked, so there is a route; there may be more routers than hops.
        let end = self.next[node][to];
        if packet.ttl == 0 || end == NOWHERE {
            self.lost.expired += 1;
            self.pool.take(payload);
            return;
        }
        let at = &self.network.ends[end as usize];
        // As the frame would be described on the other link: it has no tag that could carry a class of service.
        let descriptor = Descriptor { cos: 0, ..descriptor.framed(at.framing) };
        self.stations[station].engine.transmit(time, at.port, descriptor, payload);
    }

    /// A datagram has arrived at its host.
    pub fn datagram_arrives(&mut self, now: Time, number: usize, sequence: u64, sent: Time, payload: u32) {
        let stream = &mut self.traffic.streams[number];
        let Kind::Udp(udp) = &mut stream.kind else { unreachable!("datagrams are of UDP") };
        let first = *self.traffic.flows[stream.flow].first_arrival.get_or_insert(now);
        udp.arrives(now, sequence, sent, payload);
        stream.arrivals.add(now.since(first), u64::from(payload));
    }

    /// A TCP sender's figures are noted, at the end of each of its intervals.
    pub fn note(&mut self, number: usize, now: Time) {
        let stream = &mut self.traffic.streams[number];
        let flow = &self.traffic.flows[stream.flow];
        let Kind::Tcp(transfer) = &mut stream.kind else { return };
        if transfer.stopped() {
            return;
        }
        transfer.sample_round_trip();
        self.agenda.put(now + Duration(flow.interval_ns), Event::Note(number as u32));
    }

    pub fn write_at(&mut self, number: usize, next: Option<Time>) {
        if let Some(next) = next {
            self.agenda.put(next, Event::Write(number as u32));
        }
    }

    /// A source has sent its last datagram: what is under way is waited for anyway.
    pub fn sent_all(&mut self, source: usize) {
        for stream in self.traffic.sources[source].streams.clone() {
            self.complete(stream);
        }
    }

    pub fn complete(&mut self, stream: usize) {
        let stream = &mut self.traffic.streams[stream];
        if !stream.complete {
            stream.complete = true;
            self.open -= 1;
        }
    }

    /// A stream is not waited for any longer.
    pub fn give_up(&mut self, number: usize) {
        let stream = &mut self.traffic.streams[number];
        if stream.complete {
            return;
        }
        if let Kind::Tcp(transfer) = &mut stream.kind {
            transfer.give_up();
        }
        self.complete(number);
    }

    pub fn report(mut self, end: Time) -> Report {
        for stream in &self.traffic.streams {
            let Kind::Tcp(transfer) = &stream.kind else { continue };
            for (end, host) in stream.hosts.iter().enumerate() {
                self.hosts[*host].tcp.add(transfer.counts(end));
            }
        }
        let mut dropped = BTreeMap::new();
        for reason in DropReason::ALL {
            let count = self.lost.by_engine[reason as usize];
            if reason != DropReason::Lost && count > 0 {
                dropped.insert(reason_name(reason).to_owned(), count);
            }
        }
        let queue = self.hosts.iter().map(|host| host.queue_drops).sum();
        dropped
            .extend([("host_queue", queue), ("ttl", self.lost.expired)].map(|(name, count)| (name.to_owned(), count)));
        dropped.retain(|_, count| *count > 0);
        let (mut hosts, mut routers) = (BTreeMap::new(), BTreeMap::new());
        for (node, (host, router)) in self.network.nodes.iter().zip(self.hosts.into_iter().zip(self.routers)) {
            match node.kind {
                NodeKind::Host => drop(hosts.insert(node.name.clone(), host)),
                NodeKind::Router => drop(routers.insert(node.name.clone(), router)),
            }
        }
        Report {
            format: FORMAT,
            program: "qos-sim".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            virtual_ns: end.since(self.start).0,
            events: self.agenda.taken,
            flows: self.traffic.report(),
            hosts,
            routers,
            packets: PacketsReport {
                offered: self.offered,
                delivered: self.delivered,
                dropped,
                lost: self.lost.by_engine[DropReason::Lost as usize],
                queued: self.pool.live() as u64,
            },
        }
    }
}

/// As the counters name it.
fn reason_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Police => "police",
        DropReason::Tail => "tail",
        DropReason::Flow => "flow",
        DropReason::Priority => "priority",
        DropReason::Random => "random",
        DropReason::RandomTail => "random_tail",
        DropReason::Disabled => "disabled",
        DropReason::Overrun => "overrun",
        DropReason::Lost => "lost",
    }
}
