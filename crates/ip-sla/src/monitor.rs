//! All operations of a router.

use std::collections::BTreeMap;

use crate::config::{Fault, IpSlaConfig, OperationConfig};
use crate::hours::Hours;
use crate::packet::{Probe, Reply, Target};
use crate::report::{Figures, Latest, OperationReport, Report, ReturnCode, State};
use crate::run::Run;
use crate::schedule::{Phase, Timetable};
use crate::{Nanos, MILLISECOND, SECOND};

/// What the caller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a packet.
    Send(Probe, Target),
    /// Ask the responder to listen, and give its answer to [`Monitor::control`].
    Ask {
        /// For which operation.
        operation: u32,
        /// Whose target.
        target: Target,
        /// Milliseconds for which it shall listen.
        duration_ms: u32,
    },
}

/// The operations of a router.
#[derive(Debug, Default)]
pub struct Monitor {
    operations: BTreeMap<u32, Operation>,
}

#[derive(Debug)]
struct Operation {
    config: OperationConfig,
    icmp_id: u16,
    timetable: Timetable,
    run: Option<Run>,
    /// A run that waits for the responder: its start, and until when it waits.
    asking: Option<(Nanos, Nanos)>,
    sequence: u32,
    latest: Option<Latest>,
    hours: Hours,
    successes: u64,
    failures: u64,
}

impl Monitor {
    /// Puts a configuration in force, all of it or nothing. An operation that did not change goes on; a changed one starts anew.
    ///
    /// # Errors
    /// The operation and field that cannot be used.
    pub fn configure(&mut self, now: Nanos, config: &IpSlaConfig) -> Result<(), (u32, Fault)> {
        for (number, operation) in &config.operations {
            operation.check().map_err(|fault| (*number, fault))?;
        }
        self.operations.retain(|number, operation| config.operations.get(number) == Some(&operation.config));
        for (number, wanted) in &config.operations {
            if !self.operations.contains_key(number) {
                let icmp_id = self.free_id();
                self.operations.insert(*number, Operation::new(now, wanted, icmp_id));
            }
        }
        Ok(())
    }

    /// An ICMP identifier that no operation uses.
    fn free_id(&self) -> u16 {
        let used = |id: &u16| self.operations.values().any(|operation| operation.icmp_id == *id);
        (FIRST_ICMP_ID..=u16::MAX).find(|id| !used(id)).unwrap_or(FIRST_ICMP_ID)
    }

    /// When [`poll`](Monitor::poll) is due next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.operations.values().filter_map(Operation::deadline).min()
    }

    /// What is to be done now.
    pub fn poll(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        for (number, operation) in &mut self.operations {
            operation.poll(*number, now, actions);
        }
    }

    /// The ICMP identifier of an operation's packets.
    pub fn icmp_id(&self, operation: u32) -> Option<u16> {
        self.operations.get(&operation).map(|found| found.icmp_id)
    }

    /// The packet with an ICMP identifier and the low half of a sequence number, as far as one of a run that goes on has them.
    pub fn icmp_probe(&self, id: u16, sequence: u16) -> Option<Probe> {
        let (number, operation) = self.operations.iter().find(|(_, operation)| operation.icmp_id == id)?;
        // At most 60000 packets of a run are out, so the low half tells them apart.
        let back = (operation.sequence as u16).wrapping_sub(sequence);
        Some(Probe { operation: *number, sequence: operation.sequence.wrapping_sub(u32::from(back)) })
    }

    /// A packet was seen leaving, before any queue.
    pub fn sent(&mut self, probe: Probe, at: Nanos) {
        if let Some(run) = self.run(probe.operation) {
            run.sent(probe.sequence, at);
        }
    }

    /// A packet could not be sent.
    pub fn unsendable(&mut self, probe: Probe) {
        if let Some(run) = self.run(probe.operation) {
            run.unsendable(probe.sequence);
        }
    }

    /// A reply came. One that no run waits for is ignored.
    pub fn received(&mut self, reply: Reply) {
        if let Some(run) = self.run(reply.probe.operation) {
            run.received(reply.probe.sequence, reply.at, reply.remote);
        }
    }

    /// The responder has answered whether it listens.
    pub fn control(&mut self, operation: u32, listens: bool, now: Nanos) {
        let Some(found) = self.operations.get_mut(&operation) else { return };
        if let Some((started, _)) = found.asking.take() {
            if listens {
                found.run = Some(Run::new(started, now, found.sequence, &found.config));
            } else {
                found.no_connection(started);
            }
        }
    }

    fn run(&mut self, operation: u32) -> Option<&mut Run> {
        self.operations.get_mut(&operation)?.run.as_mut()
    }

    /// What the operations came to. The responder's part is the caller's.
    pub fn report(&self, now: Nanos) -> Report {
        let operations = self.operations.iter().map(|(number, operation)| (*number, operation.report(now))).collect();
        Report { operations, responder: None }
    }
}

/// Identifiers below are left to others, such as ping.
const FIRST_ICMP_ID: u16 = 0xc000;

impl Operation {
    fn new(now: Nanos, config: &OperationConfig, icmp_id: u16) -> Operation {
        let timetable = Timetable::new(now, config.schedule, config.frequency_s);
        let hours = Hours::new(timetable.next().unwrap_or(now), config.hours_kept);
        Operation {
            config: config.clone(),
            icmp_id,
            timetable,
            run: None,
            asking: None,
            sequence: 0,
            latest: None,
            hours,
            successes: 0,
            failures: 0,
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        let run = self.run.as_ref().map(Run::deadline);
        [self.timetable.next(), run, self.asking.map(|(_, until)| until)].into_iter().flatten().min()
    }

    fn target(&self) -> Target {
        Target {
            kind: self.config.kind,
            destination: self.config.destination,
            source: self.config.source,
            destination_port: self.config.destination_port.unwrap_or(0),
            source_port: self.config.source_port.unwrap_or(0),
            tos: self.config.tos,
            size: self.config.request_data_size,
        }
    }

    fn poll(&mut self, number: u32, now: Nanos, actions: &mut Vec<Action>) {
        self.finish(now);
        while let Some(at) = self.timetable.next().filter(|at| *at <= now) {
            self.timetable.advance();
            self.start(number, at, now, actions);
        }
        let target = self.target();
        if let Some(run) = &mut self.run {
            while let Some(sequence) = run.due(now) {
                self.sequence = sequence.wrapping_add(1);
                actions.push(Action::Send(Probe { operation: number, sequence }, target));
            }
        }
        self.finish(now);
    }

    fn start(&mut self, number: u32, at: Nanos, now: Nanos, actions: &mut Vec<Action>) {
        if self.run.is_some() || self.asking.is_some() {
            let figures = Figures { busy: 1, ..Figures::default() };
            self.hours.add(at, None, &figures);
            self.latest = Some(Latest { started_ns: at, return_code: ReturnCode::Busy, rtt_ms: None, figures });
        } else if self.config.kind.udp() && self.config.control {
            self.asking = Some((at, now + u64::from(self.config.timeout_ms) * MILLISECOND));
            let sending = u64::from(self.config.packets() - 1) * u64::from(self.config.interval_ms);
            let duration_ms = u32::try_from(sending + u64::from(self.config.timeout_ms)).unwrap_or(u32::MAX);
            actions.push(Action::Ask { operation: number, target: self.target(), duration_ms });
        } else {
            self.run = Some(Run::new(at, now, self.sequence, &self.config));
        }
    }

    fn finish(&mut self, now: Nanos) {
        if let Some((started, _)) = self.asking.filter(|(_, until)| *until <= now) {
            self.asking = None;
            self.no_connection(started);
        }
        if let Some(run) = self.run.take_if(|run| run.ended(now)) {
            let (code, rtt_ms, figures) = run.result(&self.config);
            self.ended(run.started, code, rtt_ms, figures);
        }
    }

    fn no_connection(&mut self, started: Nanos) {
        let figures = Figures { no_connection: 1, ..Figures::default() };
        self.ended(started, ReturnCode::NoConnection, None, figures);
    }

    fn ended(&mut self, started: Nanos, return_code: ReturnCode, rtt_ms: Option<u64>, figures: Figures) {
        let answered = rtt_ms.is_some();
        self.successes += u64::from(answered);
        self.failures += u64::from(!answered);
        self.hours.add(started, Some(answered), &figures);
        self.latest = Some(Latest { started_ns: started, return_code, rtt_ms, figures });
    }

    fn report(&self, now: Nanos) -> OperationReport {
        let state = match self.timetable.phase(now) {
            Phase::Pending => State::Pending,
            Phase::Active => State::Active,
            Phase::Inactive => State::Inactive,
        };
        let left = |end: Nanos| end.saturating_sub(now) / SECOND;
        OperationReport {
            kind: self.config.kind,
            state,
            life_left_s: self.timetable.ends().filter(|_| state == State::Active).map(left),
            started_ns: self.timetable.started(now),
            latest: self.latest.clone(),
            successes: self.successes,
            failures: self.failures,
            hours: self.hours.list(),
        }
    }
}
