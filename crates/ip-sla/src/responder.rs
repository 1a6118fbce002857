//! The responder: answers control messages and the UDP packets that follow them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::{self, Control};
use crate::{Nanos, MILLI};

/// Senders that are remembered.
const SENDERS: usize = 1024;

/// Counts of the responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Control messages that were answered.
    pub control_messages: u64,
    /// What came to the control port and was none.
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
}

/// Answers other routers' operations.
#[derive(Debug, Default)]
pub struct Responder {
    ports: BTreeMap<u16, Port>,
    senders: BTreeMap<(Ipv4Addr, u16, u16), Sender>,
    /// What it has done.
    pub counts: Counts,
    /// The latest senders of control messages with when, newest first.
    recent: Vec<(Ipv4Addr, Nanos)>,
}

/// Senders of control messages that are listed.
const RECENT: usize = 5;

impl Responder {
    /// Answers permanently on these ports; a port that was opened by a control message stays open.
    pub fn configure(&mut self, permanent: &[u16]) {
        self.ports.retain(|_, port| port.until.is_some());
        for port in permanent {
            self.ports.insert(*port, Port { until: None, jitter: false });
        }
    }

    /// The port that a control message asked for cannot be listened on: it is closed, and the message was an error.
    pub fn refuse(&mut self, port: u16) {
        if self.ports.remove(&port).is_some() {
            self.counts.control_messages -= 1;
            self.counts.errors += 1;
        }
    }

    /// Ports on which to listen now.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.ports.keys().copied()
    }

    /// When a port is to be closed.
    pub fn deadline(&self) -> Option<Nanos> {
        self.ports.values().filter_map(|p| p.until).min()
    }

    /// Closes ports whose time is over. True when one was.
    pub fn poll(&mut self, now: Nanos) -> bool {
        let before = self.ports.len();
        self.ports.retain(|_, port| port.until.is_none_or(|until| until > now));
        self.ports.len() != before
    }

    /// Answers what came to the control port; the port that it names is open before the answer goes out.
    pub fn control(&mut self, from: (Ipv4Addr, u16), bytes: &[u8], now: Nanos) -> Option<Vec<u8>> {
        let message = Control::read(bytes).filter(|m| !m.reply && m.port != 0 && m.port != packet::CONTROL_PORT);
        let Some(message) = message else {
            self.counts.errors += 1;
            return None;
        };
        self.counts.control_messages += 1;
        self.recent.insert(0, (from.0, now));
        self.recent.truncate(RECENT);
        let until = now + u64::from(message.duration_ms) * MILLI;
        let port = self.ports.entry(message.port).or_insert(Port { until: Some(until), jitter: message.jitter });
        port.jitter = message.jitter;
        port.until = port.until.map(|present| present.max(until));
        Some(Control { reply: true, ..message }.bytes())
    }

    /// Fills in the answer to a packet that arrived on `port` at `received` and goes back at `sending`. False where it is none of ours.
    pub fn answer(
        &mut self,
        port: u16,
        from: (Ipv4Addr, u16),
        bytes: &mut [u8],
        received: Nanos,
        sending: Nanos,
    ) -> bool {
        let Some(open) = self.ports.get(&port) else { return false };
        if open.jitter {
            let Some((burst, _)) = packet::udp_jitter_numbers(bytes) else { return false };
            if self.senders.len() >= SENDERS {
                if let Some(oldest) = self.senders.iter().min_by_key(|(_, s)| s.seen).map(|(key, _)| *key) {
                    self.senders.remove(&oldest);
                }
            }
            let sender = self.senders.entry((from.0, from.1, port)).or_default();
            if sender.burst != burst {
                *sender = Sender { burst, ..Sender::default() };
            }
            sender.received = sender.received.saturating_add(1);
            sender.seen = received;
            packet::udp_jitter_answer(bytes, received, sending, sender.received);
        }
        self.counts.packets += 1;
        true
    }

    /// The latest senders of control messages with when, newest first.
    pub fn recent(&self) -> &[(Ipv4Addr, Nanos)] {
        &self.recent
    }
}
