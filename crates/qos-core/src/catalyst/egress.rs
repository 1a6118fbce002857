//! A switch port's way out: queue by label, weighted tail drop on cells, shaped and shared round robin, rewrite, serialiser, propagation.
//!
//! A frame holds its cells until its last bit is on the wire. As with a router's port, decisions are settled in order of time and no earlier than
//! needed (see [`crate::engine::Engine`] on time); what other ports of the same memory have given back by then is settled when it matters.

use std::collections::VecDeque;

use crate::catalyst::buffer_pool::{Held, Pool};
use crate::catalyst::ingress::IngressCounts;
use crate::catalyst::srr::{Busy, Srr};
use crate::config::catalyst_constants::{CELL_BYTES, FIFO_CHARGED, GAP, QUEUES, THRESHOLDS};
use crate::counters::catalyst::SwitchPortCounters;
use crate::counters::count::Count;
use crate::counters::port::{InterfaceQueueCounters, PropagationCounters, RingCounters};
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::label::Label;
use crate::frame::port::PortId;
use crate::link::delay_line::{DelayLine, InFlight};
use crate::link::impairment::{Fate, Impairment};
use crate::link::line::{earlier, EgressCounters, Line};
use crate::link::outputs::Outputs;
use crate::link::serialiser::Serialiser;
use crate::link::traffic::Traffic;
use crate::meter::queueing_delay::QueueingDelay;
use crate::plan::catalyst::{EgressPlan, QueueAt};
use crate::plan::port::PortPlan;
use crate::time::Time;

/// What the way out counts beside its traffic.
#[derive(Clone, Debug)]
pub(crate) struct EgressCounts {
    pub dscp: [u64; 64],
    pub cos: [u64; 8],
    pub enqueued: [[u64; THRESHOLDS]; QUEUES],
    pub dropped: [[u64; THRESHOLDS]; QUEUES],
}

impl Default for EgressCounts {
    fn default() -> EgressCounts {
        EgressCounts { dscp: [0; 64], cos: [0; 8], enqueued: Default::default(), dropped: Default::default() }
    }
}

/// A frame in a queue.
#[derive(Debug)]
struct Waiting<P> {
    descriptor: Descriptor,
    payload: P,
    label: Label,
    cells: u32,
    /// When it came to the interface.
    arrival: Time,
}

/// The frame on the wire.
#[derive(Clone, Copy, Debug)]
struct Passing {
    end: Time,
    queue: usize,
    cells: u32,
}

/// The head of a queue that is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Upcoming {
    start: Time,
    queue: usize,
    /// When its last bit is on the wire.
    end: Time,
}

/// A switch port's way out.
#[derive(Debug)]
pub(crate) struct SwitchEgress<P> {
    port: PortId,
    plan: EgressPlan,
    queues: [VecDeque<Waiting<P>>; QUEUES],
    busy: Busy,
    held: [Held; QUEUES],
    srr: Srr,
    /// The physical line.
    link: Serialiser,
    /// When the next frame may start: the line at its operational bandwidth.
    pace: Serialiser,
    passing: Option<Passing>,
    /// The frame that starts next as things are.
    upcoming: Option<Upcoming>,
    impairment: Impairment,
    wire: DelayLine<P>,
    /// Everything up to here is settled.
    settled: Time,
    last: Time,
    enabled: bool,
    traffic: Traffic,
    delay: QueueingDelay,
    queue_drops: u64,
    counts: EgressCounts,
}

/// Cells that a frame takes.
pub(crate) fn cells(descriptor: &Descriptor) -> u32 {
    (descriptor.line_len - GAP).div_ceil(CELL_BYTES)
}

impl<P> SwitchEgress<P> {
    /// Takes over from a port that was not configured yet and has nothing waiting.
    pub fn new(line: Line<P>, enabled: bool, plan: &EgressPlan) -> SwitchEgress<P> {
        let Line { port, link, impairment, wire, settled, last, traffic, delay } = line;
        let mut pace = Serialiser::new(plan.operational_rate(), settled);
        pace.take(link.start(settled), 0);
        let mut egress = SwitchEgress {
            port,
            plan: plan.clone(),
            queues: std::array::from_fn(|_| VecDeque::new()),
            busy: 0,
            held: [Held::default(); QUEUES],
            srr: Srr::new(plan, settled),
            link,
            pace,
            passing: None,
            upcoming: None,
            impairment,
            wire,
            settled,
            last,
            enabled,
            traffic,
            delay,
            queue_drops: 0,
            counts: EgressCounts::default(),
        };
        egress.link.set_rate(plan.speed);
        egress
    }

    pub fn asic(&self) -> usize {
        self.plan.asic
    }

    pub fn held(&self) -> [Held; QUEUES] {
        self.held
    }

    pub fn configure(
        &mut self,
        now: Time,
        new: &PortPlan,
        plan: &EgressPlan,
        pool: &mut Pool,
        outputs: &mut Outputs<P>,
    ) {
        let now = now.max(self.settled);
        self.run(now, pool);
        self.link.set_rate(plan.speed);
        self.pace.set_rate(plan.operational_rate());
        self.srr.configure(plan);
        for (held, limits) in self.held.iter_mut().zip(&plan.limits) {
            pool.reserve_anew(held, limits);
        }
        self.traffic.load_interval_s = new.load_interval_s;
        self.enabled = new.enabled;
        if self.plan.qos && !plan.qos {
            self.counts = EgressCounts::default();
        }
        self.plan = plan.clone();
        if !new.enabled {
            self.purge(now, pool, outputs);
        }
        self.look_ahead();
        self.run(now, pool);
    }

    /// Drops everything that waits.
    fn purge(&mut self, now: Time, pool: &mut Pool, outputs: &mut Outputs<P>) {
        for (queue, held) in self.queues.iter_mut().zip(&mut self.held) {
            for waiting in queue.drain(..) {
                pool.give_back(held, waiting.cells);
                self.traffic.dropped(DropReason::Disabled, waiting.descriptor.counted_len);
                outputs.drop_wire(now, self.port, DropReason::Disabled, waiting.payload);
            }
        }
        self.busy = 0;
    }

    /// A frame is to leave by this port: settles what comes before it and says whether the memory lacks cells for it, so that other
    /// ports should be settled first.
    pub fn prepare(&mut self, arrival: Time, descriptor: &Descriptor, pool: &mut Pool) -> (Time, bool) {
        let arrival = arrival.max(self.last);
        self.last = arrival;
        if arrival < self.settled {
            self.traffic.late(self.settled.since(arrival));
        }
        let now = arrival.max(self.settled);
        self.run(now, pool);
        let queue = usize::from(self.at(self.label(descriptor)).queue);
        (now, pool.offer(self.held[queue], &self.plan.limits[queue], cells(descriptor)).is_none())
    }

    /// The frame of [`prepare`](Self::prepare).
    pub fn transmit(
        &mut self,
        now: Time,
        descriptor: Descriptor,
        payload: P,
        pool: &mut Pool,
        outputs: &mut Outputs<P>,
    ) {
        self.traffic.totals.offered.add(descriptor.counted_len);
        if !self.enabled {
            return self.drop(now, &descriptor, payload, DropReason::Disabled, outputs);
        }
        let label = self.label(&descriptor);
        let (queue, threshold) = {
            let at = self.at(label);
            (usize::from(at.queue), usize::from(at.threshold))
        };
        let (limits, cells) = (&self.plan.limits[queue], cells(&descriptor));
        let limit = limits.thresholds[threshold].min(limits.maximum());
        let fits = self.held[queue].total() + cells <= limit;
        match pool.offer(self.held[queue], limits, cells).filter(|_| fits) {
            None => {
                self.counts.dropped[queue][threshold] += 1;
                self.queue_drops += 1;
                self.drop(now, &descriptor, payload, DropReason::Tail, outputs);
            }
            Some(part) => {
                pool.take(&mut self.held[queue], part);
                self.counts.enqueued[queue][threshold] += 1;
                // `last` is its arrival: `now` is later where that was settled already.
                self.queues[queue].push_back(Waiting { descriptor, payload, label, cells, arrival: self.last });
                // Behind another frame of its queue it does not change what comes next.
                if self.busy & (1 << queue) == 0 {
                    self.busy |= 1 << queue;
                    self.look_ahead();
                    self.run(now, pool);
                }
            }
        }
    }

    /// The label of a frame. One that the switch itself sends has none and counts by its code point (inferred).
    fn label(&self, descriptor: &Descriptor) -> Label {
        descriptor.label.unwrap_or(Label { dscp: descriptor.dscp, cos: None })
    }

    fn at(&self, label: Label) -> QueueAt {
        match label.cos {
            _ if !self.plan.qos => QueueAt { queue: FIFO_CHARGED.0 as u8, threshold: FIFO_CHARGED.1 as u8 },
            Some(cos) => self.plan.cos_queue[usize::from(cos)],
            None => self.plan.dscp_queue[usize::from(label.dscp)],
        }
    }

    fn drop(&mut self, now: Time, descriptor: &Descriptor, payload: P, reason: DropReason, outputs: &mut Outputs<P>) {
        self.traffic.dropped(reason, descriptor.counted_len);
        outputs.drop_wire(now, self.port, reason, payload);
    }

    /// Finds the frame that starts next. To be called when a queue has become busy, a frame has started or the configuration has changed.
    fn look_ahead(&mut self) {
        self.upcoming = self.next();
    }

    fn next(&self) -> Option<Upcoming> {
        let start = self.srr.next(self.pace.start(self.settled), self.busy)?;
        let queue = self.srr.pick(start, self.busy)?;
        let head = self.queues[queue].front()?;
        Some(Upcoming { start, queue, end: self.link.pass(start, head.descriptor.line_len).end })
    }

    /// Settles everything up to `until`.
    fn run(&mut self, until: Time, pool: &mut Pool) {
        while let Some(next) = self.upcoming.filter(|next| next.start <= until) {
            self.start_frame(next, pool);
        }
        self.release(until, pool);
        self.settled = self.settled.max(until);
    }

    /// The frame on the wire gives its cells back, if it has passed by `until`.
    fn release(&mut self, until: Time, pool: &mut Pool) {
        if let Some(passed) = self.passing.take_if(|passing| passing.end <= until) {
            pool.give_back(&mut self.held[passed.queue], passed.cells);
        }
    }

    fn start_frame(&mut self, Upcoming { start: now, queue, end }: Upcoming, pool: &mut Pool) {
        // The one before has passed: the pace is never faster than the line.
        self.release(Time(u64::MAX), pool);
        let Some(Waiting { mut descriptor, payload, label, cells, arrival }) = self.queues[queue].pop_front() else {
            return self.upcoming = None;
        };
        if self.queues[queue].is_empty() {
            self.busy &= !(1 << queue);
        }
        let (bytes, line_len) = (descriptor.counted_len, descriptor.line_len);
        self.srr.served(now, queue, line_len, self.busy);
        self.pace.take(now, line_len);
        self.link.take(now, line_len);
        self.passing = Some(Passing { end, queue, cells });
        if self.plan.qos {
            descriptor.cos = self.plan.dscp_cos[usize::from(label.dscp)];
            self.counts.cos[usize::from(descriptor.cos)] += 1;
            if descriptor.is_ip() {
                if self.plan.rewrite {
                    descriptor.dscp = label.dscp;
                }
                self.counts.dscp[usize::from(descriptor.dscp)] += 1;
            }
        }
        self.traffic.count(now, bytes);
        self.delay.record(now.since(arrival));
        self.settled = self.settled.max(now);
        self.look_ahead();
        let Fate { arrives, lost } = self.impairment.pass(end);
        if lost {
            self.traffic.lost(bytes);
        } else {
            self.traffic.totals.sent.add(bytes);
        }
        self.wire.push(InFlight { arrives, lost, descriptor, payload });
    }

    /// When cells will next be given back.
    pub fn next_release(&self) -> Option<Time> {
        match self.passing {
            Some(passing) => Some(passing.end),
            None => self.upcoming.map(|next| next.end),
        }
    }

    /// Gives back the cells that are due by `now`; settles no more than that takes.
    pub fn settle(&mut self, now: Time, pool: &mut Pool) {
        while let Some(next) = self.upcoming.filter(|next| next.end <= now) {
            self.start_frame(next, pool);
        }
        self.release(now, pool);
    }

    /// Passes on what has reached the other end by `now`.
    pub fn advance(&mut self, now: Time, pool: &mut Pool, outputs: &mut Outputs<P>) {
        let least = self.impairment.least();
        while let Some(next) = self.upcoming.filter(|next| next.end + least <= now) {
            self.start_frame(next, pool);
        }
        // Only now: with jitter what starts later may arrive earlier.
        while let Some(InFlight { arrives, lost, descriptor, payload }) = self.wire.pop(now) {
            if lost {
                outputs.drop_wire(arrives, self.port, DropReason::Lost, payload);
            } else {
                outputs.depart_wire(arrives, self.port, descriptor, payload);
            }
        }
    }

    pub fn deadline(&self) -> Option<Time> {
        let due = self.upcoming.map(|next| next.end + self.impairment.least());
        earlier(self.wire.next(), due)
    }

    pub fn counters(&mut self, now: Time, plan: &PortPlan) -> EgressCounters {
        EgressCounters {
            output: self.traffic.counters(now),
            queue: InterfaceQueueCounters {
                strategy: plan.strategy,
                depth: self.queues.iter().map(|queue| queue.len() as u64).sum(),
                limit: plan.hold_queue,
                drops: self.queue_drops,
                conversations: None,
                max_conversations: None,
                threshold: None,
                max_active_conversations: None,
                reserved_conversations: None,
                available_bandwidth_kbps: None,
            },
            tx_ring: RingCounters { limit: 0, depth: 0 },
            queueing_delay: self.delay.counters(),
            link: PropagationCounters { lost: self.traffic.lost, in_flight: self.wire.len() as u64 },
            policy: None,
        }
    }

    /// What the port counts in both directions.
    pub fn port_counters(&self, ingress: Option<&IngressCounts>) -> SwitchPortCounters {
        let ingress = ingress.cloned().unwrap_or_default();
        SwitchPortCounters {
            dscp_in: ingress.dscp.to_vec(),
            dscp_out: self.counts.dscp.to_vec(),
            cos_in: ingress.cos,
            cos_out: self.counts.cos,
            input_enqueued: ingress.enqueued,
            enqueued: self.counts.enqueued,
            dropped: self.counts.dropped,
            policer: ingress.policer,
            depth_cells: self.held.map(Held::total),
            depth_packets: std::array::from_fn(|queue| self.queues[queue].len() as u64),
            operational_bandwidth_percent: f64::from(self.plan.shown_operational) / 100.0,
        }
    }

    pub fn clear(&mut self, now: Time) {
        self.traffic.clear(now);
        self.delay.clear();
        self.queue_drops = 0;
        self.counts = EgressCounts::default();
    }

    pub fn totals(&self) -> PortTotals {
        let mut queued = Count::default();
        self.queues.iter().flatten().for_each(|waiting| queued.add(waiting.descriptor.counted_len));
        PortTotals { queued, ..self.traffic.totals }
    }

    pub fn audit(&self) -> Result<(), String> {
        if self.upcoming != self.next() {
            return Err(format!("{:?} is to come, {:?} is expected", self.next(), self.upcoming));
        }
        for (number, queue) in self.queues.iter().enumerate() {
            let passing = self.passing.filter(|passing| passing.queue == number).map_or(0, |passing| passing.cells);
            let found = queue.iter().map(|waiting| waiting.cells).sum::<u32>() + passing;
            if found != self.held[number].total() {
                return Err(format!("queue {number}: frames hold {found} cells, {:?} are counted", self.held[number]));
            }
            if (self.busy & (1 << number) != 0) == queue.is_empty() {
                return Err(format!("queue {number}: {} frames, busy {:b}", queue.len(), self.busy));
            }
        }
        Ok(())
    }
}
