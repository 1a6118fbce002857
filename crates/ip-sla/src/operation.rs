//! One operation and its successive runs.

use std::collections::VecDeque;

use crate::config::{Kind, OperationConfig};
use crate::packet::{self, Control, Reply};
use crate::schedule::Span;
use crate::statistics::{of_run, Answered, Fate, Hour, OperationReport, ReturnCode, Run, Sample, State, Statistics};
use crate::{since_midnight, Nanos, MILLI, SECOND};

const HOUR: Nanos = 3600 * SECOND;
/// Number of hours stored by jitter operations, regardless of the configuration (CISCO-RTTMON-MIB).
const JITTER_HOURS: u8 = 2;
/// Maximum number of stored samples of an operation.
const SAMPLES: usize = 10_000;
/// Additional time, in ms, for which a responder listens after the last packet.
const LISTEN_MARGIN_MS: u32 = 1000;

/// Packet that an operation requests to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The packet with this sequence number.
    Probe(u16, Vec<u8>),
    /// A control message to the responder.
    Control(Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: Nanos,
    skipped: bool,
    late: bool,
    answer: Option<(Nanos, Reply)>,
}

#[derive(Debug)]
struct Burst {
    start: Nanos,
    number: u64,
    /// Sequence number of the first packet.
    first: u16,
    packets: Vec<Packet>,
    /// Time at which the responder agreed, or the burst began if no responder is asked. Packet times count from here.
    open: Option<Nanos>,
    asked: bool,
    refused: bool,
}

impl Burst {
    fn index(&self, sequence: u16) -> Option<usize> {
        let at = usize::from(sequence.wrapping_sub(self.first));
        (at < self.packets.len()).then_some(at)
    }
}

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// Configuration of the operation.
    pub config: OperationConfig,
    /// ICMP identifier; of control messages too.
    pub identifier: u16,
    synchronised: bool,
    span: Option<Span>,
    /// Whether the current hour has begun.
    started: bool,
    expired: Option<Nanos>,
    next_run: Nanos,
    runs: u64,
    sequence: u16,
    burst: Option<Burst>,
    /// The run before: replies to it are late.
    past: Option<Burst>,
    latest: Run,
    successes: u64,
    failures: u64,
    over: bool,
    hours: VecDeque<Hour>,
    samples: VecDeque<Sample>,
}

impl Operation {
    /// Returns an operation with a schedule that takes effect now.
    pub fn new(config: OperationConfig, identifier: u16, synchronised: bool, now: Nanos) -> Self {
        let mut made = Self {
            config,
            identifier,
            synchronised,
            span: None,
            started: false,
            expired: None,
            next_run: 0,
            runs: 0,
            sequence: 1,
            burst: None,
            past: None,
            latest: Run::default(),
            successes: 0,
            failures: 0,
            over: false,
            hours: VecDeque::new(),
            samples: VecDeque::new(),
        };
        made.enter(now);
        made
    }

    /// Activates a schedule, whether new or the first one.
    pub fn enter(&mut self, now: Nanos) {
        self.span = self.config.schedule.as_ref().and_then(|s| s.first(now));
        self.started = false;
        self.expired = None;
    }

    /// Returns the state of the operation.
    pub fn state(&self) -> State {
        match (self.started, self.expired) {
            (true, _) => State::Active,
            (false, Some(_)) => State::Inactive,
            (false, None) => State::Pending,
        }
    }

    /// Returns whether the operation must be removed because it has not run for its age-out time.
    pub fn aged_out(&self, now: Nanos) -> bool {
        self.ageout().is_some_and(|at| now >= at)
    }

    fn ageout(&self) -> Option<Nanos> {
        let seconds = self.config.schedule.as_ref().map_or(0, |s| s.ageout_s);
        self.expired.filter(|_| seconds > 0).map(|at| at + u64::from(seconds) * SECOND)
    }

    /// Returns the time at which [`poll`](Self::poll) next has work to do.
    pub fn deadline(&self) -> Option<Nanos> {
        let span = self.span.map(|s| if self.started { s.end.unwrap_or(u64::MAX) } else { s.start });
        let run = self.started.then_some(self.next_run);
        [span, run, self.burst_deadline(), self.ageout()].into_iter().flatten().min()
    }

    fn burst_deadline(&self) -> Option<Nanos> {
        let burst = self.burst.as_ref()?;
        if !burst.asked {
            return Some(burst.start);
        }
        let Some(open) = burst.open else {
            return Some(if burst.refused { burst.start } else { burst.start + self.timeout() });
        };
        let sent = burst.packets.len() as u32;
        if sent < self.config.count() {
            return Some(open + u64::from(sent) * self.interval());
        }
        if burst.packets.iter().all(|p| p.skipped || p.late || p.answer.is_some()) {
            return Some(open);
        }
        Some(burst.packets.last().map_or(open, |p| p.sent) + self.timeout())
    }

    fn timeout(&self) -> Nanos {
        u64::from(self.config.timeout_ms) * MILLI
    }

    fn interval(&self) -> Nanos {
        u64::from(self.config.interval_ms) * MILLI
    }

    /// Starts and ends due runs.
    pub fn poll(&mut self, now: Nanos, wanted: &mut Vec<Wanted>) {
        if let Some(span) = self.span {
            if !self.started && now >= span.start && span.end.is_none_or(|end| now < end) {
                self.started = true;
                self.next_run = now.max(span.start);
            }
            if span.end.is_some_and(|end| now >= end) {
                self.started = false;
                self.expired = self.expired.or(span.end);
                self.span = self.config.schedule.as_ref().and_then(|s| s.next(span));
            }
        }
        self.advance(now, wanted);
        while self.started && now >= self.next_run {
            let frequency = u64::from(self.config.frequency_s) * SECOND;
            if self.burst.is_some() {
                // The previous run has not ended, so this one is skipped.
                self.end_run(self.next_run, ReturnCode::Busy, &Statistics::default());
            } else {
                self.begin(self.next_run.max(now));
                self.advance(now, wanted);
            }
            self.next_run += frequency;
            if now >= self.next_run {
                // Runs that a stopped process has missed are not made up for.
                self.next_run = now + frequency - (now - self.next_run) % frequency;
            }
        }
    }

    fn begin(&mut self, now: Nanos) {
        self.runs += 1;
        let ask = self.config.kind.is_udp() && self.config.control;
        self.burst = Some(Burst {
            start: now,
            number: self.runs,
            first: self.sequence,
            packets: Vec::with_capacity(self.config.count() as usize),
            open: (!ask).then_some(now),
            asked: !ask,
            refused: false,
        });
        self.sequence = self.sequence.wrapping_add(self.config.count() as u16);
    }

    fn advance(&mut self, now: Nanos, wanted: &mut Vec<Wanted>) {
        let (count, interval, timeout) = (self.config.count(), self.interval(), self.timeout());
        let Some(burst) = &mut self.burst else { return };
        if !burst.asked {
            burst.asked = true;
            let duration = count.saturating_mul(self.config.interval_ms);
            let control = Control {
                identifier: self.identifier,
                jitter: self.config.kind.is_jitter(),
                port: self.config.target_port.unwrap_or(0),
                duration_ms: duration.saturating_add(self.config.timeout_ms).saturating_add(LISTEN_MARGIN_MS),
                reply: false,
            };
            wanted.push(Wanted::Control(control.bytes()));
            return;
        }
        let Some(open) = burst.open else {
            if burst.refused || now >= burst.start + timeout {
                self.finish(ReturnCode::NoConnection);
            }
            return;
        };
        while (burst.packets.len() as u32) < count && now >= open + burst.packets.len() as u64 * interval {
            let sequence = burst.first.wrapping_add(burst.packets.len() as u16);
            let size = self.config.size();
            let bytes = match self.config.kind {
                Kind::IcmpEcho if self.config.target.is_ipv6() => packet::echo_v6(self.identifier, sequence, now, size),
                Kind::IcmpEcho => packet::echo(self.identifier, sequence, now, size),
                Kind::IcmpJitter => packet::timestamp(self.identifier, sequence, now),
                Kind::UdpEcho => packet::udp_echo(sequence, size),
                Kind::UdpJitter => packet::udp_jitter(burst.number as u16, sequence, now, size),
            };
            burst.packets.push(Packet { sent: now, skipped: false, late: false, answer: None });
            wanted.push(Wanted::Probe(sequence, bytes));
        }
        if burst.packets.len() as u32 == count && self.burst_deadline().is_some_and(|at| now >= at) {
            self.finish(ReturnCode::Ok);
        }
    }

    /// Records that the packet left at `at`.
    pub fn record_sent(&mut self, sequence: u16, at: Nanos) {
        if let Some(packet) = self.burst.as_mut().and_then(|b| b.index(sequence).map(|i| &mut b.packets[i])) {
            packet.sent = at;
        }
    }

    /// Records that the packet could not be sent.
    pub fn record_skipped(&mut self, sequence: u16) {
        if let Some(packet) = self.burst.as_mut().and_then(|b| b.index(sequence).map(|i| &mut b.packets[i])) {
            packet.skipped = true;
        }
    }

    /// Records that the responder cannot be reached, or does not listen on its control port.
    pub fn record_refused(&mut self) {
        if let Some(burst) = &mut self.burst {
            burst.refused = true;
        }
    }

    /// Handles the reply to a control message.
    pub fn control(&mut self, message: &Control, at: Nanos) {
        let port = self.config.target_port;
        if let Some(burst) = &mut self.burst {
            if message.reply && message.identifier == self.identifier && Some(message.port) == port {
                burst.open = burst.open.or(Some(at));
            }
        }
    }

    /// Records a reply that arrived at `at`.
    pub fn record_reply(&mut self, reply: Reply, at: Nanos) {
        let timeout = self.timeout();
        let late = reply.sequence % 50 == 0 && mistaken!(RoundTripLater);
        let at = if late { at + 20 * MILLI } else { at };
        let fits = |burst: &Option<Burst>| burst.as_ref().and_then(|b| b.index(reply.sequence));
        if let Some(index) = fits(&self.burst) {
            let packet = &mut self.burst.as_mut().expect("it was just found").packets[index];
            if packet.skipped || packet.late || packet.answer.is_some() {
                return; // a duplicate
            }
            if at.saturating_sub(packet.sent) > timeout {
                packet.late = true;
            } else {
                packet.answer = Some((at, reply));
            }
        } else if let Some(index) = fits(&self.past) {
            let past = self.past.as_mut().expect("it was just found");
            let (start, packet) = (past.start, &mut past.packets[index]);
            if packet.skipped || packet.late || packet.answer.is_some() {
                return;
            }
            packet.late = true;
            // The packet was counted as lost at the end of its run.
            let hour = self.hours.iter_mut().rev().find(|h| h.start_ns <= start).map(|h| &mut h.statistics);
            for statistics in hour.into_iter().chain([&mut self.latest.statistics]) {
                let losses = &mut statistics.losses;
                if losses.total > 0 {
                    losses.total -= 1;
                    losses.late += 1;
                    for known in
                        [&mut losses.missing, &mut losses.destination_to_source, &mut losses.source_to_destination]
                    {
                        if *known > 0 {
                            *known -= 1;
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Ends the run. If `code` is `Ok`, the packets decide the result.
    fn finish(&mut self, code: ReturnCode) {
        let Some(burst) = self.burst.take() else { return };
        let fate: Vec<Fate> = burst.packets.iter().enumerate().map(|(i, p)| fate(i, p)).collect();
        let statistics = of_run(&fate, self.config.threshold_ms, self.synchronised);
        let rtt = (statistics.rtt.count > 0).then(|| statistics.rtt.average());
        let code = match (code, rtt) {
            (ReturnCode::Ok, None) => ReturnCode::Timeout,
            (ReturnCode::Ok, Some(rtt)) if rtt > u64::from(self.config.threshold_ms) => ReturnCode::OverThreshold,
            (code, _) => code,
        };
        for (packet, each) in (1..).zip(&fate) {
            if let Fate::Answered(answer) = each {
                if self.samples.len() == SAMPLES {
                    self.samples.pop_front();
                }
                self.samples.push_back(Sample {
                    run: burst.number,
                    packet,
                    sent_ns: burst.packets[answer.index].sent,
                    arrived_ns: answer.arrived_ns,
                    rtt_ms: answer.rtt(),
                });
            }
        }
        self.over |= statistics.over_threshold > 0;
        let start = burst.start;
        self.end_run(start, code, &statistics);
        if let (Some(rtt), false) = (rtt, self.config.kind.is_jitter()) {
            let width = u64::from(self.config.bucket_ms);
            if let Some(hour) = self.hours.back_mut() {
                let last = hour.distribution.len() - 1;
                let bucket = &mut hour.distribution[usize::try_from(rtt / width).unwrap_or(last).min(last)];
                bucket.rtt.add(rtt);
                bucket.over_threshold += statistics.over_threshold;
            }
        }
        self.past = Some(burst);
    }

    /// Counts a run that started at `start`.
    fn end_run(&mut self, start: Nanos, code: ReturnCode, statistics: &Statistics) {
        match code {
            ReturnCode::Ok | ReturnCode::OverThreshold => self.successes += 1,
            _ => self.failures += 1,
        }
        let rtt_ms = (statistics.rtt.count > 0).then(|| statistics.rtt.average());
        self.latest = Run { start_ns: start, return_code: code, rtt_ms, statistics: *statistics };
        let kept = if self.config.kind.is_jitter() { JITTER_HOURS } else { self.config.hours };
        if kept == 0 {
            return;
        }
        // Hours are counted from the first run.
        let begin =
            self.hours.back().map_or(start, |last| last.start_ns + start.saturating_sub(last.start_ns) / HOUR * HOUR);
        if self.hours.back().is_none_or(|last| begin > last.start_ns) {
            self.hours.push_back(Hour::new(begin, self.config.buckets));
            if self.hours.len() > usize::from(kept) {
                self.hours.pop_front();
            }
        }
        let hour = self.hours.back_mut().expect("one was just pushed");
        hour.count_run(code);
        hour.statistics.merge(statistics);
    }

    /// Returns the measurements.
    pub fn report(&self, now: Nanos, samples: bool) -> OperationReport {
        OperationReport {
            state: self.state(),
            start_ns: self.span.map(|s| s.start),
            time_to_live_s: match self.span {
                Some(Span { end: None, .. }) => None,
                Some(Span { start, end: Some(end) }) => Some(end.saturating_sub(now.max(start)) / SECOND),
                None => Some(0),
            },
            latest: self.latest,
            successes: self.successes,
            failures: self.failures,
            over_thresholds_occurred: self.over,
            hours: self.hours.iter().cloned().collect(),
            samples: if samples { self.samples.iter().copied().collect() } else { Vec::new() },
        }
    }
}

fn fate(index: usize, packet: &Packet) -> Fate {
    match packet {
        Packet { skipped: true, .. } => Fate::Skipped,
        Packet { late: true, .. } => Fate::Late,
        Packet { answer: None, .. } => Fate::Lost,
        Packet { answer: Some((at, reply)), sent, .. } => Fate::Answered(Answered {
            index,
            sent: since_midnight(*sent),
            arrived: since_midnight(*at),
            arrived_ns: *at,
            remote: reply.remote,
            received: reply.received,
        }),
    }
}
