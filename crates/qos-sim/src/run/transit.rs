//! Packets in transit between hosts, through the engines of routers and lines.

use std::io::{self, Write};

use qos_core::frame::HeaderRest;
use qos_core::wire::ethernet::Tag;
use qos_core::{Departure, Descriptor, DropReason, Output, PortId, Side, Time};

use super::routes::Next;
use super::Run;
use crate::capture::Hop;
use crate::network::{peer, Runs};
use crate::packet::{describe, Content, Packet, PacketId};
use crate::samples::Sample;
use crate::scenario::NodeKind;
use crate::tcp::Segment;

impl<W: Write> Run<'_, W> {
    /// Handles the deadline of an engine.
    pub(super) fn engine_due(&mut self, station: usize, now: Time) -> io::Result<()> {
        self.settle(station, now)?;
        self.world.schedule(station);
        Ok(())
    }

    /// Runs an engine up to now, and handles its outputs.
    pub(super) fn settle(&mut self, station: usize, now: Time) -> io::Result<()> {
        let mut outputs = std::mem::take(&mut self.outputs);
        // Received frames move on to the output before the output is settled.
        self.world.engines.poll_inside(station, now, &mut outputs);
        for output in &outputs {
            self.admit_packet(station, now, output)?;
        }
        outputs.clear();
        self.world.engines.poll(station, now, &mut outputs);
        for output in &outputs {
            self.admit_packet(station, now, output)?;
        }
        outputs.clear();
        self.outputs = outputs;
        Ok(())
    }

    fn admit_packet(&mut self, station: usize, now: Time, output: &Output<PacketId>) -> io::Result<()> {
        let departure = match output {
            Output::Departure(departure) => departure,
            Output::Dropped(dropped) => {
                if dropped.payload == self.traced {
                    self.record_outcome(now, output);
                    return Ok(());
                }
                if dropped.towards == Side::Inside && dropped.reason != DropReason::Lost {
                    self.capture_port(station, dropped.port, Side::Inside, now, dropped.time, dropped.payload)?;
                }
                self.world.tally.count_dropped(dropped.reason);
                self.world.pool.release(dropped.payload);
                return Ok(());
            }
        };
        debug_assert!(departure.time <= now);
        let Departure { time, port, side, ref descriptor, payload } = *departure;
        if payload == self.traced {
            self.record_outcome(now, output);
            return Ok(());
        }
        match (side, self.world.engines.owner(station)) {
            (Side::Inside, Runs::Router(node)) => {
                self.capture_port(station, port, Side::Inside, now, time, payload)?;
                match self.world.routes.next(node, self.world.pool.get(payload).destination) {
                    Next::Here => return self.reaches(node, now, time, payload),
                    Next::By(end) => self.world.forward(station, Some(end), departure),
                    Next::Nowhere => self.world.forward(station, None, departure),
                }
                return Ok(());
            }
            (Side::Inside, Runs::Line) => {}
            (Side::Wire, _) => {
                let packet = self.world.pool.get_mut(payload);
                (packet.dscp, packet.ecn) = (descriptor.dscp, descriptor.ecn);
                packet.tag = (descriptor.tags > 0).then_some(Tag { cos: descriptor.cos, vlan: descriptor.vlan });
                self.capture_port(station, port, Side::Wire, now, time, payload)?;
            }
        }
        let from = self.world.network.ports[station][usize::from(port.0)];
        self.arrive(peer(from), now, descriptor, payload)
    }

    /// Handles a packet that arrived over a link at its end at a node.
    fn arrive(&mut self, end: usize, now: Time, descriptor: &Descriptor, id: PacketId) -> io::Result<()> {
        let at = &self.world.network.ends[end];
        let node = at.node;
        if self.world.network.nodes[node].kind == NodeKind::Router {
            let (engine, port) = (at.engine, at.port);
            // Properties beyond its bytes that the previous node knew stay there.
            let descriptor = Descriptor { label: None, qos_group: 0, discard_class: 0, ..*descriptor };
            self.world.engines.receive(engine, now, port, descriptor, id);
            self.world.schedule(engine);
            return Ok(());
        }
        self.capture(end, Side::Inside, now, now, id)?;
        self.world.hosts.count_received(node);
        let packet = self.world.pool.get(id);
        match &packet.content {
            Content::Message { .. } => self.reaches(node, now, now, id),
            Content::Udp { stream, number, sent, payload } => {
                let (stream, number, sent, payload) = (*stream as usize, *number, *sent, *payload);
                self.world.pool.release(id);
                self.world.tally.count_delivered();
                self.world.datagram_arrives(now, stream, number, sent, payload);
                Ok(())
            }
            Content::Tcp { transfer, segment } => {
                let segment = Segment { ecn: packet.ecn, ..*segment };
                let (transfer, way) = (*transfer as usize, packet.way);
                self.world.pool.release(id);
                self.world.tally.count_delivered();
                self.segment_arrives(now, transfer, way, &segment)
            }
        }
    }

    /// Sends a packet of a host. Returns the time at which it leaves the host's queue: now if the queue drops it.
    pub(super) fn send(&mut self, now: Time, packet: Packet) -> io::Result<Time> {
        let world = &mut self.world;
        world.tally.count_offered();
        let way = &world.traffic.streams[packet.stream as usize].ways[packet.way as usize];
        let end = way.end;
        let descriptor = describe(&way.descriptor, &packet, way.framing);
        let Some(taken) = world.hosts.send(way.host, end, now, &descriptor) else { return Ok(now) };
        let at = &world.network.ends[end];
        let (engine, port) = (at.engine, at.port);
        let id = world.pool.put(packet);
        world.engines.receive(engine, taken.entered, port, descriptor, id);
        world.schedule(engine);
        self.capture(end, Side::Wire, now, taken.starts, id)?;
        Ok(taken.leaves)
    }

    /// Captures a packet that passes a port of an engine, if there is a capture.
    #[inline]
    fn capture_port(
        &mut self,
        station: usize,
        port: PortId,
        side: Side,
        now: Time,
        time: Time,
        packet: PacketId,
    ) -> io::Result<()> {
        let end = self.world.network.ports[station][usize::from(port.0)];
        self.capture(end, side, now, time, packet)
    }

    /// Captures a packet that passes an end of a link (`Side::Wire`: outgoing) at `time`, which is not before `now`.
    #[inline]
    pub(super) fn capture(
        &mut self,
        end: usize,
        side: Side,
        now: Time,
        time: Time,
        packet: PacketId,
    ) -> io::Result<()> {
        match self.recorders.is_captured(end) {
            true => self.record(end, side, now, time, packet),
            false => Ok(()),
        }
    }

    #[inline(never)]
    fn record(&mut self, end: usize, side: Side, now: Time, time: Time, packet: PacketId) -> io::Result<()> {
        let message = self.world.pool.message(packet);
        let packet = self.world.pool.get(packet);
        let (from, to) = match side {
            Side::Wire => (end, peer(end)),
            Side::Inside => (peer(end), end),
        };
        let [source, destination] =
            [packet.source, packet.destination].map(|number| self.world.traffic.addresses[number as usize]);
        self.recorders.record(end, now, time, (packet, message), Hop { from, to, source, destination })
    }

    /// Reads the routers' counters.
    pub(super) fn sample(&mut self, now: Time) -> io::Result<()> {
        // The end may come with a sample.
        let again = self.world.sampled.replace(now) == Some(now);
        for station in 0..self.world.engines.len() {
            let Runs::Router(node) = self.world.engines.owner(station) else { continue };
            self.settle(station, now)?;
            let pool = &self.world.pool;
            // A simulated packet's identification is 0, as in captures.
            let rest = |packet: &PacketId| HeaderRest { id: 0, ttl: pool.get(*packet).ttl };
            let counters = self.world.engines.counters(station, now, &rest);
            self.world.schedule(station);
            if !again {
                let sample = Sample {
                    elapsed: self.world.elapsed(now),
                    counters,
                    ip_sla: self.world.agents.report(node, now),
                    process_busy_ns: self.world.agents.process_busy_ns(node),
                };
                self.samples.take(&self.world.network.nodes[node].name, sample)?;
            }
        }
        Ok(())
    }
}
