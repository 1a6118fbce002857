//! IP SLA in the daemon: the operations and the responder of the `ip-sla` crate, with sockets in the network namespace of the
//! router's own IP stack.
//!
//! A probe is sent by a socket there, so the kernel routes it and it reaches the output queues as any packet of the router's own
//! does. T1 is the event time at which the engine first sees the frame (the kernel's stamp where it leaves the IP stack, before policies and
//! queues). T4 is the event time at which the last bit of the reply has arrived on the wire side and has passed the input policy. A responder's
//! T2 is taken like T4, and T3 just before the reply is handed to the kernel. What never crosses a port (a probe to an address of
//! the router itself, or a prober on a host, which has no engine) has the kernel's receive stamps of the socket instead.

mod sockets;
mod stamps;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, RawFd};

use ip_sla::packet::CONTROL_PORT;
use ip_sla::{Channel, Config, OperationReport, Prober, Responder, Send};
use qos_core::{ConfigError, Time};
use schemars::JsonSchema;
use serde::Serialize;

use crate::clock::Clock;
use crate::frame;
use sockets::{Kind, Socket};
use stamps::{Key, Stamps};

/// Packets taken from one socket at a time, so that the others have their turn.
const TAKEN: usize = 64;

/// Where the sockets are opened.
#[derive(Debug)]
pub enum Place {
    /// In the daemon's own network namespace.
    Here,
    /// In this network namespace.
    Namespace(File),
    /// Nowhere: there is no IP SLA.
    Nowhere,
}

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Operation(u32),
    Control,
    Data(u16),
}

/// The reply to `ip_sla`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// When.
    pub time_ns: u64,
    /// By number of the operation.
    pub operations: BTreeMap<u32, OperationReport>,
    /// The responder; null where it is not on.
    pub responder: Option<ResponderReport>,
}

/// What the responder has done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResponderReport {
    /// Its counts.
    #[serde(flatten)]
    pub counts: ip_sla::responder::Counts,
    /// The latest senders of control messages, newest first.
    pub recent: Vec<RecentSource>,
}

/// A sender of a control message.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecentSource {
    /// Its address.
    pub address: Ipv4Addr,
    /// When.
    pub time_ns: u64,
}

/// Runs the operations and the responder.
#[derive(Debug)]
pub struct Agent {
    place: Place,
    prober: Prober,
    responder: Responder,
    config: Config,
    sockets: BTreeMap<Role, Socket>,
    /// Local ports of UDP operations.
    ports: BTreeMap<u16, u32>,
    stamps: Stamps,
    /// Something may wait in a socket.
    pending: bool,
    sends: Vec<Send>,
}

impl Agent {
    /// An agent without operations, whose sockets will be opened at `place`.
    pub fn new(place: Place) -> Self {
        Self {
            place,
            // The kernel's own numbers are of no use here: two routers may have the same.
            prober: Prober::new(std::process::id() as u16),
            responder: Responder::default(),
            config: Config::default(),
            sockets: BTreeMap::new(),
            ports: BTreeMap::new(),
            stamps: Stamps::default(),
            pending: false,
            sends: Vec::new(),
        }
    }

    /// Checks a configuration without putting it in force.
    ///
    /// # Errors
    /// The path and reason.
    pub fn check(&self, config: Option<&Config>) -> Result<(), ConfigError> {
        let Some(config) = config else { return Ok(()) };
        config.check().map_err(|(path, message)| ConfigError::new(format!("ip_sla.{path}"), message))?;
        if matches!(self.place, Place::Nowhere) && *config != Config::default() {
            let message = "the daemon was started without --kernel-netns, so it cannot reach the router's IP stack; start it with that option";
            return Err(ConfigError::new("ip_sla", message));
        }
        Ok(())
    }

    /// Puts a checked configuration in force.
    ///
    /// # Errors
    /// When the responder's port cannot be opened; then the rest is in force.
    pub fn configure(&mut self, config: Option<&Config>, now: Time) -> Result<(), ConfigError> {
        let config = config.cloned().unwrap_or_default();
        for (number, operation) in &self.config.operations {
            // A socket is bound to what the operation said of addresses, ports and type of service.
            let stays = config.operations.get(number).is_some_and(|new| {
                ip_sla::OperationConfig { schedule: operation.schedule.clone(), ..new.clone() } == *operation
            });
            if !stays {
                self.sockets.remove(&Role::Operation(*number));
            }
        }
        self.prober.configure(&config, now.0);
        if config.responder {
            self.responder.configure(&config.responder_ports);
        } else {
            self.responder.clear();
        }
        self.config = config;
        self.note_ports();
        self.open_responder().map_err(|error| ConfigError::new("ip_sla.responder", error.to_string()))
    }

    fn note_ports(&mut self) {
        self.ports = self
            .sockets
            .iter()
            .filter_map(|(role, socket)| match role {
                Role::Operation(number) => socket.udp_port().map(|port| (port, *number)),
                _ => None,
            })
            .collect();
    }

    /// Opens and closes sockets so that the responder listens where it should.
    fn open_responder(&mut self) -> io::Result<()> {
        let mut wanted: BTreeMap<Role, u16> = self.responder.ports().map(|port| (Role::Data(port), port)).collect();
        if self.config.responder {
            wanted.insert(Role::Control, CONTROL_PORT);
        }
        self.sockets.retain(|role, _| matches!(role, Role::Operation(_)) || wanted.contains_key(role));
        let mut result = Ok(());
        for (role, port) in wanted {
            if self.sockets.contains_key(&role) {
                continue;
            }
            match Socket::open(&self.place, Kind::Udp { port }, None, 0) {
                Ok(socket) => drop(self.sockets.insert(role, socket)),
                Err(error) => {
                    result = Err(io::Error::new(error.kind(), format!("cannot listen on UDP port {port}: {error}")))
                }
            }
        }
        result
    }

    /// Descriptors of the sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.sockets.values().map(AsRawFd::as_raw_fd)
    }

    /// A descriptor can be read.
    pub fn wake(&mut self) {
        self.pending = true;
    }

    /// When [`step`](Self::step) has something to do.
    pub fn deadline(&self) -> Option<Time> {
        [self.prober.deadline(), self.responder.deadline()].into_iter().flatten().min().map(Time)
    }

    /// A frame of the router's own was seen to leave its IP stack.
    pub fn leaving(&mut self, bytes: &[u8], at: Time) {
        if self.sockets.is_empty() {
            return;
        }
        match frame::probe(bytes) {
            Some(frame::Probe::Icmp { kind: 8 | 13, identifier, sequence, .. }) => {
                self.prober.sent_icmp(identifier, sequence, at.0);
            }
            Some(frame::Probe::Udp { source_port, destination_port, payload, .. })
                if destination_port != CONTROL_PORT =>
            {
                if let Some(number) = self.ports.get(&source_port) {
                    self.prober.sent_udp(*number, payload, at.0);
                }
            }
            _ => {}
        }
    }

    /// A frame from a link goes to the router's IP stack; its last bit arrived at `at`.
    pub fn arriving(&mut self, bytes: &[u8], at: Time) {
        if self.sockets.is_empty() {
            return;
        }
        let Some(probe) = frame::probe(bytes) else { return };
        let ours = match probe {
            frame::Probe::Icmp { kind, .. } => matches!(kind, 0 | 14),
            frame::Probe::Udp { destination_port: port, .. } => {
                self.ports.contains_key(&port)
                    || self.sockets.contains_key(&Role::Data(port))
                    || (port == CONTROL_PORT && self.config.responder)
            }
        };
        if ours {
            self.stamps.insert(Key::of(&probe), at.0);
            self.pending = true;
        }
    }

    /// Reads what has arrived, starts and ends what is due, and sends.
    pub fn step(&mut self, clock: &Clock) {
        if std::mem::take(&mut self.pending) {
            self.receive(clock);
        }
        let now = clock.now();
        if self.deadline().is_none_or(|at| at > now) {
            return;
        }
        if self.responder.poll(now.0) {
            self.follow_responder();
        }
        let mut sends = std::mem::take(&mut self.sends);
        self.prober.poll(now.0, &mut sends);
        for send in sends.drain(..) {
            let at = clock.now();
            if self.send(&send).is_err() {
                self.prober.not_sent(&send);
            } else if let Some(sequence) = send.sequence {
                self.prober.sent(send.operation, sequence, at.0);
            }
        }
        self.sends = sends;
    }

    /// Brings the responder's sockets up to date; a failure is counted, since nobody can be told.
    fn follow_responder(&mut self) {
        if let Err(error) = self.open_responder() {
            self.responder.counts.errors += 1;
            eprintln!("qos-router: IP SLA responder: {error}");
        }
    }

    fn send(&mut self, send: &Send) -> io::Result<()> {
        let role = Role::Operation(send.operation);
        if !self.sockets.contains_key(&role) {
            let kind = match send.channel {
                Channel::Icmp => Kind::Icmp { target: send.target.0 },
                Channel::Udp(number) => {
                    Kind::Udp { port: self.prober.udp_sockets().get(&number).copied().flatten().unwrap_or(0) }
                }
            };
            let socket = Socket::open(&self.place, kind, send.source, send.tos)?;
            self.sockets.insert(role, socket);
            self.note_ports();
        }
        self.sockets[&role].send(&send.bytes, send.target)
    }

    fn receive(&mut self, clock: &Clock) {
        let roles: BTreeSet<Role> = self.sockets.keys().copied().collect();
        for role in roles {
            for taken in 0.. {
                let now = clock.now();
                let Some(received) = self.sockets.get_mut(&role).and_then(Socket::receive) else { break };
                let at = self.stamps.take(&received.key).unwrap_or_else(|| clock.event(received.stamp, now).0);
                self.dispatch(role, received, at, clock);
                if taken == TAKEN {
                    self.pending = true;
                    break;
                }
            }
        }
    }

    fn dispatch(&mut self, role: Role, mut received: sockets::Received, at: u64, clock: &Clock) {
        let from = received.from;
        match role {
            Role::Operation(number) => {
                let udp = self.sockets[&role].udp_port().is_some();
                let channel = if udp { Channel::Udp(number) } else { Channel::Icmp };
                self.prober.received(channel, from, &received.bytes, at);
            }
            Role::Control => {
                if let Some(answer) = self.responder.control(from, &received.bytes, at) {
                    self.follow_responder();
                    // An answer that is not sent is a missing one to the other end, which counts it.
                    let _ = self.sockets.get(&role).map(|s| s.send(&answer, from));
                }
            }
            Role::Data(port) => {
                if self.responder.answer(port, from, &mut received.bytes, at, clock.now().0) {
                    let _ = self.sockets.get(&role).map(|s| s.send(&received.bytes, from));
                }
            }
        }
    }

    /// What was measured, of one operation or all.
    pub fn report(&self, now: Time, operation: Option<u32>, samples: bool) -> Report {
        let recent = |(address, time_ns): &(Ipv4Addr, u64)| RecentSource { address: *address, time_ns: *time_ns };
        Report {
            time_ns: now.0,
            operations: self.prober.report(now.0, operation, samples),
            responder: self.config.responder.then(|| ResponderReport {
                counts: self.responder.counts,
                recent: self.responder.recent().iter().map(recent).collect(),
            }),
        }
    }
}
