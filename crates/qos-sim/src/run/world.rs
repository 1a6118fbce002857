//! State of the network, and the events that need no output file.

use std::collections::BTreeMap;

use qos_core::config::defaults::DOT1Q_COS;
use qos_core::{Departure, Descriptor, Duration, Engine, Time};

use super::agents::Agents;
use super::engines::Engines;
use super::hosts::Hosts;
use super::routes::Routes;
use super::tally::Tally;
use crate::event_queue::{Event, EventQueue};
use crate::network::Network;
use crate::packet::{Content, PacketId, Pool};
use crate::report::Report;
use crate::scenario::{NodeKind, Scenario, FORMAT};
use crate::traffic::{Kind, Traffic};

/// All state of the simulation.
#[derive(Debug)]
pub(crate) struct World {
    start: Time,
    drain_ns: u64,
    pub(super) sample_ns: u64,
    sample_at_ns: Vec<u64>,
    pub(super) network: Network,
    pub(super) engines: Engines,
    pub(super) hosts: Hosts,
    pub(super) routes: Routes,
    pub(super) agents: Agents,
    /// Time of the last sample of the routers' counters.
    pub(super) sampled: Option<Time>,
    pub(super) traffic: Traffic,
    pub(super) pool: Pool,
    pub(super) tally: Tally,
    pub(super) events: EventQueue,
}

impl World {
    /// Returns a network at its start.
    pub fn new(
        scenario: &Scenario,
        start: Time,
        network: Network,
        engines: Vec<Engine<PacketId>>,
        traffic: Traffic,
    ) -> World {
        World {
            start,
            events: EventQueue::new(engines.len()),
            drain_ns: scenario.drain_ns,
            sample_ns: scenario.sample_ns,
            sample_at_ns: scenario.sample_at_ns.clone(),
            engines: Engines::new(engines, &network.runs),
            hosts: Hosts::new(scenario, &network, start),
            routes: Routes::new(&network, &traffic.addresses),
            agents: Agents::new(scenario, &network, start),
            sampled: None,
            traffic,
            pool: Pool::default(),
            tally: Tally::default(),
            network,
        }
    }

    /// Returns the network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Inserts the initial events; returns their time.
    pub(super) fn begin(&mut self) -> Time {
        self.events.put(self.start, Event::Sample);
        for &at in &self.sample_at_ns {
            self.events.put(self.start + Duration(at), Event::Look);
        }
        for (number, source) in self.traffic.sources.iter().enumerate() {
            let stream = &self.traffic.streams[self.traffic.datagrams[source.streams.start].stream];
            let start = self.traffic.flows[stream.flow].start + stream.offset;
            self.events.put(start, Event::Datagram(number as u32));
        }
        for (number, stream) in self.traffic.streams.iter().enumerate() {
            let flow = &self.traffic.flows[stream.flow];
            if let Kind::Tcp(transfer) = stream.kind {
                self.events.put(flow.start + stream.offset, Event::Connect(transfer as u32));
            }
            if let (Some(after), false) = (flow.cut_off_ns, flow.background) {
                let time = flow.start + Duration(flow.duration_ns) + Duration(after);
                self.events.put(time, Event::GiveUp(number as u32));
            }
        }
        self.agents.begin(self.start, &mut self.events);
        self.events.put(self.traffic.end, Event::Drain);
        self.events.put(self.traffic.end + Duration(self.drain_ns), Event::End);
        self.start
    }

    /// Returns the virtual time since the start.
    pub(super) fn elapsed(&self, now: Time) -> Duration {
        now.since(self.start)
    }

    /// Returns whether no event is pending and no packet is in transit.
    pub(super) fn is_idle(&self) -> bool {
        self.traffic.is_complete() && self.pool.live() == 0
    }

    /// Schedules an event for the time at which an engine is next due.
    pub(super) fn schedule(&mut self, station: usize) {
        self.engines.schedule(station, &mut self.events);
    }

    /// Forwards a packet of a router by that end of a link, if it has a route.
    pub(super) fn forward(&mut self, station: usize, end: Option<usize>, departure: &Departure<PacketId>) {
        let Departure { time, port, ref descriptor, payload, .. } = *departure;
        let packet = self.pool.get_mut(payload);
        (packet.dscp, packet.ecn) = (descriptor.dscp, descriptor.ecn);
        packet.ttl -= 1;
        // Every flow's path was checked, so there is a route; there may be more routers than hops.
        let (Some(end), 1..) = (end, packet.ttl) else {
            self.tally.count_expired();
            self.pool.release(payload);
            return;
        };
        if let (Content::Tcp { segment, .. }, false) = (&mut packet.content, packet.ipv6) {
            if let Some(options) = &mut segment.syn_options {
                let entered = self.network.entered(self.network.ports[station][usize::from(port.0)], descriptor.vlan);
                for most in [entered, end].into_iter().filter_map(|end| self.network.ends[end].adjust_mss) {
                    options.mss = options.mss.min(most);
                }
            }
        }
        self.transmit(end, time, descriptor, payload);
    }

    /// Puts a packet of a router in front of the output of one of its ends.
    pub(super) fn transmit(&mut self, end: usize, time: Time, descriptor: &Descriptor, packet: PacketId) {
        let at = &self.network.ends[end];
        // With the description on the other link: a class of service ends with its tag.
        let descriptor = match at.over {
            Some((_, Some(vlan))) => descriptor.tagged(Some(vlan), DOT1Q_COS),
            _ => Descriptor { cos: 0, vlan: 0, tags: 0, ..*descriptor }.framed(at.framing),
        };
        self.engines.transmit(at.engine, time, at.port, descriptor, packet);
    }

    /// Returns the result, without the routers.
    pub fn report(mut self, end: Time) -> Report<()> {
        for transfer in &self.traffic.transfers {
            for (end, way) in self.traffic.streams[transfer.stream].ways.iter().enumerate() {
                self.hosts.add_tcp(way.host, transfer.counts(end));
            }
        }
        let packets = self.tally.report(self.hosts.queue_drops(), self.pool.live() as u64);
        let nodes = self.network.nodes.iter().zip(self.hosts.into_reports());
        let hosts = nodes.filter(|(node, _)| node.kind == NodeKind::Host);
        let hosts: BTreeMap<_, _> = hosts.map(|(node, host)| (node.name.clone(), host)).collect();
        Report {
            format: FORMAT,
            program: "qos-sim".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            virtual_ns: end.since(self.start).0,
            events: self.events.taken(),
            flows: self.traffic.report(),
            hosts,
            routers: (),
            probes: self.agents.into_probes(),
            packets,
        }
    }
}
