//! One run of an operation: its packets, and what they come to.

use crate::config::{Kind, OperationConfig};
use crate::packet::Remote;
use crate::report::{Figures, ReturnCode};
use crate::{Nanos, MILLISECOND};

const DAY_MS: i64 = 86_400_000;

/// A packet of a run.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// When it was to be sent.
    asked: Nanos,
    /// When it was seen leaving, before any queue.
    sent: Option<Nanos>,
    /// When its reply came, in time.
    reply: Option<(Nanos, Option<Remote>)>,
    late: bool,
    unsendable: bool,
}

/// A run that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub started: Nanos,
    first: u32,
    packets: Vec<Packet>,
    /// Indices of the packets in the order of their replies.
    replied: Vec<usize>,
    total: u32,
    next: Nanos,
    interval: u64,
    timeout: u64,
}

impl Run {
    /// A run whose first packet is due at `now` and has the sequence number `first`.
    pub fn new(started: Nanos, now: Nanos, first: u32, config: &OperationConfig) -> Run {
        Run {
            started,
            first,
            packets: Vec::new(),
            replied: Vec::new(),
            total: config.packets(),
            next: now,
            interval: u64::from(config.interval_ms) * MILLISECOND,
            timeout: u64::from(config.timeout_ms) * MILLISECOND,
        }
    }

    fn sending(&self) -> bool {
        self.packets.len() < self.total as usize
    }

    /// The sequence number of the packet that is due, if one is. A sender that was held up does not catch up in a burst: the
    /// spacing is what the operation measures by.
    pub fn due(&mut self, now: Nanos) -> Option<u32> {
        if !self.sending() || self.next > now {
            return None;
        }
        let sequence = self.first.wrapping_add(self.packets.len() as u32);
        self.packets.push(Packet { asked: now, sent: None, reply: None, late: false, unsendable: false });
        self.next = now + self.interval;
        Some(sequence)
    }

    /// When something is to be done next.
    pub fn deadline(&self) -> Nanos {
        if self.sending() {
            self.next
        } else {
            self.end()
        }
    }

    /// When the last packet's time is over.
    fn end(&self) -> Nanos {
        let over = |packet: &Packet| packet.sent.unwrap_or(packet.asked) + self.timeout;
        self.packets.iter().filter(|packet| packet.reply.is_none() && !packet.unsendable).map(over).max().unwrap_or(0)
    }

    pub fn ended(&self, now: Nanos) -> bool {
        !self.sending() && self.end() <= now
    }

    fn packet(&mut self, sequence: u32) -> Option<(usize, &mut Packet)> {
        let index = sequence.wrapping_sub(self.first) as usize;
        self.packets.get_mut(index).map(|packet| (index, packet))
    }

    pub fn sent(&mut self, sequence: u32, at: Nanos) {
        if let Some((_, packet)) = self.packet(sequence) {
            packet.sent.get_or_insert(at);
        }
    }

    pub fn unsendable(&mut self, sequence: u32) {
        if let Some((_, packet)) = self.packet(sequence) {
            packet.unsendable = true;
        }
    }

    pub fn received(&mut self, sequence: u32, at: Nanos, remote: Option<Remote>) {
        let timeout = self.timeout;
        let Some((index, packet)) = self.packet(sequence) else { return };
        if packet.reply.is_some() || packet.late {
            return; // a duplicate
        }
        if at.saturating_sub(packet.sent.unwrap_or(packet.asked)) > timeout {
            packet.late = true;
        } else {
            packet.reply = Some((at, remote));
            self.replied.push(index);
        }
    }

    /// How the run ended, its round-trip time in ms, and its figures.
    pub fn result(&self, config: &OperationConfig) -> (ReturnCode, Option<u64>, Figures) {
        let mut figures = Figures::default();
        if !config.kind.jitter() {
            figures.distribution = vec![0; config.distributions_kept as usize];
        }
        for packet in &self.packets {
            figures.late += u64::from(packet.late);
            figures.skipped += u64::from(packet.unsendable);
            let (Some(sent), Some((at, remote))) = (packet.sent, packet.reply) else { continue };
            let rtt = round_trip_ms(sent, at, remote);
            figures.rtt_ms.add(rtt);
            figures.rtt_ns.add(at.saturating_sub(sent));
            figures.over_threshold += u64::from(rtt > u64::from(config.threshold_ms));
            if let Some(last) = figures.distribution.len().checked_sub(1) {
                let bucket = (rtt / u64::from(config.distribution_interval_ms)) as usize;
                figures.distribution[bucket.min(last)] += 1;
            }
        }
        self.jitter(&mut figures);
        self.losses(config.kind, &mut figures);
        self.order(&mut figures);
        let rtt = (figures.rtt_ms.count > 0).then(|| figures.rtt_ms.average());
        let code = match rtt {
            Some(rtt) if rtt > u64::from(config.threshold_ms) => ReturnCode::OverThreshold,
            Some(_) => ReturnCode::Ok,
            None if self.packets.iter().all(|packet| packet.unsendable) => ReturnCode::NoConnection,
            None => ReturnCode::Timeout,
        };
        (code, rtt, figures)
    }

    /// Of consecutive packets that were both answered (inferred: the guides define jitter for consecutive packets).
    fn jitter(&self, figures: &mut Figures) {
        for pair in self.packets.windows(2) {
            let [Some((t1, t4, there)), Some((next_t1, next_t4, next_there))] = [stamps(&pair[0]), stamps(&pair[1])]
            else {
                continue;
            };
            let towards = day_difference(next_there.received_ms, there.received_ms) - (ms(next_t1) - ms(t1));
            let back = (ms(next_t4) - ms(t4)) - day_difference(next_there.sent_ms, there.sent_ms);
            figures.source_to_destination.add(towards);
            figures.destination_to_source.add(back);
        }
    }

    fn losses(&self, kind: Kind, figures: &mut Figures) {
        let lost = |packet: &Packet| packet.reply.is_none() && !packet.late && !packet.unsendable;
        for period in self.packets.chunk_by(|a, b| lost(a) == lost(b)).filter(|period| lost(&period[0])) {
            figures.loss_periods.add(period.len() as u64);
        }
        let all = self.packets.iter().filter(|packet| lost(packet)).count() as u64;
        let answered = self.packets.iter().filter_map(|packet| packet.reply?.1?.order).max();
        let last = self.packets.iter().rposition(|packet| packet.reply.is_some());
        match (kind, answered, last) {
            // The target numbers its answers: up to the last that came, what it did not number was lost on the way there.
            (Kind::UdpJitter, Some(answered), Some(last)) => {
                let before = self.packets[..=last].iter().filter(|packet| lost(packet)).count() as u64;
                let reached = u64::from(answered) + 1;
                let back = reached.saturating_sub(self.replied.len() as u64).min(before);
                figures.lost.destination_to_source = back;
                figures.lost.source_to_destination = before - back;
                figures.lost.unknown = all - before;
            }
            _ => figures.lost.unknown = all,
        }
    }

    /// Replies that came before one to an earlier packet. Where the target got the packets in the order of its answers, they overtook
    /// each other on the way there.
    fn order(&self, figures: &mut Figures) {
        for pair in self.replied.windows(2).filter(|pair| pair[1] < pair[0]) {
            let place = |index: usize| {
                let remote = self.packets[index].reply.and_then(|(_, remote)| remote)?;
                Some(remote.order.unwrap_or(remote.received_ms))
            };
            let counts = &mut figures.out_of_sequence;
            match (place(pair[0]), place(pair[1])) {
                (Some(first), Some(second)) if first < second => counts.source_to_destination += 1,
                (Some(first), Some(second)) if first > second => counts.destination_to_source += 1,
                _ => counts.both += 1,
            }
        }
    }
}

fn stamps(packet: &Packet) -> Option<(Nanos, Nanos, Remote)> {
    let (at, remote) = packet.reply?;
    Some((packet.sent?, at, remote?))
}

fn ms(time: Nanos) -> i64 {
    (time / MILLISECOND) as i64
}

/// Difference of two stamps in ms since midnight, which may lie between them.
fn day_difference(later: u32, earlier: u32) -> i64 {
    let difference = (i64::from(later) - i64::from(earlier)).rem_euclid(DAY_MS);
    if difference > DAY_MS / 2 {
        difference - DAY_MS
    } else {
        difference
    }
}

/// (T4 - T1) - (T3 - T2). Stamps of whole milliseconds can make it one too small, hence never below zero.
fn round_trip_ms(sent: Nanos, at: Nanos, remote: Option<Remote>) -> u64 {
    let there = remote.map_or(0, |remote| day_difference(remote.sent_ms, remote.received_ms));
    (ms(at) - ms(sent) - there).max(0).unsigned_abs()
}
