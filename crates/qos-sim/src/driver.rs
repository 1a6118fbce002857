//! The run of time: takes one event after the other and lets it happen.

use std::collections::BTreeMap;
use std::io::{self, Write};

use qos_core::config::ConfigError;
use qos_core::{Departure, Descriptor, DropReason, Duration, Engine, Output, PortId, Side, Time};

use crate::agenda::{Agenda, Event};
use crate::capture::{Filter, Hop, Recorder};
use crate::host::Interface;
use crate::network::{peer, Network, Runs, LONGEST_NS};
use crate::packet::{describe, Content, Packet, PacketId, Pool, Way, INITIAL_TTL};
use crate::report::{HostReport, PacketsReport, Report, RouterReport};
use crate::scenario::{Capture, NodeKind, Scenario, FORMAT};
use crate::seed::Seed;
use crate::tcp::Segment;
use crate::traffic::{lay_out, Kind, Traffic, MOST_PARTS};
use crate::transfer::{sender, Transfer};
use crate::udp::{Datagram, Step};

/// Latest wall time that virtual time 0 may stand for, in nanoseconds since 1970: with the longest times it fits 64 bits.
const LATEST_EPOCH_NS: u64 = 1 << 63;
/// No route.
const NOWHERE: u32 = u32::MAX;

/// A scenario, ready to run.
#[derive(Debug)]
pub struct Simulation {
    world: World,
    captures: Vec<(Capture, Filter)>,
}

/// An engine and when it is next due.
#[derive(Debug)]
struct Station {
    engine: Engine<PacketId>,
    runs: Runs,
    /// The earliest event for it that is to come.
    due: Option<Time>,
}

/// The drops that no engine counts.
#[derive(Debug, Default)]
struct Lost {
    by_engine: [u64; DropReason::ALL.len()],
    expired: u64,
}

#[derive(Debug)]
struct World {
    start: Time,
    network: Network,
    stations: Vec<Station>,
    /// By end of a link; of hosts only.
    interfaces: Vec<Option<Interface>>,
    /// By node and number of the destination: the end by which to send.
    next: Vec<Vec<u32>>,
    traffic: Traffic,
    pool: Pool,
    agenda: Agenda,
    hosts: BTreeMap<usize, HostReport>,
    samples: BTreeMap<usize, RouterReport>,
    sample_ns: u64,
    drain_ns: u64,
    draining: bool,
    /// Streams whose result is not there yet.
    open: usize,
    offered: u64,
    delivered: u64,
    lost: Lost,
    /// Captures by end of a link.
    seen: Vec<Vec<usize>>,
    outputs: Vec<Output<PacketId>>,
    segments: Vec<Segment>,
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
        let route = |node: usize| {
            let to = |address| network.next_hop(node, address).ok().flatten().map_or(NOWHERE, |end| end as u32);
            traffic.addresses.iter().map(|address| to(*address)).collect::<Vec<u32>>()
        };
        let next = (0..network.nodes.len()).map(route).collect();
        let interface = |(number, end): (usize, &crate::network::End)| {
            let node = &network.nodes[end.node];
            let random = Seed::new(scenario.seed).with("host").with(&node.name).with(&end.interface).random();
            let _ = number;
            (node.kind == NodeKind::Host).then(|| Interface::new(end.rate_bps, scenario.host_jitter_ns, random, start))
        };
        let interfaces = network.ends.iter().enumerate().map(interface).collect();
        let of_kind =
            |kind| network.nodes.iter().enumerate().filter(move |(_, node)| node.kind == kind).map(|(n, _)| n);
        let hosts = of_kind(NodeKind::Host).map(|node| (node, HostReport::default())).collect();
        let samples = of_kind(NodeKind::Router).map(|node| (node, RouterReport::default())).collect();
        let stations = engines
            .into_iter()
            .zip(&network.runs)
            .map(|(engine, runs)| Station { engine, runs: *runs, due: None })
            .collect();
        let open = traffic.streams.iter().filter(|stream| !stream.complete).count();
        let world = World {
            start,
            stations,
            interfaces,
            next,
            traffic,
            pool: Pool::default(),
            agenda: Agenda::default(),
            hosts,
            samples,
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
        };
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
        let mut running = Running { world: self.world, recorders: recorders.collect::<io::Result<_>>()? };
        let end = running.run()?;
        for recorder in running.recorders {
            recorder.finish()?;
        }
        Ok(running.world.report(end))
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

struct Running<W: Write> {
    world: World,
    recorders: Vec<Recorder<W>>,
}

impl<W: Write> Running<W> {
    /// Lets time pass until the run ends; returns when.
    fn run(&mut self) -> io::Result<Time> {
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
        self.world.hosts.entry(node).or_default().packets_received += 1;
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
        let template = Packet {
            stream: number as u32,
            way,
            ttl: INITIAL_TTL,
            dscp: stream.dscp[way as usize],
            source_port,
            destination_port,
            content: Content::Udp { number: 0, sent: now, payload: 0 },
        };
        for segment in &out {
            transfer.leaves(way, segment);
        }
        let end = sender(way);
        for segment in out.drain(..) {
            let leaves = self.send(now, Packet { content: Content::Tcp(segment), ..template })?;
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
        let counts = world.hosts.entry(host).or_default();
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
        Ok(taken.starts)
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
            let samples = &mut self.world.samples.entry(node).or_default().samples;
            // The end may come with a sample.
            if samples.last().is_none_or(|last| last.time_ns != now.0) {
                samples.push(counters);
            }
        }
        Ok(())
    }
}

impl World {
    fn begin(&mut self) {
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
    fn schedule(&mut self, station: usize) {
        let each = &mut self.stations[station];
        let Some(next) = each.engine.next_deadline() else { return };
        if each.due.is_none_or(|due| next < due) {
            each.due = Some(next);
            self.agenda.put(next, Event::Engine(station as u32));
        }
    }

    /// A router sends a packet on.
    fn forward(&mut self, station: usize, node: usize, departure: Departure<PacketId>) {
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
    fn datagram_arrives(&mut self, now: Time, number: usize, sequence: u64, sent: Time, payload: u32) {
        let stream = &mut self.traffic.streams[number];
        let Kind::Udp(udp) = &mut stream.kind else { unreachable!("datagrams are of UDP") };
        let first = *self.traffic.flows[stream.flow].first_arrival.get_or_insert(now);
        udp.arrives(now, sequence, sent, payload);
        stream.arrivals.add(now.since(first), u64::from(payload));
    }

    /// A TCP sender's figures are noted, at the end of each of its intervals.
    fn note(&mut self, number: usize, now: Time) {
        let stream = &mut self.traffic.streams[number];
        let flow = &self.traffic.flows[stream.flow];
        let Kind::Tcp(transfer) = &mut stream.kind else { return };
        if transfer.stopped() {
            return;
        }
        transfer.sample_round_trip();
        self.agenda.put(now + Duration(flow.interval_ns), Event::Note(number as u32));
    }

    fn write_at(&mut self, number: usize, next: Option<Time>) {
        if let Some(next) = next {
            self.agenda.put(next, Event::Write(number as u32));
        }
    }

    /// A source has sent its last datagram: what is under way is waited for anyway.
    fn sent_all(&mut self, source: usize) {
        for stream in self.traffic.sources[source].streams.clone() {
            self.complete(stream);
        }
    }

    fn complete(&mut self, stream: usize) {
        let stream = &mut self.traffic.streams[stream];
        if !stream.complete {
            stream.complete = true;
            self.open -= 1;
        }
    }

    /// A stream is not waited for any longer.
    fn give_up(&mut self, number: usize) {
        let stream = &mut self.traffic.streams[number];
        if stream.complete {
            return;
        }
        if let Kind::Tcp(transfer) = &mut stream.kind {
            transfer.give_up();
        }
        self.complete(number);
    }

    fn report(mut self, end: Time) -> Report {
        for stream in &self.traffic.streams {
            let Kind::Tcp(transfer) = &stream.kind else { continue };
            for (end, host) in stream.hosts.iter().enumerate() {
                self.hosts.entry(*host).or_default().tcp.add(transfer.counts(end));
            }
        }
        let mut dropped = BTreeMap::new();
        for reason in DropReason::ALL {
            let count = self.lost.by_engine[reason as usize];
            if reason != DropReason::Lost && count > 0 {
                dropped.insert(reason_name(reason).to_owned(), count);
            }
        }
        let queue = self.hosts.values().map(|host| host.queue_drops).sum();
        dropped
            .extend([("host_queue", queue), ("ttl", self.lost.expired)].map(|(name, count)| (name.to_owned(), count)));
        dropped.retain(|_, count| *count > 0);
        let named = |node: usize| self.network.nodes[node].name.clone();
        Report {
            format: FORMAT,
            program: "qos-sim".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            virtual_ns: end.since(self.start).0,
            events: self.agenda.taken,
            flows: self.traffic.report(),
            hosts: std::mem::take(&mut self.hosts).into_iter().map(|(node, host)| (named(node), host)).collect(),
            routers: std::mem::take(&mut self.samples).into_iter().map(|(node, each)| (named(node), each)).collect(),
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
