//! All operations of a router.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::config::{Config, Kind};
use crate::operation::{Operation, Wanted};
use crate::packet::{self, Control, CONTROL_PORT};
use crate::statistics::OperationReport;
use crate::Nanos;

/// Socket of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// The ICMP socket that all operations share.
    Icmp,
    /// The UDP socket of an operation.
    Udp(u32),
}

/// A packet to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The operation's number.
    pub operation: u32,
    /// Sequence number; `None` for a control message.
    pub sequence: Option<u16>,
    /// Socket to use.
    pub channel: Channel,
    /// Destination; the port is 0 for ICMP.
    pub target: (IpAddr, u16),
    /// Source address; chosen by the router if `None`.
    pub source: Option<IpAddr>,
    /// Type-of-service byte or traffic class.
    pub tos: u8,
    /// ICMP message or UDP payload.
    pub bytes: Vec<u8>,
}

/// Runs the operations of a configuration.
#[derive(Debug, Default)]
pub struct Prober {
    operations: BTreeMap<u32, Operation>,
    /// Aged-out operations, which stay removed until their configuration changes.
    forgotten: BTreeMap<u32, crate::config::OperationConfig>,
    synchronised: bool,
    /// First identifier, which differs between processes in one namespace.
    base: u16,
    wanted: Vec<Wanted>,
}

impl Prober {
    /// Returns a prober without operations; identifiers start at `base`.
    pub fn new(base: u16) -> Self {
        Self { base, ..Self::default() }
    }

    /// Activates a checked configuration. An unchanged operation continues; one with only a changed schedule keeps its
    /// statistics; any other restarts.
    pub fn configure(&mut self, config: &Config, now: Nanos) {
        let same_clock = self.synchronised == config.synchronised;
        self.synchronised = config.synchronised;
        self.operations.retain(|number, _| config.operations.contains_key(number));
        self.forgotten.retain(|number, old| config.operations.get(number) == Some(old));
        for (number, wanted) in &config.operations {
            if self.forgotten.contains_key(number) {
                continue;
            }
            if let Some(present) = self.operations.get_mut(number) {
                if present.config == *wanted && same_clock {
                    continue;
                }
                let unscheduled = crate::OperationConfig { schedule: None, ..wanted.clone() };
                if same_clock && (crate::OperationConfig { schedule: None, ..present.config.clone() }) == unscheduled {
                    present.config = wanted.clone();
                    present.enter(now);
                    continue;
                }
            }
            let identifier = self.free_identifier(*number);
            self.operations.insert(*number, Operation::new(wanted.clone(), identifier, config.synchronised, now));
        }
    }

    fn free_identifier(&self, number: u32) -> u16 {
        let taken: Vec<u16> =
            self.operations.iter().filter(|(n, _)| **n != number).map(|(_, o)| o.identifier).collect();
        let mut identifier = self.base.wrapping_add(number as u16);
        while taken.contains(&identifier) {
            identifier = identifier.wrapping_add(1);
        }
        identifier
    }

    /// Returns the source port of an operation; any if none.
    pub fn source_port(&self, operation: u32) -> Option<u16> {
        self.operations.get(&operation).and_then(|found| found.config.source_port)
    }

    /// Returns whether there is no operation and no reply to handle.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the time at which [`poll`](Self::poll) next has work to do.
    pub fn deadline(&self) -> Option<Nanos> {
        self.operations.values().filter_map(Operation::deadline).min()
    }

    /// Starts and ends operations due by `now`, and appends the packets to send.
    pub fn poll(&mut self, now: Nanos, sends: &mut Vec<Send>) {
        let aged: Vec<u32> = self.operations.iter().filter(|(_, o)| o.aged_out(now)).map(|(n, _)| *n).collect();
        for number in aged {
            let operation = self.operations.remove(&number).expect("it was just listed");
            self.forgotten.insert(number, operation.config);
        }
        for (number, operation) in &mut self.operations {
            if operation.deadline().is_none_or(|at| at > now) {
                continue;
            }
            operation.poll(now, &mut self.wanted);
            let config = &operation.config;
            sends.extend(self.wanted.drain(..).map(|wanted| {
                let port = config.target_port.unwrap_or(0);
                let (sequence, port, bytes) = match wanted {
                    Wanted::Probe(sequence, bytes) => (Some(sequence), port, bytes),
                    Wanted::Control(bytes) => (None, CONTROL_PORT, bytes),
                };
                Send {
                    operation: *number,
                    sequence,
                    channel: if config.kind.is_udp() { Channel::Udp(*number) } else { Channel::Icmp },
                    target: (config.target, port),
                    source: config.source,
                    tos: config.tos,
                    bytes,
                }
            }));
        }
    }

    /// Records that the packet left at `at`, which is later than the send call and closer to the line.
    pub fn record_sent(&mut self, operation: u32, sequence: u16, at: Nanos) {
        if let Some(operation) = self.operations.get_mut(&operation) {
            operation.record_sent(sequence, at);
        }
    }

    /// Records that an ICMP request with this identifier left at `at`.
    pub fn record_sent_icmp(&mut self, identifier: u16, sequence: u16, at: Nanos) {
        let found = self.operations.values_mut().find(|o| o.identifier == identifier && !o.config.kind.is_udp());
        if let Some(operation) = found {
            operation.record_sent(sequence, at);
        }
    }

    /// Records that a UDP packet of an operation left at `at`.
    pub fn record_sent_udp(&mut self, operation: u32, payload: &[u8], at: Nanos) {
        let Some(operation) = self.operations.get_mut(&operation) else { return };
        let reply = match operation.config.kind {
            Kind::UdpEcho => packet::udp_echo_reply(payload),
            Kind::UdpJitter => packet::udp_jitter_reply(payload),
            _ => None,
        };
        if let Some(reply) = reply {
            operation.record_sent(reply.sequence, at);
        }
    }

    /// Skips a packet that could not be sent; without its control message there is no connection.
    pub fn record_unsent(&mut self, send: &Send) {
        if let Some(operation) = self.operations.get_mut(&send.operation) {
            match send.sequence {
                Some(sequence) => operation.record_skipped(sequence),
                None => operation.record_refused(),
            }
        }
    }

    /// Handles a port-unreachable message: the control port has no listener.
    pub fn record_refused(&mut self, operation: u32) {
        if let Some(operation) = self.operations.get_mut(&operation) {
            operation.record_refused();
        }
    }

    /// Handles an ICMP message or UDP payload that arrived from `from` at `at`. Unrelated packets are ignored.
    pub fn record_packet(&mut self, channel: Channel, from: (IpAddr, u16), bytes: &[u8], at: Nanos) {
        match channel {
            Channel::Icmp => {
                let found = if from.0.is_ipv6() { packet::icmpv6_reply(bytes) } else { packet::icmp_reply(bytes) };
                let Some((identifier, reply)) = found else { return };
                let wanted = if reply.remote.is_some() { Kind::IcmpJitter } else { Kind::IcmpEcho };
                let found = self
                    .operations
                    .values_mut()
                    .find(|o| o.identifier == identifier && o.config.kind == wanted && o.config.target == from.0);
                if let Some(operation) = found {
                    operation.record_reply(reply, at);
                }
            }
            Channel::Udp(number) => {
                let Some(operation) = self.operations.get_mut(&number) else { return };
                if operation.config.target != from.0 {
                    return;
                }
                if from.1 == CONTROL_PORT {
                    if let Some(message) = Control::read(bytes) {
                        operation.control(&message, at);
                    }
                } else if Some(from.1) == operation.config.target_port {
                    let reply = match operation.config.kind {
                        Kind::UdpEcho => packet::udp_echo_reply(bytes),
                        _ => packet::udp_jitter_reply(bytes),
                    };
                    if let Some(reply) = reply {
                        operation.record_reply(reply, at);
                    }
                }
            }
        }
    }

    /// Returns the measurements of one operation or all.
    pub fn report(&self, now: Nanos, operation: Option<u32>, samples: bool) -> BTreeMap<u32, OperationReport> {
        let wanted = self.operations.iter().filter(|(number, _)| operation.is_none_or(|o| o == **number));
        wanted.map(|(number, o)| (*number, o.report(now, samples))).collect()
    }
}
