//! Frames between the ports' interfaces and the engine, in event time.
//!
//! After [`Dataplane::take`] has taken the arrived frames, a step ([`Dataplane::step`]) lets the engine's input side
//! catch up with a time, forwards its frames or passes them through the kernel, and only then lets the output side
//! catch up. Policers, queues and shapers thus behave after a stall as without it.

mod counts;
mod faces;
mod forward;
mod inward;
mod link_end;
mod memory;
mod outward;
mod port;
mod subinterfaces;

pub use link_end::Crossing;
pub use port::StartError;

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::thread;

use qos_core::counters::Resolved;
use qos_core::frame::header_rest;
use qos_core::{ConfigError, Counters, Departure, Duration, Engine, Output, PortId, PortsConfig, Time};

use self::faces::Faces;
use self::port::{Arrival, Held, Port};
use crate::bridge::{Bridge, Tag};
use crate::capture::{CaptureError, Captures, Counts as CaptureCounts, Wanted};
use crate::config::DataPlaneConfig;
use crate::daemon_clock::Clock;
use crate::forwarding::Forwarding;
use crate::frame::TransitKeys;
use crate::frame_pool::FramePool;
use crate::health::Lateness;
use crate::in_transit::InTransit;
use crate::namespace::Namespace;
use crate::ports::other_end;
use crate::ring_sizes::RingSizes;
use crate::sla::Agent;

/// Maximum number of frames in transit through the kernel.
const IN_TRANSIT: usize = 4096;
/// Maximum number of fragmented packets in transit.
const FRAGMENTED: usize = 1024;
/// Maximum transit time: a frame that has not returned from the kernel by then was for the router itself, or dropped.
const TRANSIT_NS: u64 = 1_000_000_000;
/// Local counters; the rest of [`Health`] is read from the kernel on request.
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

/// Inputs for opening a data plane.
pub struct Opening<'a> {
    /// Ports.
    pub wiring: &'a PortsConfig,
    /// Ports with a link in memory, by their IOS names.
    pub memory: &'a BTreeSet<String>,
    /// Sizes of the rings on the links.
    pub ring_sizes: RingSizes,
    /// Lateness beyond which departures are counted apart, ns.
    pub budget_ns: u64,
    /// Namespace of the ports.
    pub outside: Namespace,
    /// Namespace of the router's own IP stack.
    pub kernel: Namespace,
    /// Event time.
    pub clock: Clock,
}

/// All ports and the engine.
pub struct Dataplane {
    /// Namespace of the ports.
    outside: Namespace,
    /// Event time.
    clock: Clock,
    engine: Engine<Held>,
    ports: Vec<Port>,
    pool: FramePool,
    keys: TransitKeys,
    in_transit: InTransit,
    /// Packets whose first fragment has left the kernel, which may have fragmented them.
    fragmented: InTransit,
    /// Copy of the forwarding state of the router's kernel.
    forwarding: Forwarding,
    /// The ports that switch instead of handing frames to the kernel.
    bridge: Bridge,
    lateness: Lateness,
    counts: Counts,
    captures: Captures,
    sla: Agent,
    /// Time that the engine has reached.
    reached: Time,
    /// Time up to which departures are settled; within a step it is before `reached`.
    settled: Time,
    /// The latest event time of a frame that was handed to the kernel.
    passed: Time,
    /// Whether some ports are the ends of a line.
    line: bool,
    /// Notifications about the interfaces that stand for links in memory.
    faces: Option<Faces>,
    /// Frames that have left for other routers of this process.
    crossing: Vec<Crossing>,
    // Kept between rounds for their memory.
    outputs: Vec<Output<Held>>,
    inward: Vec<Departure<Held>>,
    due: Vec<(PortId, Arrival)>,
    copies: Vec<(PortId, Option<Tag>)>,
    bytes: Vec<u8>,
}

impl Dataplane {
    /// Opens all ports; moves this thread to their namespace.
    ///
    /// # Errors
    /// When an interface is missing or cannot be opened, or the engine refuses the wiring.
    pub fn open(opening: Opening<'_>) -> Result<Self, StartError> {
        let Opening { wiring, memory, ring_sizes, budget_ns, outside, kernel, clock } = opening;
        outside.visit().map_err(StartError::Namespace)?;
        let engine = Engine::new(wiring, clock.now())?;
        // Ports are opened at the same time, because the kernel makes each opening thread wait.
        let (ports, forwarding) = thread::scope(|scope| {
            let forwarding = scope.spawn(|| Forwarding::open(&kernel, outside.clone()));
            let open = |(id, name)| {
                let framing = engine.framing(id);
                let peer = other_end(wiring, name).and_then(|other| engine.port(other)).map(|p| usize::from(p.0));
                let kind = (peer, memory.contains(name));
                let config = &wiring.ports[name];
                let slots = ring_sizes.slots(config.link.rate_bps);
                scope.spawn(move || Port::open(id, framing, name, config, kind, slots))
            };
            let opening: Vec<_> = engine.ports().map(open).collect();
            let ports = opening.into_iter().map(|port| port.join().expect("opening does not panic"));
            let ports = ports.collect::<Result<Vec<_>, _>>()?;
            Ok::<_, StartError>((ports, forwarding.join().expect("opening does not panic")))
        })?;
        let mut plane = Self::assemble(clock, clock.now(), engine, ports, forwarding, budget_ns, (outside, kernel));
        plane.follow_link_state()?;
        plane.count_undelivered();
        plane.attach_insides();
        Ok(plane)
    }

    /// Creates a data plane of these ports that has reached `now`, with the namespaces of the ports and of the IP
    /// stack.
    fn assemble(
        clock: Clock,
        now: Time,
        engine: Engine<Held>,
        ports: Vec<Port>,
        forwarding: Forwarding,
        budget_ns: u64,
        (outside, kernel): (Namespace, Namespace),
    ) -> Self {
        let line = ports.iter().any(|port: &Port| port.peer.is_some());
        let count = ports.len();
        Self {
            clock,
            engine,
            ports,
            pool: FramePool::default(),
            keys: TransitKeys::default(),
            in_transit: InTransit::new(IN_TRANSIT, TRANSIT_NS),
            fragmented: InTransit::new(FRAGMENTED, TRANSIT_NS),
            forwarding,
            bridge: Bridge::default(),
            lateness: Lateness::new(budget_ns, count),
            counts: Counts::default(),
            captures: Captures::default(),
            outside,
            sla: Agent::new(kernel),
            reached: now,
            settled: now,
            passed: now,
            line,
            faces: None,
            crossing: Vec::new(),
            outputs: Vec::new(),
            inward: Vec::new(),
            due: Vec::new(),
            copies: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Ends captures and closes all ports in parallel, because the kernel delays each socket by some tens of
    /// milliseconds.
    pub fn close(&mut self) {
        self.captures = Captures::default();
        thread::scope(|scope| {
            for interface in self.ports.drain(..).flat_map(Port::into_interfaces) {
                scope.spawn(move || drop(interface));
            }
        });
    }

    /// Returns the descriptors of the sockets: each can be read while frames wait.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.ports.iter().flat_map(Port::interfaces).map(|i| i.ring.as_raw_fd())
    }

    /// Returns the descriptors of IP SLA's sockets.
    pub fn sla_descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.sla.descriptors()
    }

    /// Records that a socket of IP SLA is readable.
    pub fn wake_sla(&mut self) {
        self.sla.wake();
    }

    /// Returns whether a frame waits in a ring.
    pub fn is_ready(&self) -> bool {
        self.ports.iter().flat_map(Port::interfaces).any(|i| i.ring.is_ready())
    }

    /// Clears and reports errors of sockets with an interface that went down or disappeared. Call when a descriptor is
    /// broken.
    pub fn take_errors(&self) {
        for interface in self.ports.iter().flat_map(Port::interfaces) {
            if let Some(error) = interface.ring.take_error() {
                eprintln!("qos-router: interface {}: {error}", interface.name);
            }
        }
    }

    /// Returns the event time now.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the time of the next round, if nothing arrives before.
    pub fn deadline(&self) -> Option<Time> {
        let waiting = self.ports.iter().flat_map(|p| &p.arrivals).map(|a| a.event);
        waiting.chain(self.engine.next_deadline()).chain(self.sla.deadline()).min()
    }

    /// Returns the time of the next due frame on a link, as far as is known, or of another event that must not be late.
    /// Frames that reach the inside in the meantime may be taken later, with their event time.
    pub fn departure(&self) -> Option<Time> {
        let waiting = self.ports.iter().flat_map(|p| &p.arrivals).map(|a| a.event);
        waiting.chain(self.engine.next_departure()).chain(self.sla.deadline()).min()
    }

    /// Takes the frames that have arrived on the links by `now` of the clock. Returns the time up to which all have
    /// been taken, and whether there were any.
    pub fn take(&mut self, clock: Clock, now: Time) -> (Time, bool) {
        self.clock = clock;
        let before = self.counts.received;
        let until = self.receive_from_links(now);
        (until, self.counts.received != before)
    }

    /// Takes the packets of the router's own IP stack; returns whether any wait for their time.
    pub fn take_own_frames(&mut self) -> bool {
        self.take_from_inside();
        self.ports.iter().any(|port| !port.arrivals.is_empty())
    }

    /// Catches up with a time. Frames due on the links are sent by [`Self::flush`]. Frames that arrive within the next
    /// `ahead` already pass through the kernel if possible, so that the kernel's processing time does not delay them.
    pub fn step(&mut self, to: Time, ahead: Duration) {
        self.reached = to.max(self.reached);
        // IP SLA must find all packets at their times; and on a line there is no kernel to pass.
        let ahead = if self.line || !self.sla.is_idle() { Duration::ZERO } else { ahead };
        self.engine.poll_inside(self.reached, ahead, &mut self.outputs);
        self.dispatch();
        self.pass_through_router();
        self.sla.step(&self.clock);
        self.take_from_inside();
        self.process_arrivals();
        self.engine.poll(self.reached, &mut self.outputs);
        self.settled = self.reached;
        self.dispatch();
    }

    /// Sends the frames due on the links.
    pub fn flush(&mut self) {
        for port in 0..self.ports.len() {
            self.flush_wire(port);
        }
    }

    /// Activates a complete configuration, or changes nothing. Frames that arrived before the last step are handled by
    /// the old one.
    ///
    /// # Errors
    /// Those of [`Engine::configure`], and a port of IP SLA that cannot be opened.
    pub fn configure(&mut self, config: &DataPlaneConfig) -> Result<(), ConfigError> {
        let sla = self.sla.prepare(config)?;
        let opened = self.open_subinterfaces(config)?;
        self.engine.configure(self.reached, &config.engine)?;
        self.put_subinterfaces(config, opened);
        self.attach_insides();
        for port in &mut self.ports {
            port.adjust_mss = None;
        }
        for (name, interface) in &config.engine.interfaces {
            if let Some(id) = self.engine.port(name) {
                self.ports[usize::from(id.0)].adjust_mss = interface.tcp_adjust_mss;
            }
        }
        self.bridge.configure(&config.engine, self.engine.ports().map(|(_, name)| name));
        self.sla.configure(sla, self.clock.now());
        Ok(())
    }

    /// Returns the measurements of IP SLA, of one operation or all.
    pub fn ip_sla(&mut self, operation: Option<u32>, samples: bool) -> ip_sla::Report {
        self.sla.report(self.clock.now(), operation, samples)
    }

    /// Returns the counters of the engine, of one port or all.
    pub fn counters(&mut self, port: Option<PortId>) -> Counters {
        let pool = &self.pool;
        self.engine.counters_with(self.reached, port, &|held| header_rest(pool.get(&held.frame)))
    }

    /// Zeroes the counters of one port, or of all and the health.
    pub fn clear(&mut self, port: Option<PortId>) {
        self.engine.clear(self.reached, port);
        if port.is_none() {
            self.clear_health();
        }
    }

    /// Begins to capture at a port.
    ///
    /// # Errors
    /// When the file cannot be written, or the filter is none.
    pub fn capture(&mut self, port: PortId, wanted: &Wanted) -> Result<(), CaptureError> {
        self.captures.begin(port, wanted)
    }

    /// Ends the capture to a file.
    ///
    /// # Errors
    /// When there is none, or it could not be written.
    pub fn end_capture(&mut self, file: &Path) -> Result<CaptureCounts, CaptureError> {
        self.captures.end(file)
    }

    /// Returns the configured policy-maps with every default filled in.
    pub fn resolve(&self) -> Resolved {
        self.engine.resolve()
    }

    /// Returns the port of that IOS name.
    pub fn port(&self, name: &str) -> Option<PortId> {
        self.engine.port(name)
    }

    /// Returns the IOS names of the ports.
    pub fn port_names(&self) -> impl Iterator<Item = &str> {
        self.engine.ports().map(|(_, name)| name)
    }
}
