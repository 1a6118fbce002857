//! Frames between the ports' interfaces and the engine, in event time.
//!
//! A round ([`Dataplane::round`]) takes what has arrived, lets the engine's input side catch up with the clock, brings what leaves it
//! through the kernel, and only then lets the output side catch up. So after a stall policers, queues and shapers see
//! what they would have seen on time.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::thread;

use qos_core::config::PortConfig;
use qos_core::counters::Resolved;
use qos_core::frame::{parse, rewrite_cos, rewrite_dscp};
use qos_core::wire::Framing;
use qos_core::{
    ConfigError, Counters, Departure, Descriptor, Duration, Engine, Output, PortId, PortsConfig, RouterConfig, Side,
    Time,
};

use crate::bridge::{retag, Bridge, Tag};
use crate::clock::Clock;
use crate::frame::{stamp_reply, TransitKeys, LONGEST};
use crate::health::{Health, Lateness};
use crate::ledger::{Ledger, Transit};
use crate::netdev;
use crate::pool::{Frame, Pool};
use crate::ports::other_end;
use crate::ring::{Ring, BATCH};
use crate::sla::{self, Agent, Namespace};

/// Frames taken from one link in one round, so that the others have their turn.
const TAKEN_PER_ROUND: usize = 256;
/// Frames of the router's own that may wait for the engine to catch up with their time; further ones wait in the ring.
const WAITING: usize = 4096;
/// Frames that may be in transit through the kernel.
const IN_TRANSIT: usize = 4096;
/// A frame that has not come back from the kernel after this time was for the router itself, or dropped.
const TRANSIT_NS: u64 = 1_000_000_000;
/// Slots of the ring on the router's side. A batch of forwarded frames is taken out right after it was put in, so this is for the router's own; and
/// a small ring stays in the processor's cache.
const INSIDE_SLOTS: usize = 256;
/// Bounds of the slots of a ring on a link.
const WIRE_SLOTS: std::ops::RangeInclusive<u64> = 512..=16_384;
/// Shortest frame on an Ethernet link with all its overhead, bytes.
const SHORTEST_ON_WIRE: u64 = 84;

/// A frame in the engine.
#[derive(Debug)]
struct Held {
    frame: Frame,
    /// Markings as they are in the bytes.
    dscp: u8,
    cos: u8,
}

/// A frame on its way to an interface.
#[derive(Debug)]
struct Sending {
    time: Time,
    frame: Frame,
}

/// A frame that came from the router's side.
#[derive(Debug)]
struct Arrival {
    event: Time,
    descriptor: Descriptor,
    held: Held,
}

/// One of the two Linux interfaces of a port.
#[derive(Debug)]
struct Interface {
    name: String,
    ring: Ring,
    sending: Vec<Sending>,
    /// The kernel's count of frames that it could not deliver, when the health was last cleared.
    unsent_before: u64,
}

#[derive(Debug)]
struct Port {
    id: PortId,
    framing: Framing,
    way: Way,
    wire: Interface,
    /// Frames from the router's side that have not been given to the engine yet.
    arrivals: Vec<Arrival>,
}

/// Where a port's frames from the link go, and those for it come from.
#[derive(Debug)]
enum Way {
    /// The router's kernel, by this interface.
    Kernel(Interface),
    /// The link of another port, by its index: the two are the ends of a line.
    Line(usize),
}

/// What is counted here; the rest of [`Health`] is read from the kernel when asked for.
#[derive(Debug, Default)]
struct Counts {
    received: u64,
    transmitted: u64,
    malformed: u64,
    unsent: u64,
    /// Ring overflows before the last clearing.
    lost_before: u64,
    /// Late arrivals before the last clearing.
    late_before: u64,
}

/// All ports and the engine.
pub struct Dataplane {
    /// Event time.
    clock: Clock,
    engine: Engine<Held>,
    ports: Vec<Port>,
    pool: Pool,
    keys: TransitKeys,
    ledger: Ledger,
    /// The ports that switch instead of handing frames to the kernel.
    bridge: Bridge,
    lateness: Lateness,
    counts: Counts,
    sla: Agent,
    /// Time that the engine has reached.
    reached: Time,
    /// The latest event time of a frame that was handed to the kernel.
    passed: Time,
    /// Some ports are the ends of a line.
    line: bool,
    // Kept between rounds for their memory.
    outputs: Vec<Output<Held>>,
    inward: Vec<Departure<Held>>,
    due: Vec<(PortId, Arrival)>,
    copies: Vec<(PortId, Option<Tag>)>,
    bytes: Vec<u8>,
}

/// Why the data plane cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An interface is missing.
    #[error("interface {name:?} ({place}) does not exist in this network namespace, which has {existing}; create it or correct the ports file")]
    Missing {
        /// Its name.
        name: String,
        /// Where it is named in the ports file.
        place: String,
        /// Those that exist.
        existing: String,
    },
    /// A socket cannot be opened.
    #[error("interface {name:?} ({place}): {source}")]
    Socket {
        /// Name of the interface.
        name: String,
        /// Where it is named in the ports file.
        place: String,
        /// The system's reason, with what was being done.
        source: io::Error,
    },
    /// The engine refuses the wiring.
    #[error("ports file: {0}")]
    Wiring(#[from] qos_core::ConfigError),
}

impl Interface {
    fn open(name: &str, place: &str, slots: usize) -> Result<Self, StartError> {
        let (name, place) = (name.to_owned(), place.to_owned());
        let Some(index) = netdev::index(&name) else {
            let existing = netdev::names().join(", ");
            return Err(StartError::Missing { name, place, existing });
        };
        match Ring::open(index, slots) {
            Ok(ring) => Ok(Self { name, ring, sending: Vec::new(), unsent_before: 0 }),
            Err(source) => Err(StartError::Socket { name, place, source }),
        }
    }

    /// Sends what waits, in order, and calls `batch` after each system call with the frames that the kernel took.
    /// Returns how many it would not take.
    fn flush(&mut self, pool: &mut Pool, mut batch: impl FnMut(&[Sending])) -> u64 {
        let mut refused = 0;
        let mut rest = &self.sending[..];
        while !rest.is_empty() {
            let count = self.ring.send(rest.iter().map(|s| pool.get(&s.frame)));
            batch(&rest[..count]);
            rest = &rest[count..];
            // The kernel stops at a frame that it refuses: go on behind it, unless the whole batch was taken.
            if count < BATCH && !rest.is_empty() {
                refused += 1;
                rest = &rest[1..];
            }
        }
        for sending in self.sending.drain(..) {
            pool.free(sending.frame);
        }
        refused
    }
}

impl Port {
    /// Opens both interfaces of a port, at the same time: the kernel keeps each one waiting for some milliseconds. The end of a line
    /// whose other end is port `peer` has one only.
    fn open(
        id: PortId,
        framing: Framing,
        name: &str,
        config: &PortConfig,
        peer: Option<usize>,
        ring_ns: u64,
    ) -> Result<Self, StartError> {
        let frames =
            u128::from(config.link.rate_bps) * u128::from(ring_ns) / (8 * u128::from(SHORTEST_ON_WIRE) * 1_000_000_000);
        let slots = u64::try_from(frames).unwrap_or(u64::MAX).clamp(*WIRE_SLOTS.start(), *WIRE_SLOTS.end());
        let (way, wire) = thread::scope(|scope| {
            let open = || match peer {
                Some(peer) => Ok(Way::Line(peer)),
                None => {
                    let place = format!("ports.{name}.inside");
                    Interface::open(&config.inside, &place, INSIDE_SLOTS).map(Way::Kernel)
                }
            };
            let way = scope.spawn(open);
            let wire = Interface::open(&config.wire, &format!("ports.{name}.wire"), slots as usize);
            (way.join().expect("opening does not panic"), wire)
        });
        Ok(Self { id, framing, way: way?, wire: wire?, arrivals: Vec::new() })
    }

    /// The interface that leads to the kernel; the end of a line has none.
    fn inside(&mut self) -> Option<&mut Interface> {
        match &mut self.way {
            Way::Kernel(inside) => Some(inside),
            Way::Line(_) => None,
        }
    }

    fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        let inside = match &self.way {
            Way::Kernel(inside) => Some(inside),
            Way::Line(_) => None,
        };
        inside.into_iter().chain([&self.wire])
    }

    fn interfaces_mut(&mut self) -> impl Iterator<Item = &mut Interface> {
        let inside = match &mut self.way {
            Way::Kernel(inside) => Some(inside),
            Way::Line(_) => None,
        };
        inside.into_iter().chain([&mut self.wire])
    }

    /// Both interfaces, given up.
    fn into_interfaces(self) -> impl Iterator<Item = Interface> {
        let inside = match self.way {
            Way::Kernel(inside) => Some(inside),
            Way::Line(_) => None,
        };
        inside.into_iter().chain([self.wire])
    }
}

impl Dataplane {
    /// Opens all ports. The rings on the links have room for `ring_ns` of shortest frames at the link's rate, within bounds. IP SLA's
    /// sockets are opened in `namespace`.
    ///
    /// # Errors
    /// When an interface is missing or cannot be opened, or the engine refuses the wiring.
    pub fn open(wiring: &PortsConfig, ring_ns: u64, budget_ns: u64, namespace: Namespace) -> Result<Self, StartError> {
        let clock = Clock::new();
        let now = clock.now();
        let engine = Engine::new(wiring, now)?;
        let ports = thread::scope(|scope| {
            let open = |(id, name)| {
                let framing = engine.framing(id);
                let peer = other_end(wiring, name).and_then(|other| engine.port(other)).map(|p| usize::from(p.0));
                scope.spawn(move || Port::open(id, framing, name, &wiring.ports[name], peer, ring_ns))
            };
            let opening: Vec<_> = engine.ports().map(open).collect();
            opening.into_iter().map(|port| port.join().expect("opening does not panic")).collect::<Result<Vec<_>, _>>()
        })?;
        let line = ports.iter().any(|port: &Port| matches!(port.way, Way::Line(_)));
        let mut plane = Self {
            clock,
            engine,
            ports,
            pool: Pool::default(),
            keys: TransitKeys::default(),
            ledger: Ledger::new(IN_TRANSIT, TRANSIT_NS),
            bridge: Bridge::default(),
            lateness: Lateness::new(budget_ns),
            counts: Counts::default(),
            sla: Agent::new(namespace),
            reached: now,
            passed: now,
            line,
            outputs: Vec::new(),
            inward: Vec::new(),
            due: Vec::new(),
            copies: Vec::new(),
            bytes: Vec::new(),
        };
        plane.mark_undelivered();
        Ok(plane)
    }

    /// Closes all ports at the same time: the kernel keeps each socket waiting for some tens of milliseconds.
    pub fn close(self) {
        thread::scope(|scope| {
            for interface in self.ports.into_iter().flat_map(Port::into_interfaces) {
                scope.spawn(move || drop(interface));
            }
        });
    }

    /// Descriptors of the sockets: each can be read while frames wait.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.ports.iter().flat_map(Port::interfaces).map(|i| i.ring.as_raw_fd())
    }

    /// Descriptors of IP SLA's sockets.
    pub fn sla_descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.sla.descriptors()
    }

    /// One of IP SLA's sockets can be read.
    pub fn wake_sla(&mut self) {
        self.sla.wake();
    }

    /// True when a frame waits in a ring.
    pub fn ready(&self) -> bool {
        self.ports.iter().flat_map(Port::interfaces).any(|i| i.ring.ready())
    }

    /// Clears errors that sockets report because their interface went down or away, and says so. Call when a descriptor is broken.
    pub fn take_errors(&self) {
        for interface in self.ports.iter().flat_map(Port::interfaces) {
            if let Some(error) = interface.ring.take_error() {
                eprintln!("qos-router: interface {}: {error}", interface.name);
            }
        }
    }

    /// Event time now.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// When the next round is due, if nothing arrives before.
    pub fn deadline(&self) -> Option<Time> {
        let waiting = self.ports.iter().flat_map(|p| &p.arrivals).map(|a| a.event);
        waiting.chain(self.engine.next_deadline()).chain(self.sla.deadline()).min()
    }

    /// Takes what has arrived, catches up with the clock and sends what is due. What arrives within the next `ahead` passes through the
    /// kernel already, where that is possible, so that it does not leave late by the time that takes.
    pub fn round(&mut self, ahead: Duration) {
        let now = self.clock.tick();
        self.reached = self.take_from_links(now).max(self.reached);
        // IP SLA has to find everything at its time; and on a line there is no kernel to pass.
        let ahead = if self.line || !self.sla.idle() { Duration::ZERO } else { ahead };
        self.engine.poll_inside(self.reached, ahead, &mut self.outputs);
        self.dispatch();
        self.pass_through_kernel();
        self.sla.step(&self.clock);
        self.take_from_inside();
        self.take_up_arrivals();
        self.engine.poll(self.reached, &mut self.outputs);
        self.dispatch();
        for port in 0..self.ports.len() {
            self.flush_wire(port);
        }
    }

    /// Gives the engine what waits on the links. Returns up to when all that arrived has been taken.
    fn take_from_links(&mut self, now: Time) -> Time {
        let mut horizon = now;
        for port in &mut self.ports {
            let mut last = now;
            for _ in 0..TAKEN_PER_ROUND {
                let taken = port.wire.ring.take(|stamp, bytes| {
                    last = self.clock.event(stamp, now);
                    let descriptor = parse(bytes, port.framing);
                    let held = Held { frame: self.pool.put(bytes), dscp: descriptor.dscp, cos: descriptor.cos };
                    self.engine.receive(last, port.id, descriptor, held);
                });
                match taken {
                    None => break,
                    Some(Ok(())) => self.counts.received += 1,
                    Some(Err(_)) => self.counts.malformed += 1,
                }
            }
            if port.wire.ring.ready() {
                horizon = horizon.min(last);
            }
        }
        horizon
    }

    /// Sorts what came out of the engine. What goes onto a link is sent when a batch is full or the round ends.
    fn dispatch(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Dropped(dropped) => self.pool.free(dropped.payload.frame),
                Output::Departure(departure) => {
                    self.mark(&departure);
                    match departure.side {
                        Side::Inside => match self.ports[usize::from(departure.port.0)].way {
                            Way::Kernel(_) => self.inward.push(departure),
                            Way::Line(peer) => self.put_on_wire(peer, departure),
                        },
                        Side::Wire => self.put_on_wire(usize::from(departure.port.0), departure),
                    }
                }
            }
        }
        self.outputs = outputs;
    }

    fn put_on_wire(&mut self, port: usize, departure: Departure<Held>) {
        let sending = &mut self.ports[port].wire.sending;
        sending.push(Sending { time: departure.time, frame: departure.payload.frame });
        if sending.len() == BATCH {
            self.flush_wire(port);
        }
    }

    /// Writes the engine's markings into the bytes.
    fn mark(&mut self, departure: &Departure<Held>) {
        let (held, descriptor) = (&departure.payload, &departure.descriptor);
        if descriptor.dscp != held.dscp {
            rewrite_dscp(self.pool.get_mut(&held.frame), descriptor.dscp);
        }
        if descriptor.cos != held.cos {
            rewrite_cos(self.pool.get_mut(&held.frame), descriptor.cos);
        }
    }

    /// Hands frames from the links to the kernel, in the order of their event times over all ports, and takes what it sends.
    fn pass_through_kernel(&mut self) {
        let mut inward = std::mem::take(&mut self.inward);
        inward.sort_by_key(|d| d.time);
        let mut rest = inward.drain(..).peekable();
        while rest.peek().is_some() {
            let now = self.clock.now();
            for departure in rest.by_ref().take(BATCH) {
                if self.bridge.switches(departure.port) {
                    self.switch(departure);
                    continue;
                }
                let Departure { time, port, descriptor, payload, .. } = departure;
                self.passed = self.passed.max(time);
                self.sla.arriving(self.pool.get(&payload.frame), time);
                if let Some(key) = self.keys.key(self.pool.get(&payload.frame)) {
                    let Descriptor { qos_group, label, .. } = descriptor;
                    let transit = Transit { event: time, input: port, qos_group, label };
                    self.ledger.insert(now.0, key, transit);
                }
                let sending = Sending { time, frame: payload.frame };
                let inside = self.ports[usize::from(port.0)].inside();
                inside.expect("a line's frames do not come here").sending.push(sending);
            }
            for inside in self.ports.iter_mut().filter_map(Port::inside) {
                self.counts.unsent += inside.flush(&mut self.pool, |_| {});
            }
            // The kernel has forwarded them within the call: what came of it waits in the rings already.
            self.take_from_inside();
        }
        drop(rest);
        self.inward = inward;
        self.take_from_inside();
    }

    /// Gives a frame of a switched port to the ports by which it leaves.
    fn switch(&mut self, departure: Departure<Held>) {
        let Departure { time, port: input, descriptor, payload, .. } = departure;
        let mut copies = std::mem::take(&mut self.copies);
        let frame = self.pool.get(&payload.frame);
        self.bridge.forward(time, input, frame, |port, tag| copies.push((port, tag)));
        for (output, tag) in copies.drain(..) {
            retag(self.pool.get(&payload.frame), tag, &mut self.bytes);
            // One tag more can be too long for a frame that had two already.
            if self.bytes.len() > LONGEST {
                self.counts.malformed += 1;
                continue;
            }
            let port = &mut self.ports[usize::from(output.0)];
            let parsed = parse(&self.bytes, port.framing);
            let Descriptor { qos_group, label, input_port, .. } = descriptor;
            let held = Held { frame: self.pool.put(&self.bytes), dscp: parsed.dscp, cos: parsed.cos };
            let descriptor = Descriptor { qos_group, label, input_port, ..parsed };
            port.arrivals.push(Arrival { event: time, descriptor, held });
        }
        self.copies = copies;
        self.pool.free(payload.frame);
    }

    /// Takes what the router's own IP stack has sent, with its event time.
    fn take_from_inside(&mut self) {
        for port in &mut self.ports {
            let Way::Kernel(inside) = &mut port.way else { continue };
            if !inside.ring.ready() {
                continue;
            }
            let now = self.clock.now();
            while port.arrivals.len() < WAITING {
                let taken = inside.ring.take(|stamp, bytes| {
                    let mut descriptor = parse(bytes, port.framing);
                    let transit = self.keys.key(bytes).and_then(|key| self.ledger.take(now.0, key));
                    let frame = self.pool.put(bytes);
                    let event = match transit {
                        Some(transit) => {
                            descriptor.qos_group = transit.qos_group;
                            descriptor.label = transit.label;
                            descriptor.input_port = Some(transit.input);
                            transit.event
                        }
                        None => {
                            // It may be the answer to a frame that the kernel had before its time.
                            let sent = self.clock.event(stamp, now);
                            let own = self.sla.leaving(bytes, if self.passed > now { self.passed } else { sent });
                            if let Some(stamp) = own.stamp {
                                stamp_reply(self.pool.get_mut(&frame), stamp, stamp);
                            }
                            own.at
                        }
                    };
                    let held = Held { frame, dscp: descriptor.dscp, cos: descriptor.cos };
                    Arrival { event, descriptor, held }
                });
                match taken {
                    None => break,
                    Some(Err(_)) => self.counts.malformed += 1,
                    Some(Ok(arrival)) => port.arrivals.push(arrival),
                }
            }
        }
    }

    /// Gives the engine what came from the router's side up to the time that is reached, in the order of event time over all ports: a switch's
    /// ports share their memory.
    fn take_up_arrivals(&mut self) {
        for port in &mut self.ports {
            port.arrivals.sort_by_key(|a| a.event);
            let due = port.arrivals.partition_point(|a| a.event <= self.reached);
            self.due.extend(port.arrivals.drain(..due).map(|arrival| (port.id, arrival)));
        }
        self.due.sort_by_key(|(_, arrival)| arrival.event);
        for (port, Arrival { event, descriptor, held }) in self.due.drain(..) {
            self.engine.transmit(event, port, descriptor, held);
        }
    }

    /// Sends what is due on a link, and records how late it was.
    fn flush_wire(&mut self, port: usize) {
        let wire = &mut self.ports[port].wire;
        if wire.sending.is_empty() {
            return;
        }
        let (clock, lateness, counts) = (&self.clock, &mut self.lateness, &mut self.counts);
        let mut before = clock.now();
        counts.unsent += wire.flush(&mut self.pool, |batch| {
            // The frames of a batch leave one by one while the call lasts: take them as evenly spaced.
            let after = clock.now();
            let each = after.since(before).0 / batch.len().max(1) as u64;
            for (number, sending) in (1..).zip(batch) {
                let left = Time(before.0 + each * number);
                lateness.record(sending.time.0, left.0);
            }
            counts.transmitted += batch.len() as u64;
            before = after;
        });
    }

    /// Puts a complete configuration in force, or nothing. What arrived before is treated by the old one.
    ///
    /// # Errors
    /// Those of [`Engine::configure`], and a port of IP SLA that cannot be opened.
    pub fn configure(&mut self, config: &RouterConfig) -> Result<(), ConfigError> {
        self.round(Duration::ZERO);
        let sla = self.sla.prepare(config)?;
        self.engine.configure(self.reached, config)?;
        self.bridge.configure(config, self.engine.ports().map(|(_, name)| name));
        self.sla.configure(sla, self.clock.now());
        Ok(())
    }

    /// What IP SLA has measured, of one operation or all.
    pub fn ip_sla(&mut self, operation: Option<u32>, samples: bool) -> sla::Report {
        self.round(Duration::ZERO);
        self.sla.report(self.clock.now(), operation, samples)
    }

    /// What the engine counted, of one port or all.
    pub fn counters(&mut self, port: Option<PortId>) -> Counters {
        self.round(Duration::ZERO);
        self.engine.counters(self.reached, port)
    }

    /// Zeroes the counters of one port, or of all and the health.
    pub fn clear(&mut self, port: Option<PortId>) {
        self.round(Duration::ZERO);
        self.engine.clear(self.reached, port);
        if port.is_none() {
            self.clear_health();
        }
    }

    /// The configured policy-maps with every default filled in.
    pub fn resolve(&self) -> Resolved {
        self.engine.resolve()
    }

    /// The port of that IOS name.
    pub fn port(&self, name: &str) -> Option<PortId> {
        self.engine.port(name)
    }

    /// IOS names of the ports.
    pub fn port_names(&self) -> impl Iterator<Item = &str> {
        self.engine.ports().map(|(_, name)| name)
    }

    /// How the daemon is doing.
    pub fn health(&mut self) -> Health {
        Health {
            received: self.counts.received,
            transmitted: self.counts.transmitted,
            lost_input: self.lost() - self.counts.lost_before,
            malformed: self.counts.malformed,
            unsent: self.counts.unsent + self.undelivered(),
            late_arrivals: self.late_arrivals() - self.counts.late_before,
            lateness_ns: self.lateness.quantiles(),
            late_over_budget: self.lateness.over_budget(),
            behind_ns: self.lateness.behind_ns(),
            budget_ns: self.lateness.budget_ns(),
        }
    }

    /// Starts the health's counters again.
    fn clear_health(&mut self) {
        self.counts = Counts { lost_before: self.lost(), late_before: self.late_arrivals(), ..Counts::default() };
        self.lateness.clear();
        self.mark_undelivered();
    }

    /// Ring overflows since the start.
    fn lost(&mut self) -> u64 {
        self.ports.iter_mut().flat_map(Port::interfaces_mut).map(|i| i.ring.lost()).sum()
    }

    /// Frames that came to the engine too late for their event time, since the start.
    fn late_arrivals(&self) -> u64 {
        let both = |port: &Port| [Side::Inside, Side::Wire].map(|side| self.engine.totals(port.id, side).late_arrivals);
        self.ports.iter().flat_map(both).sum()
    }

    /// Frames from us that the kernel took but could not deliver since the last clearing.
    fn undelivered(&self) -> u64 {
        let now = netdev::read().unwrap_or_default();
        let of = |i: &Interface| {
            now.iter().find(|u| u.name == i.name).map_or(0, |u| u.frames.saturating_sub(i.unsent_before))
        };
        self.ports.iter().flat_map(Port::interfaces).map(of).sum()
    }

    fn mark_undelivered(&mut self) {
        let now = netdev::read().unwrap_or_default();
        for interface in self.ports.iter_mut().flat_map(Port::interfaces_mut) {
            interface.unsent_before = now.iter().find(|u| u.name == interface.name).map_or(0, |u| u.frames);
        }
    }
}
