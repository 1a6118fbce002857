//! The run of time: takes one event after the other and lets it happen.

use std::io::{self, Write};

use qos_core::{Descriptor, DropReason, Duration, Output, PortId, Side, Time};

use crate::agenda::Event;
use crate::capture::{Hop, Recorder};
use crate::network::{peer, Runs};
use crate::packet::{describe, Content, Packet, PacketId, Way, INITIAL_TTL};
use crate::scenario::NodeKind;
use crate::tcp::Segment;
use crate::traffic::Kind;
use crate::transfer::{sender, Transfer};
use crate::udp::{Datagram, Step};
use crate::world::World;

/// A run.
pub(crate) struct Running<W: Write> {
    pub world: World,
    /// By capture.
    pub recorders: Vec<Recorder<W>>,
}

impl<W: Write> Running<W> {
    /// Lets time pass until the run ends; returns the network as it is then, and when.
    pub fn run(mut self) -> io::Result<(World, Time)> {
        let end = self.pass_time()?;
        for recorder in self.recorders {
            recorder.finish()?;
        }
        Ok((self.world, end))
    }

    fn pass_time(&mut self) -> io::Result<Time> {
        self.world.begin();
        while let Some((now, event)) = self.world.agenda.take() {
            match event {
                Event::Engine(station) => self.engine_due(station as usize, now)?,
                Event::Datagram(source) => self.datagram_due(source as usize, now)?,
                Event::Connect(stream) => {
                    self.with_transfer(stream as usize, Way::Forward, now, |transfer, out| transfer.connect(now, out))?;
                }
                Event::Write(stream) => self.write_due(stream as usize, now)?,
                Event::Stop(stream) => {
                    self.with_transfer(stream as usize, Way::Forward, now, |transfer, out| transfer.stop(now, out))?;
                }
                Event::Timer(end) => {
                    let (stream, end) = ((end / 2) as usize, (end % 2) as usize);
                    self.with_transfer(stream, [Way::Forward, Way::Backward][end], now, |transfer, out| {
                        transfer.timer(end, now, out);
                    })?;
                }
                Event::Note(stream) => self.world.note(stream as usize, now),
                Event::Received(stream) => self.world.complete(stream as usize),
                Event::GiveUp(stream) => self.world.give_up(stream as usize),
                Event::Sample => {
                    self.world.agenda.put(now + Duration(self.world.sample_ns), Event::Sample);
                    self.sample(now)?;
                }
                Event::Drain => self.world.draining = true,
                Event::End => {
                    self.sample(now)?;
                    return Ok(now);
                }
            }
            if self.world.draining && self.world.open == 0 && self.world.pool.live() == 0 {
                self.sample(now)?;
                return Ok(now);
            }
        }
        unreachable!("the end is on the agenda")
    }

    /// An engine's deadline has come, if that event is still the one that counts.
    fn engine_due(&mut self, station: usize, now: Time) -> io::Result<()> {
        if self.world.stations[station].due != Some(now) {
            return Ok(());
        }
        self.world.stations[station].due = None;
        self.settle(station, now)?;
        self.world.schedule(station);
        Ok(())
    }

    /// Lets an engine do everything up to now, and takes on what comes out.
    fn settle(&mut self, station: usize, now: Time) -> io::Result<()> {
        let mut outputs = std::mem::take(&mut self.world.outputs);
        // What has come in goes on to the way out before that is settled.
        self.world.stations[station].engine.poll_inside(now, Duration::ZERO, &mut outputs);
        for output in outputs.drain(..) {
            self.take_on(station, now, output)?;
        }
        self.world.stations[station].engine.poll(now, &mut outputs);
        for output in outputs.drain(..) {
            self.take_on(station, now, output)?;
        }
        self.world.outputs = outputs;
        Ok(())
    }

    fn take_on(&mut self, station: usize, now: Time, output: Output<PacketId>) -> io::Result<()> {
        match output {
            Output::Dropped(dropped) => {
                if dropped.towards == Side::Inside && dropped.reason != DropReason::Lost {
                    self.see_port(station, dropped.port, Side::Inside, now, dropped.time, dropped.payload)?;
                }
                self.world.lost.by_engine[dropped.reason as usize] += 1;
                self.world.pool.take(dropped.payload);
                Ok(())
            }
            Output::Departure(departure) => {
                debug_assert!(departure.time <= now);
                match (departure.side, self.world.stations[station].runs) {
                    (Side::Inside, Runs::Router(node)) => {
                        self.see_port(station, departure.port, Side::Inside, now, departure.time, departure.payload)?;
                        self.world.forward(station, node, departure);
                        Ok(())
                    }
                    (Side::Inside, Runs::Line) => {
                        let from = self.world.network.ports[station][usize::from(departure.port.0)];
                        self.arrive(peer(from), now, departure.descriptor, departure.payload)
                    }
                    (Side::Wire, _) => {
                        self.world.pool.get_mut(departure.payload).dscp = departure.descriptor.dscp;
                        self.see_port(station, departure.port, Side::Wire, now, departure.time, departure.payload)?;
                        let from = self.world.network.ports[station][usize::from(departure.port.0)];
                        self.arrive(peer(from), now, departure.descriptor, departure.payload)
                    }
                }
            }
        }
    }

    /// A packet has come along a link to its end at a node.
    fn arrive(&mut self, end: usize, now: Time, descriptor: Descriptor, packet: PacketId) -> io::Result<()> {
        let at = &self.world.network.ends[end];
        let node = at.node;
        if self.world.network.nodes[node].kind == NodeKind::Router {
            let (engine, port) = (at.engine, at.port);
            self.world.stations[engine].engine.receive(now, port, descriptor, packet);
            self.world.schedule(engine);
            return Ok(());
        }
        self.see(end, Side::Inside, now, now, packet)?;
        let packet = self.world.pool.take(packet);
        self.world.delivered += 1;
        self.world.hosts[node].packets_received += 1;
        match &packet.content {
            Content::Udp { number, sent, payload } => {
                self.world.datagram_arrives(now, packet.stream as usize, *number, *sent, *payload);
                Ok(())
            }
            Content::Tcp(segment) => self.segment_arrives(now, packet.stream as usize, packet.way, segment),
        }
    }

    /// Lets something happen to a TCP stream at the end that sends that way, sends what comes of it and sees to its timer.
    fn with_transfer(
        &mut self,
        number: usize,
        way: Way,
        now: Time,
        act: impl FnOnce(&mut Transfer, &mut Vec<Segment>),
    ) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.world.segments);
        let stream = &mut self.world.traffic.streams[number];
        let Kind::Tcp(transfer) = &mut stream.kind else { return Ok(()) };
        act(transfer, &mut out);
        let ports = (stream.local_port, stream.port);
        let (source_port, destination_port) = match way {
            Way::Forward => ports,
            Way::Backward => (ports.1, ports.0),
        };
        let dscp = stream.dscp[way as usize];
        let packet = |segment| Packet {
            stream: number as u32,
            way,
            ttl: INITIAL_TTL,
            dscp,
            source_port,
            destination_port,
            content: Content::Tcp(segment),
        };
        for segment in &out {
            transfer.leaves(way, segment);
        }
        let end = sender(way);
        for segment in out.drain(..) {
            let leaves = self.send(now, packet(segment))?;
            if let Kind::Tcp(transfer) = &mut self.world.traffic.streams[number].kind {
                transfer.leaves_queue(end, &segment, leaves);
            }
        }
        self.world.segments = out;
        if let Kind::Tcp(transfer) = &mut self.world.traffic.streams[number].kind {
            if let Some(due) = transfer.reschedule(end) {
                self.world.agenda.put(due, Event::Timer((number * 2 + end) as u32));
            }
        }
        Ok(())
    }

    fn segment_arrives(&mut self, now: Time, number: usize, way: Way, segment: &Segment) -> io::Result<()> {
        // What it leads to goes the other way.
        self.with_transfer(number, way.back(), now, |transfer, out| transfer.arrives(now, way, segment, out))?;
        let stream = &mut self.world.traffic.streams[number];
        let flow = &self.world.traffic.flows[stream.flow];
        let Kind::Tcp(transfer) = &mut stream.kind else { return Ok(()) };
        // The stream has its own time, unless it lasts as long as the others.
        let over = if flow.background { self.world.traffic.end } else { now + Duration(flow.duration_ns) };
        match way {
            Way::Forward => {
                if transfer.established(1, now) && !flow.background {
                    self.world.agenda.put(over, Event::Received(number as u32));
                }
                let bytes = transfer.take_received();
                if let Some(elapsed) = transfer.receiving(now) {
                    let counts = if flow.background { now < over } else { elapsed.0 < flow.duration_ns };
                    if bytes > 0 && counts {
                        transfer.counted += bytes;
                        stream.arrivals.add(elapsed, bytes);
                    }
                }
                Ok(())
            }
            Way::Backward => {
                if !transfer.established(0, now) {
                    return Ok(());
                }
                let (interval, duration) = (flow.interval_ns, over.since(now).0);
                self.world.agenda.put(over, Event::Stop(number as u32));
                self.world.agenda.put(now + Duration(interval), Event::Note(number as u32));
                let mut next = None;
                self.with_transfer(number, Way::Forward, now, |transfer, out| {
                    next = transfer.begin(now, duration, out)
                })?;
                self.world.write_at(number, next);
                Ok(())
            }
        }
    }

    fn write_due(&mut self, number: usize, now: Time) -> io::Result<()> {
        let mut next = None;
        self.with_transfer(number, Way::Forward, now, |transfer, out| next = transfer.write(now, out))?;
        self.world.write_at(number, next);
        Ok(())
    }

    /// A source has something to do.
    fn datagram_due(&mut self, source: usize, now: Time) -> io::Result<()> {
        loop {
            match self.world.traffic.sources[source].step(now) {
                Step::Wait(due) => {
                    self.world.agenda.put(due, Event::Datagram(source as u32));
                    return Ok(());
                }
                Step::Done => {
                    self.world.sent_all(source);
                    return Ok(());
                }
                Step::Send(Datagram { stream, port, payload }) => {
                    let each = &mut self.world.traffic.streams[stream];
                    let Kind::Udp(udp) = &mut each.kind else { unreachable!("datagrams are of UDP") };
                    let content = Content::Udp { number: udp.sends(payload), sent: now, payload };
                    let packet = Packet {
                        stream: stream as u32,
                        way: Way::Forward,
                        ttl: INITIAL_TTL,
                        dscp: each.dscp[0],
                        source_port: each.local_port,
                        destination_port: port,
                        content,
                    };
                    self.send(now, packet)?;
                }
            }
        }
    }

    /// A host sends a packet. Returns when it has left the host's queue, which is at once when there is no room for it.
    fn send(&mut self, now: Time, packet: Packet) -> io::Result<Time> {
        let world = &mut self.world;
        world.offered += 1;
        let stream = &world.traffic.streams[packet.stream as usize];
        let (host, to) = match packet.way {
            Way::Forward => (stream.hosts[0], stream.to[1]),
            Way::Backward => (stream.hosts[1], stream.to[0]),
        };
        let end = world.next[host][to] as usize;
        let at = &world.network.ends[end];
        let descriptor = describe(&stream.descriptors[packet.way as usize], &packet, at.framing);
        let counts = &mut world.hosts[host];
        counts.packets_sent += 1;
        let interface = world.interfaces[end].as_mut().expect("a host's end has an interface");
        let Some(taken) = interface.send(now, descriptor.counted_len, descriptor.line_len) else {
            counts.queue_drops += 1;
            return Ok(now);
        };
        let (engine, port) = (at.engine, at.port);
        let id = world.pool.put(packet);
        world.stations[engine].engine.receive(taken.entered, port, descriptor, id);
        world.schedule(engine);
        self.see(end, Side::Wire, now, taken.starts, id)?;
        Ok(taken.leaves)
    }

    /// A packet passes a port of an engine, if there is a capture.
    fn see_port(
        &mut self,
        station: usize,
        port: PortId,
        side: Side,
        now: Time,
        time: Time,
        packet: PacketId,
    ) -> io::Result<()> {
        let end = self.world.network.ports[station][usize::from(port.0)];
        self.see(end, side, now, time, packet)
    }

    /// A packet passes an end of a link (`Side::Wire`: it goes out) at `time`, which is not before `now`.
    fn see(&mut self, end: usize, side: Side, now: Time, time: Time, packet: PacketId) -> io::Result<()> {
        if self.world.seen[end].is_empty() || self.recorders.is_empty() {
            return Ok(());
        }
        let packet = self.world.pool.get(packet);
        let stream = &self.world.traffic.streams[packet.stream as usize];
        let (from, to) = match side {
            Side::Wire => (end, peer(end)),
            Side::Inside => (peer(end), end),
        };
        let [near, far] = stream.addresses;
        let (source, destination) = match packet.way {
            Way::Forward => (near, far),
            Way::Backward => (far, near),
        };
        for &capture in &self.world.seen[end] {
            if let Some(recorder) = self.recorders.get_mut(capture) {
                recorder.see(now, time, packet, Hop { from, to, source, destination })?;
            }
        }
        Ok(())
    }

    /// Reads the routers' counters.
    fn sample(&mut self, now: Time) -> io::Result<()> {
        for station in 0..self.world.stations.len() {
            let Runs::Router(node) = self.world.stations[station].runs else { continue };
            self.settle(station, now)?;
            let counters = self.world.stations[station].engine.counters(now, None);
            self.world.schedule(station);
            let samples = &mut self.world.routers[node].samples;
            // The end may come with a sample.
            if samples.last().is_none_or(|last| last.time_ns != now.0) {
                samples.push(counters);
            }
        }
        Ok(())
    }
}
