//! The responder: answers control messages and the UDP packets that follow them.
//!
//! A control message has no password, so its requests are bounded: [`MOST_PORTS`] ports, each for [`LONGEST_MS`], none
//! below [`LEAST_PORT`]; and only permitted prefixes can make them. Two responders never answer each other in a loop,
//! with any sender address of a packet: an answer of a responder is not answered.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::{self, Control};
use crate::{Nanos, MILLI, SECOND};

/// Maximum number of ports opened by control messages at a time.
pub const MOST_PORTS: usize = 64;
/// Maximum number of milliseconds that a control message may request.
pub const LONGEST_MS: u32 = 3_600_000;
/// Lowest port that a control message can open: those below are privileged.
pub const LEAST_PORT: u16 = 1024;
/// Maximum number of senders with stored state.
const SENDERS: usize = 1024;
/// Within this time the same bytes from the same sender are an echo of this responder's answer, or a copy, not a packet
/// of a new run.
const AGAIN: Nanos = SECOND;

/// Reason for not answering a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The message is malformed, or its port is not allowed for a responder.
    Malformed,
    /// The sender is in none of the allowed prefixes.
    Sender(IpAddr),
    /// A privileged port.
    Privileged(u16),
    /// The requested milliseconds exceed the maximum.
    TooLong(u32),
    /// Too many ports are open.
    TooMany(u16),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "a packet to the control port is not a control message"),
            Self::Sender(sender) => {
                write!(f, "a control message from {sender}, which is not in an allowed prefix")
            }
            Self::Privileged(port) => {
                write!(f, "asked to listen on port {port}; ports below {LEAST_PORT} have to be configured")
            }
            Self::TooLong(ms) => write!(f, "asked to listen for {ms} ms; expected at most {LONGEST_MS}"),
            Self::TooMany(port) => {
                write!(f, "asked to listen on port {port} while {MOST_PORTS} other ports are open")
            }
        }
    }
}

/// Counts of the responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Control messages that were answered.
    pub control_messages: u64,
    /// Unanswered packets at the control port.
    pub errors: u64,
    /// Packets that were answered.
    pub packets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Port {
    until: Option<Nanos>,
    jitter: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    burst: u16,
    received: u16,
    seen: Nanos,
    /// Hash of the latest packet, if it is returned unchanged.
    bytes: u64,
}

/// Answers other routers' operations.
#[derive(Debug, Default)]
pub struct Responder {
    ports: BTreeMap<u16, Port>,
    /// Prefixes of the answered senders; anyone if empty.
    allowed: Vec<IpNet>,
    senders: BTreeMap<(IpAddr, u16, u16), Sender>,
    /// Counts of the responder.
    pub counts: Counts,
    /// The latest senders of control messages with their times, newest first.
    recent: Vec<(IpAddr, Nanos)>,
}

/// Maximum number of listed senders of control messages.
const RECENT: usize = 5;

impl Responder {
    /// Answers permanently on these ports, only to senders in one of the prefixes, or to anyone if there are none. A
    /// port opened by a control message stays open.
    pub fn configure(&mut self, permanent: &[u16], allowed: &[IpNet]) {
        self.allowed = allowed.to_vec();
        self.ports.retain(|_, port| port.until.is_some());
        for port in permanent {
            self.ports.insert(*port, Port { until: None, jitter: false });
        }
    }

    /// Closes the port requested by a control message because it cannot be listened on, and counts the message as an
    /// error.
    pub fn refuse(&mut self, port: u16) {
        if self.ports.remove(&port).is_some() {
            self.counts.control_messages -= 1;
            self.counts.errors += 1;
        }
    }

    /// Returns the ports on which to listen now.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.ports.keys().copied()
    }

    /// Returns the time at which the next port is to be closed.
    pub fn deadline(&self) -> Option<Nanos> {
        self.ports.values().filter_map(|p| p.until).min()
    }

    /// Closes expired ports. Returns whether it closed any.
    pub fn poll(&mut self, now: Nanos) -> bool {
        let before = self.ports.len();
        self.ports.retain(|_, port| port.until.is_none_or(|until| until > now));
        self.ports.len() != before
    }

    fn allows(&self, sender: IpAddr) -> bool {
        self.allowed.is_empty() || self.allowed.iter().any(|prefix| prefix.contains(&sender))
    }

    /// Answers a packet at the control port; the port that it names is open before the answer is sent.
    ///
    /// # Errors
    /// Why it is not answered; it counts as an error.
    pub fn control(&mut self, from: (IpAddr, u16), bytes: &[u8], now: Nanos) -> Result<Vec<u8>, Refusal> {
        let message = self.read(from, bytes).inspect_err(|_| self.counts.errors += 1)?;
        self.counts.control_messages += 1;
        self.recent.insert(0, (from.0, now));
        self.recent.truncate(RECENT);
        let until = now + u64::from(message.duration_ms) * MILLI;
        let port = self.ports.entry(message.port).or_insert(Port { until: Some(until), jitter: message.jitter });
        port.jitter = message.jitter;
        port.until = port.until.map(|present| present.max(until));
        Ok(Control { reply: true, ..message }.bytes())
    }

    /// Returns a control message to answer.
    fn read(&self, from: (IpAddr, u16), bytes: &[u8]) -> Result<Control, Refusal> {
        // A message from another responder's control port requests nothing.
        let message = Control::read(bytes)
            .filter(|m| !m.reply && m.port != 0 && m.port != packet::CONTROL_PORT && from.1 != packet::CONTROL_PORT)
            .ok_or(Refusal::Malformed)?;
        if !self.allows(from.0) {
            return Err(Refusal::Sender(from.0));
        }
        if message.duration_ms > LONGEST_MS {
            return Err(Refusal::TooLong(message.duration_ms));
        }
        if !self.ports.contains_key(&message.port) {
            if message.port < LEAST_PORT {
                return Err(Refusal::Privileged(message.port));
            }
            if self.ports.values().filter(|port| port.until.is_some()).count() >= MOST_PORTS {
                return Err(Refusal::TooMany(message.port));
            }
        }
        Ok(message)
    }

    /// Fills in the answer to a packet that arrived on `port` at `received` and returns at `sending`. Returns false if
    /// the packet is not from an operation.
    pub fn answer(
        &mut self,
        port: u16,
        from: (IpAddr, u16),
        bytes: &mut [u8],
        received: Nanos,
        sending: Nanos,
    ) -> bool {
        let Some(open) = self.ports.get(&port) else { return false };
        if !self.allows(from.0) || from.1 == packet::CONTROL_PORT {
            return false;
        }
        if open.jitter {
            // A responder has counted it: an answer.
            let Some((burst, _)) = packet::udp_jitter_numbers(bytes).filter(|_| !packet::is_udp_jitter_answer(bytes))
            else {
                return false;
            };
            let sender = self.sender(from, port);
            if sender.burst != burst {
                *sender = Sender { burst, ..Sender::default() };
            }
            sender.received = sender.received.saturating_add(1);
            sender.seen = received;
            packet::udp_jitter_answer(bytes, received, sending, sender.received);
        } else {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            let (hash, sender) = (hasher.finish(), self.sender(from, port));
            // An answer equals its request, so an answered answer returns immediately.
            let again = sender.bytes == hash && sender.seen != 0 && received.saturating_sub(sender.seen) < AGAIN;
            (sender.bytes, sender.seen) = (hash, received);
            if again {
                return false;
            }
        }
        self.counts.packets += 1;
        true
    }

    /// Returns the state of a sender; with too many senders, the one that has been silent for longest is dropped.
    fn sender(&mut self, from: (IpAddr, u16), port: u16) -> &mut Sender {
        let key = (from.0, from.1, port);
        if self.senders.len() >= SENDERS && !self.senders.contains_key(&key) {
            if let Some(oldest) = self.senders.iter().min_by_key(|(_, s)| s.seen).map(|(key, _)| *key) {
                self.senders.remove(&oldest);
            }
        }
        self.senders.entry(key).or_default()
    }

    /// Returns the latest senders of control messages with their times, newest first.
    pub fn recent(&self) -> &[(IpAddr, Nanos)] {
        &self.recent
    }
}
