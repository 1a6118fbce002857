//! A Catalyst port's egress: queue by label, weighted tail drop on cells, shaped and shared round robin, rewrite, link.
//!
//! A frame occupies its cells until its last bit is on the wire. Like at a router's port, decisions are settled in
//! order of time and no earlier than needed (see [`crate::Engine`] on time); cells that other ports of the same memory
//! have released by then are settled when they matter.

use std::collections::VecDeque;

use crate::catalyst::buffer_pool::{BufferPool, QueueBuffers};
use crate::catalyst::ingress::IngressCounts;
use crate::catalyst::srr::{Busy, Srr};
use crate::config::catalyst_constants::{CELL_BYTES, FIFO_CHARGED, GAP, QUEUES, SHOWN_OUTPUT_QUEUE, THRESHOLDS};
use crate::counters::catalyst::SwitchPortCounters;
use crate::counters::count::Count;
use crate::counters::port::{InterfaceQueueCounters, Strategy};
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::label::Label;
use crate::link::outbound::Outbound;
use crate::link::outputs::Outputs;
use crate::link::serialiser::Serialiser;
use crate::plan::catalyst::{EgressPlan, QueueAt};
use crate::plan::port::PortPlan;
use crate::time::Time;

/// Counters of the egress side in addition to those of traffic.
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
    /// Arrival time at the interface.
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
    /// Time at which its last bit is on the wire.
    end: Time,
}

/// A Catalyst port's egress.
#[derive(Debug)]
pub(crate) struct Egress<P> {
    pub outbound: Outbound<P>,
    plan: EgressPlan,
    queues: [VecDeque<Waiting<P>>; QUEUES],
    busy: Busy,
    held: [QueueBuffers; QUEUES],
    srr: Srr,
    /// Earliest start of the next frame: the line at its operational bandwidth.
    pace: Serialiser,
    passing: Option<Passing>,
    /// The frame that starts next in the present state.
    upcoming: Option<Upcoming>,
    queue_drops: u64,
    counts: EgressCounts,
}

/// Returns the number of cells that a frame takes.
pub(crate) fn cells(descriptor: &Descriptor) -> u32 {
    (descriptor.line_len - GAP).div_ceil(CELL_BYTES)
}

impl<P> Egress<P> {
    /// Returns an egress without waiting frames.
    pub fn new(mut outbound: Outbound<P>, port: &PortPlan, plan: &EgressPlan) -> Egress<P> {
        let mut pace = Serialiser::new(plan.operational_rate(), outbound.settled);
        pace.take(outbound.link.start(outbound.settled), 0);
        outbound.configure(port);
        Egress {
            plan: plan.clone(),
            queues: std::array::from_fn(|_| VecDeque::new()),
            busy: 0,
            held: [QueueBuffers::default(); QUEUES],
            srr: Srr::new(plan, outbound.settled),
            outbound,
            pace,
            passing: None,
            upcoming: None,
            queue_drops: 0,
            counts: EgressCounts::default(),
        }
    }

    pub fn asic(&self) -> usize {
        self.plan.asic
    }

    pub fn held(&self) -> [QueueBuffers; QUEUES] {
        self.held
    }

    pub fn configure(
        &mut self,
        now: Time,
        port: &PortPlan,
        plan: &EgressPlan,
        pool: &mut BufferPool,
        outputs: &mut Outputs<P>,
    ) {
        let now = now.max(self.outbound.settled);
        self.run(now, pool);
        self.outbound.configure(port);
        self.pace.set_rate(plan.operational_rate());
        self.srr.configure(plan);
        for (held, limits) in self.held.iter_mut().zip(&plan.limits) {
            pool.reset_reservations(held, limits);
        }
        if self.plan.qos && !plan.qos {
            self.counts = EgressCounts::default();
        }
        self.plan = plan.clone();
        if !port.enabled {
            self.purge(now, pool, outputs);
        }
        self.look_ahead();
        self.run(now, pool);
    }

    /// Drops all waiting frames.
    fn purge(&mut self, now: Time, pool: &mut BufferPool, outputs: &mut Outputs<P>) {
        for (queue, held) in self.queues.iter_mut().zip(&mut self.held) {
            for waiting in queue.drain(..) {
                pool.give_back(held, waiting.cells);
                let bytes = waiting.descriptor.counted_len;
                self.outbound.drop(now, bytes, waiting.payload, DropReason::Disabled, outputs);
            }
        }
        self.busy = 0;
    }

    /// Settles everything before a frame that leaves by this port. If the memory lacks cells for it, returns the time
    /// up to which other ports should be settled first.
    pub fn prepare(&mut self, arrival: Time, descriptor: &Descriptor, pool: &mut BufferPool) -> Option<Time> {
        let (_, now) = self.outbound.arrive(arrival, descriptor.counted_len);
        self.run(now, pool);
        let queue = usize::from(self.at(self.label(descriptor)).queue);
        let offer = pool.offer(self.held[queue], &self.plan.limits[queue], cells(descriptor));
        offer.is_none().then_some(now)
    }

    /// Queues the frame of [`prepare`](Self::prepare).
    pub fn transmit(&mut self, descriptor: Descriptor, payload: P, pool: &mut BufferPool, outputs: &mut Outputs<P>) {
        // Everything before its arrival is settled.
        let now = self.outbound.settled;
        if !self.outbound.enabled {
            return self.outbound.drop(now, descriptor.counted_len, payload, DropReason::Disabled, outputs);
        }
        let label = self.label(&descriptor);
        let (queue, threshold) = {
            let at = self.at(label);
            (usize::from(at.queue), usize::from(at.threshold))
        };
        let (limits, cells) = (&self.plan.limits[queue], cells(&descriptor));
        let limit = match limits.thresholds[threshold].min(limits.maximum()) {
            limit if mistaken!(BuffersHalf) => limit / 2,
            limit if mistaken!(BuffersTwice) => limit * 2,
            limit => limit,
        };
        let fits = self.held[queue].total() + cells <= limit;
        match pool.offer(self.held[queue], limits, cells).filter(|_| fits) {
            None => {
                self.counts.dropped[queue][threshold] += 1;
                self.queue_drops += 1;
                self.outbound.drop(now, descriptor.counted_len, payload, DropReason::Tail, outputs);
            }
            Some(part) => {
                pool.take(&mut self.held[queue], part);
                self.counts.enqueued[queue][threshold] += 1;
                // `now` is later than its arrival if that was settled already.
                let arrival = self.outbound.last;
                self.queues[queue].push_back(Waiting { descriptor, payload, label, cells, arrival });
                // A frame behind another one of its queue does not change the order of departures.
                if self.busy & (1 << queue) == 0 {
                    self.busy |= 1 << queue;
                    self.look_ahead();
                    self.run(now, pool);
                }
            }
        }
    }

    /// Returns the label of a frame. A frame that the switch itself sends has none and counts by its code point
    /// (inferred).
    fn label(&self, descriptor: &Descriptor) -> Label {
        descriptor.label.unwrap_or(Label { dscp: descriptor.dscp, ..Label::default() })
    }

    fn at(&self, label: Label) -> QueueAt {
        match label.cos {
            _ if !self.plan.qos => QueueAt { queue: FIFO_CHARGED.0 as u8, threshold: FIFO_CHARGED.1 as u8 },
            Some(cos) => self.plan.cos_queue[usize::from(cos)],
            None if label.dscp == 46 && mistaken!(ExpeditedElsewhere) => QueueAt { queue: 1, threshold: 0 },
            None => self.plan.dscp_queue[usize::from(label.dscp)],
        }
    }

    /// Finds the frame that starts next. Must be called when a queue has become busy, a frame has started or the
    /// configuration has changed.
    fn look_ahead(&mut self) {
        self.upcoming = self.next();
    }

    fn next(&self) -> Option<Upcoming> {
        let start = self.srr.next(self.pace.start(self.outbound.settled), self.busy)?;
        let queue = self.srr.pick(start, self.busy)?;
        let head = self.queues[queue].front()?;
        Some(Upcoming { start, queue, end: self.outbound.link.pass(start, head.descriptor.line_len).end })
    }

    /// Settles everything up to `until`.
    fn run(&mut self, until: Time, pool: &mut BufferPool) {
        while let Some(next) = self.upcoming.filter(|next| next.start <= until) {
            self.start_frame(next, pool);
        }
        self.release(until, pool);
        self.outbound.settled = self.outbound.settled.max(until);
    }

    /// Returns the cells of the frame on the wire, if it has passed by `until`.
    fn release(&mut self, until: Time, pool: &mut BufferPool) {
        if let Some(passed) = self.passing.take_if(|passing| passing.end <= until) {
            pool.give_back(&mut self.held[passed.queue], passed.cells);
        }
    }

    fn start_frame(&mut self, Upcoming { start: now, queue, end }: Upcoming, pool: &mut BufferPool) {
        // The previous frame has passed: the pace is never faster than the line.
        self.release(Time(u64::MAX), pool);
        let Some(Waiting { mut descriptor, payload, label, cells, arrival }) = self.queues[queue].pop_front() else {
            return self.upcoming = None;
        };
        if self.queues[queue].is_empty() {
            self.busy &= !(1 << queue);
        }
        let line_len = descriptor.line_len;
        self.srr.record_served(now, queue, line_len, self.busy);
        self.pace.take(now, line_len);
        self.outbound.link.take(now, line_len);
        self.passing = Some(Passing { end, queue, cells });
        if self.plan.qos {
            descriptor.cos = self.plan.dscp_cos[usize::from(label.leaving())];
            self.counts.cos[usize::from(descriptor.cos)] += 1;
            if descriptor.is_ip() {
                if self.plan.rewrite {
                    descriptor.dscp = label.leaving();
                }
                self.counts.dscp[usize::from(descriptor.dscp)] += 1;
            }
        }
        self.outbound.settled = self.outbound.settled.max(now);
        self.look_ahead();
        self.outbound.start((now, end), arrival, descriptor, payload);
    }

    /// Returns the time at which cells are next returned.
    pub fn next_release(&self) -> Option<Time> {
        match self.passing {
            Some(passing) => Some(passing.end),
            None => self.upcoming.map(|next| next.end),
        }
    }

    /// Returns to the memory the cells that are due by `now`; settles nothing else.
    pub fn settle(&mut self, now: Time, pool: &mut BufferPool) {
        while let Some(next) = self.upcoming.filter(|next| next.end <= now) {
            self.start_frame(next, pool);
        }
        self.release(now, pool);
    }

    /// Passes on the frames that have reached the other end by `now`.
    pub fn advance(&mut self, now: Time, pool: &mut BufferPool, outputs: &mut Outputs<P>) {
        while let Some(next) = self.upcoming.filter(|next| self.outbound.reaches(next.end) <= now) {
            self.start_frame(next, pool);
        }
        self.outbound.deliver(now, outputs);
    }

    pub fn deadline(&self) -> Option<Time> {
        self.outbound.deadline(self.upcoming.map(|next| self.outbound.reaches(next.end)))
    }

    pub fn queue_counters(&self) -> InterfaceQueueCounters {
        InterfaceQueueCounters {
            strategy: Strategy::Fifo,
            depth: self.queues.iter().map(|queue| queue.len() as u64).sum(),
            limit: SHOWN_OUTPUT_QUEUE,
            drops: self.queue_drops,
            conversations: None,
            max_conversations: None,
            threshold: None,
            max_active_conversations: None,
            reserved_conversations: None,
            available_bandwidth_kbps: None,
        }
    }

    /// Returns the counters of the port in both directions.
    pub fn port_counters(&self, ingress: &IngressCounts) -> SwitchPortCounters {
        SwitchPortCounters {
            dscp_in: ingress.dscp.to_vec(),
            dscp_out: self.counts.dscp.to_vec(),
            cos_in: ingress.cos,
            cos_out: self.counts.cos,
            input_enqueued: ingress.enqueued,
            enqueued: self.counts.enqueued,
            dropped: self.counts.dropped,
            policer: ingress.policer,
            depth_cells: self.held.map(QueueBuffers::total),
            depth_packets: std::array::from_fn(|queue| self.queues[queue].len() as u64),
            operational_bandwidth_percent: f64::from(self.plan.shown_operational) / 100.0,
        }
    }

    pub fn clear(&mut self, now: Time) {
        self.outbound.clear(now);
        self.queue_drops = 0;
        self.counts = EgressCounts::default();
    }

    pub fn totals(&self) -> PortTotals {
        let mut queued = Count::default();
        self.queues.iter().flatten().for_each(|waiting| queued.add(waiting.descriptor.counted_len));
        self.outbound.totals(queued)
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
