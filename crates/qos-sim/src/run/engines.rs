//! The engines: one in each router, and one for each link between two hosts.

use qos_core::counters::ClassBuckets;
use qos_core::frame::HeaderRest;
use qos_core::{Counters, Descriptor, DropReason, Duration, Engine, Output, PortId, Side, Time};

use crate::event_queue::EventQueue;
use crate::network::Runs;
use crate::packet::PacketId;

/// An engine.
#[derive(Debug)]
struct Station {
    engine: Engine<PacketId>,
    runs: Runs,
}

/// All engines.
#[derive(Debug)]
pub(super) struct Engines {
    stations: Vec<Station>,
}

impl Engines {
    pub fn new(engines: Vec<Engine<PacketId>>, runs: &[Runs]) -> Engines {
        let stations = engines.into_iter().zip(runs).map(|(engine, runs)| Station { engine, runs: *runs });
        Engines { stations: stations.collect() }
    }

    pub fn len(&self) -> usize {
        self.stations.len()
    }

    /// Returns the owner of an engine.
    pub fn owner(&self, station: usize) -> Runs {
        self.stations[station].runs
    }

    /// Schedules an event for the time at which an engine is next due.
    pub fn schedule(&mut self, station: usize, events: &mut EventQueue) {
        if let Some(next) = self.stations[station].engine.next_deadline() {
            events.put_engine(station, next);
        }
    }

    /// Moves the frames received up to now to the output.
    #[inline(always)]
    pub fn poll_inside(&mut self, station: usize, now: Time, outputs: &mut Vec<Output<PacketId>>) {
        self.stations[station].engine.poll_inside(now, Duration::ZERO, outputs);
    }

    /// Processes all events of an engine up to now.
    #[inline(always)]
    pub fn poll(&mut self, station: usize, now: Time, outputs: &mut Vec<Output<PacketId>>) {
        self.stations[station].engine.poll(now, outputs);
    }

    /// Accepts a frame that enters by a port, from `time` on.
    #[inline(always)]
    pub fn receive(&mut self, station: usize, time: Time, port: PortId, descriptor: Descriptor, packet: PacketId) {
        self.stations[station].engine.receive(time, port, descriptor, packet);
    }

    /// Sends a packet out of a port.
    #[inline(always)]
    pub fn transmit(&mut self, station: usize, time: Time, port: PortId, descriptor: Descriptor, packet: PacketId) {
        self.stations[station].engine.transmit(time, port, descriptor, packet);
    }

    /// Returns the router engine of a node.
    pub fn of_node(&self, node: usize) -> usize {
        let found = self.stations.iter().position(|station| station.runs == Runs::Router(node));
        found.expect("a router has an engine")
    }

    /// Admits the packet of a question to a port. Returns the drop reason, if any.
    pub fn admit(
        &mut self,
        station: usize,
        now: Time,
        port: PortId,
        descriptor: &mut Descriptor,
    ) -> Option<DropReason> {
        self.stations[station].engine.admit(now, port, descriptor)
    }

    /// Settles the output of a port, as the arrival of a packet does.
    pub fn settle_outbound(&mut self, station: usize, now: Time, port: PortId) {
        self.stations[station].engine.settle_outbound(now, port);
    }

    /// Returns the levels of the token buckets of a port's policy.
    pub fn buckets(&self, station: usize, now: Time, port: PortId, side: Side) -> Vec<ClassBuckets> {
        self.stations[station].engine.buckets(now, port, side)
    }

    /// Returns the time of a frame from a port to its departure; none if it varies.
    pub fn delay_out(&self, station: usize, port: PortId) -> Option<Duration> {
        self.stations[station].engine.delay_out(port)
    }

    /// Returns the counters of an engine at one port.
    pub fn interface_counters(
        &mut self,
        station: usize,
        now: Time,
        port: PortId,
        rest: &dyn Fn(&PacketId) -> HeaderRest,
    ) -> Counters {
        self.stations[station].engine.counters_with(now, Some(port), rest)
    }

    /// Returns the counters of an engine; `rest` has the properties of a packet's headers that the engine lacks.
    pub fn counters(&mut self, station: usize, now: Time, rest: &dyn Fn(&PacketId) -> HeaderRest) -> Counters {
        self.stations[station].engine.counters_with(now, None, rest)
    }
}
