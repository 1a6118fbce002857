//! IP SLA in the daemon: the operations and the responder of the `ip-sla` crate, with sockets in the network namespace of the
//! router's own IP stack.
//!
//! A probe is sent by a socket there, so the kernel routes it and it reaches the output queues as any packet of the router's own
//! does. T1 is the event time at which the engine first sees the frame (the kernel's stamp where it leaves the IP stack, before policies and
//! queues). T4 is the event time at which the last bit of the reply has arrived on the wire side and has passed the input policy. A responder's
//! T2 is taken like T4, and T3 just before the reply is handed to the kernel. What never crosses a port (a probe to an address of
//! the router itself, or a prober on a host, which has no engine) has the kernel's receive stamps of the socket instead.

mod place;
mod stamps;

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, RawFd};

use ip_sla::packet::CONTROL_PORT;
use ip_sla::{Channel, Config, OperationReport, Prober, Send};
use qos_core::{ConfigError, Time};
use schemars::JsonSchema;
use serde::Serialize;
use sla::{answering, Answering, Kind, Received, Socket};

use crate::clock::Clock;
use crate::frame;
pub use place::Place;
use stamps::{Key, Stamps};

/// Packets taken from one socket at a time, so that the others have their turn.
const TAKEN: usize = 64;

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

/// A configuration that can be put in force, with the sockets that it needs open.
#[derive(Debug)]
pub struct Prepared {
    config: Config,
    sockets: answering::Sockets,
}

/// Runs the operations and the responder.
#[derive(Debug)]
pub struct Agent {
    place: Place,
    prober: Prober,
    responder: Option<Answering>,
    config: Config,
    /// Sockets of operations, opened when they first send.
    sockets: BTreeMap<u32, Socket>,
    /// Their local ports of UDP.
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
            responder: None,
            config: Config::default(),
            sockets: BTreeMap::new(),
            ports: BTreeMap::new(),
            stamps: Stamps::default(),
            pending: false,
            sends: Vec::new(),
        }
    }

    /// Checks a configuration and opens what it needs to listen on, without changing anything.
    ///
    /// # Errors
    /// The path and reason; a port that cannot be opened.
    pub fn prepare(&mut self, config: Option<&Config>) -> Result<Prepared, ConfigError> {
        let config = config.cloned().unwrap_or_default();
        config.check().map_err(|(path, message)| ConfigError::new(format!("ip_sla.{path}"), message))?;
        if matches!(self.place, Place::Nowhere) && config != Config::default() {
            let message = "the daemon was started without --kernel-netns, so it cannot reach the router's IP stack; start it with that option";
            return Err(ConfigError::new("ip_sla", message));
        }
        let mut sockets = answering::Sockets::new();
        if config.responder {
            // The port that the kernel chose for an operation is free to be wanted: the operation takes another with its next packet.
            for port in &config.responder_ports {
                if let Some(number) = self.ports.remove(port) {
                    self.sockets.remove(&number);
                }
            }
            let open = |port| self.place.open(Kind::Udp { port }, None, 0);
            sockets = Answering::open_missing(&config.responder_ports, self.responder.as_ref(), open)
                .map_err(|error| ConfigError::new("ip_sla.responder", error.to_string()))?;
        }
        Ok(Prepared { config, sockets })
    }

    /// Puts a configuration in force.
    pub fn configure(&mut self, prepared: Prepared, now: Time) {
        let Prepared { config, sockets } = prepared;
        for (number, operation) in &self.config.operations {
            // A socket is bound to what the operation said of addresses, ports and type of service.
            let stays = config.operations.get(number).is_some_and(|new| {
                ip_sla::OperationConfig { schedule: operation.schedule.clone(), ..new.clone() } == *operation
            });
            if !stays {
                self.sockets.remove(number);
            }
        }
        self.prober.configure(&config, now.0);
        if config.responder {
            self.responder.get_or_insert_default().configure(&config.responder_ports, sockets);
        } else {
            self.responder = None;
        }
        self.config = config;
        self.note_ports();
    }

    fn note_ports(&mut self) {
        let ports = self.sockets.iter().filter_map(|(number, socket)| socket.udp_port().map(|port| (port, *number)));
        self.ports = ports.collect();
    }

    /// Descriptors of the sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let responder = self.responder.iter().flat_map(Answering::descriptors);
        self.sockets.values().map(AsRawFd::as_raw_fd).chain(responder)
    }

    fn listens_on(&self, port: u16) -> bool {
        self.responder.as_ref().is_some_and(|r| r.listens_on(port))
    }

    /// Whether no packet can be its own.
    fn idle(&self) -> bool {
        self.sockets.is_empty() && self.responder.is_none()
    }

    /// A descriptor can be read.
    pub fn wake(&mut self) {
        self.pending = true;
    }

    /// When [`step`](Self::step) has something to do.
    pub fn deadline(&self) -> Option<Time> {
        let responder = self.responder.as_ref().and_then(Answering::deadline);
        [self.prober.deadline(), responder].into_iter().flatten().min().map(Time)
    }

    /// A frame of the router's own was seen to leave its IP stack.
    pub fn leaving(&mut self, bytes: &[u8], at: Time) {
        if self.idle() {
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
        if self.idle() {
            return;
        }
        let Some(probe) = frame::probe(bytes) else { return };
        let ours = match probe {
            frame::Probe::Icmp { kind, .. } => matches!(kind, 0 | 14),
            frame::Probe::Udp { destination_port: port, .. } => self.ports.contains_key(&port) || self.listens_on(port),
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
        if let Some(responder) = &mut self.responder {
            responder.poll(now.0);
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

    fn send(&mut self, send: &Send) -> io::Result<()> {
        if !self.sockets.contains_key(&send.operation) {
            let kind = match send.channel {
                Channel::Icmp => Kind::Icmp { target: send.target.0 },
                Channel::Udp(number) => {
                    Kind::Udp { port: self.prober.udp_sockets().get(&number).copied().flatten().unwrap_or(0) }
                }
            };
            let socket = self.place.open(kind, send.source, send.tos)?;
            self.sockets.insert(send.operation, socket);
            self.note_ports();
        }
        self.sockets[&send.operation].send(&send.bytes, send.target)
    }

    fn receive(&mut self, clock: &Clock) {
        let Self { prober, stamps, place, pending, .. } = self;
        for (number, socket) in &mut self.sockets {
            let own = socket.udp_port();
            let channel = own.map_or(Channel::Icmp, |_| Channel::Udp(*number));
            for taken in 0.. {
                let now = clock.now();
                let Some(received) = socket.receive() else { break };
                let at = arrival(stamps, own, &received, clock, now);
                prober.received(channel, received.from, &received.bytes, at);
                if taken == TAKEN {
                    *pending = true;
                    break;
                }
            }
        }
        let Some(responder) = &mut self.responder else { return };
        let ports: Vec<u16> = responder.ports().collect();
        for port in ports {
            for taken in 0.. {
                let now = clock.now();
                let Some(received) = responder.receive(port) else { break };
                let at = arrival(stamps, Some(port), &received, clock, now);
                let open = |port| place.open(Kind::Udp { port }, None, 0);
                if let Err(error) = responder.serve(port, received, at, || clock.now().0, open) {
                    eprintln!("qos-router: IP SLA responder: {error}");
                }
                if taken == TAKEN {
                    *pending = true;
                    break;
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
            responder: self.responder.as_ref().map(Answering::responder).map(|responder| ResponderReport {
                counts: responder.counts,
                recent: responder.recent().iter().map(recent).collect(),
            }),
        }
    }
}

/// When a packet arrived: as it was seen on its port, or as the kernel says.
fn arrival(stamps: &mut Stamps, own: Option<u16>, received: &Received, clock: &Clock, now: Time) -> u64 {
    stamps.take(&Key::of_received(received, own)).unwrap_or_else(|| clock.event(received.stamp, now).0)
}
