//! A port's way out: output policy, queues, transmit ring, serialiser, propagation.
//!
//! Three kinds of events happen here: a packet arrives; a frame starts on the wire, which frees a place in the ring; a shaper lets a packet go.
//! They are settled in order of time, and no earlier than needed: see [`crate::engine::Engine`] on time.

use crate::classify::access_list::AccessList;
use crate::config::wiring::PortConfig;
use crate::counters::count::Count;
use crate::counters::port::{InterfaceQueueCounters, PropagationCounters, RingCounters};
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::port::{PortId, Side};
use crate::link::delay_line::{DelayLine, InFlight};
use crate::link::impairment::{Fate, Impairment};
use crate::link::line::{earlier, EgressCounters, Line};
use crate::link::outputs::Outputs;
use crate::link::serialiser::{Passage, Serialiser};
use crate::link::traffic::Traffic;
use crate::meter::queueing_delay::QueueingDelay;
use crate::plan::port::PortPlan;
use crate::plan::tree::SINGLE;
use crate::policy::Policy;
use crate::queueing::discipline::{Discipline, Enqueued, Item};
use crate::queueing::scheduler::Scheduler;
use crate::router::tx_ring::TxRing;
use crate::time::Time;

/// A port's way out.
#[derive(Debug)]
pub(crate) struct Egress<P> {
    port: PortId,
    seed: u64,
    policy: Option<Policy>,
    scheduler: Scheduler<P>,
    ring: TxRing<P>,
    link: Serialiser,
    /// How the frame at the head of the ring will pass the link.
    upcoming: Option<Passage>,
    impairment: Impairment,
    wire: DelayLine<P>,
    /// Everything up to here is settled.
    settled: Time,
    last: Time,
    enabled: bool,
    traffic: Traffic,
    delay: QueueingDelay,
    queue_drops: u64,
}

impl<P> Egress<P> {
    pub fn new(port: PortId, plan: &PortPlan, config: &PortConfig, seed: u64, now: Time) -> Egress<P> {
        Egress {
            port,
            seed,
            policy: None,
            scheduler: Scheduler::new(&plan.nodes, plan.hold, seed, now),
            ring: TxRing::new(plan.ring_limit),
            link: Serialiser::new(plan.rate, now),
            upcoming: None,
            impairment: if config.paced_by_peer {
                Impairment::first_half(&config.link)
            } else {
                Impairment::of(&config.link, Side::Wire)
            },
            wire: DelayLine::new(now),
            settled: now,
            last: now,
            enabled: plan.enabled,
            traffic: Traffic::new(now, plan.load_interval_s),
            delay: QueueingDelay::new(),
            queue_drops: 0,
        }
    }

    /// Changes what the port runs. Everything up to `now` must be settled.
    pub fn configure(
        &mut self,
        now: Time,
        old: &PortPlan,
        new: &PortPlan,
        lists: &mut [AccessList],
        outputs: &mut Outputs<P>,
    ) {
        let now = now.max(self.settled);
        self.run(now);
        self.link.set_rate(new.rate);
        self.look_ahead();
        self.ring.set_limit(new.ring_limit);
        self.traffic.load_interval_s = new.load_interval_s;
        self.enabled = new.enabled;
        self.scheduler.set_hold(new.hold);
        if old.output != new.output || old.nodes != new.nodes || old.police_in_drop_rate != new.police_in_drop_rate {
            self.replace(now, new, lists, outputs);
        } else if let Some(policy) = &mut self.policy {
            policy.set_load_interval(new.load_interval_s);
        }
        if !new.enabled {
            self.purge(now, outputs);
        }
        self.fill(now);
        self.run(now);
    }

    /// Drops what waits and leaves the line.
    pub fn into_line(mut self, now: Time, outputs: &mut Outputs<P>) -> Line<P> {
        let now = now.max(self.settled);
        self.run(now);
        self.purge(now, outputs);
        let Egress { port, link, impairment, wire, settled, last, traffic, delay, .. } = self;
        Line { port, link, impairment, wire, settled, last, traffic, delay }
    }

    /// Makes the index of the policy's classes anew.
    pub fn index(&mut self, lists: &[AccessList]) {
        if let Some(policy) = &mut self.policy {
            policy.index(lists);
        }
    }

    /// Puts other queues in place; what waits moves to them.
    fn replace(&mut self, now: Time, new: &PortPlan, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        let mut policy =
            new.output.clone().map(|plan| Policy::new(plan, now, new.load_interval_s, new.police_in_drop_rate));
        std::mem::swap(&mut self.policy, &mut policy);
        let mut scheduler = Scheduler::new(&new.nodes, new.hold, self.seed, now);
        std::mem::swap(&mut self.scheduler, &mut scheduler);
        for mut item in scheduler.drain() {
            let verdict = self.policy.as_mut().map(|policy| policy.readmit(now, &mut item.descriptor, lists));
            item.class = verdict.map(|verdict| verdict.class);
            self.enqueue(now, verdict.map_or(SINGLE, |verdict| verdict.leaf), item, outputs);
        }
    }

    /// Drops everything that waits.
    fn purge(&mut self, now: Time, outputs: &mut Outputs<P>) {
        for item in self.scheduler.drain() {
            if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                policy.unqueued(class, item.bytes());
            }
            self.drop(now, item, DropReason::Disabled, outputs);
        }
        while let Some(mut item) = self.ring.pop() {
            // Its class counted it as sent when it left the queue.
            item.class = None;
            self.drop(now, item, DropReason::Disabled, outputs);
        }
        self.upcoming = None;
    }

    /// The router sends a frame.
    pub fn transmit(
        &mut self,
        arrival: Time,
        mut descriptor: Descriptor,
        payload: P,
        lists: &mut [AccessList],
        outputs: &mut Outputs<P>,
    ) {
        self.traffic.totals.offered.add(descriptor.counted_len);
        let arrival = arrival.max(self.last);
        self.last = arrival;
        if arrival < self.settled {
            self.traffic.late(self.settled.since(arrival));
        }
        let now = arrival.max(self.settled);
        self.run(now);
        if !self.enabled {
            let item = Item { descriptor, payload, class: None, arrival, delayed: 0 };
            return self.drop(arrival, item, DropReason::Disabled, outputs);
        }
        let verdict = self.policy.as_mut().map(|policy| policy.apply(arrival, &mut descriptor, lists));
        let item = Item { descriptor, payload, class: verdict.map(|verdict| verdict.class), arrival, delayed: 0 };
        match verdict {
            Some(verdict) if !verdict.pass => {
                // The policy has counted it already.
                self.drop(arrival, Item { class: None, ..item }, DropReason::Police, outputs);
            }
            _ => {
                let leaf = verdict.map_or(SINGLE, |verdict| verdict.leaf);
                if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                    let straight = self.ring.has_room() && self.scheduler.passes(now, leaf, item.bytes());
                    if !straight && !policy.congested(arrival, class, &item.descriptor) {
                        self.queue_drops += 1;
                        return self.drop(now, item, DropReason::Priority, outputs);
                    }
                }
                self.enqueue(now, leaf, item, outputs);
                if self.ring.has_room() {
                    self.fill(now);
                    self.run(now);
                }
            }
        }
    }

    fn enqueue(&mut self, now: Time, leaf: usize, item: Item<P>, outputs: &mut Outputs<P>) {
        let (class, bytes) = (item.class, item.bytes());
        let enqueued = self.scheduler.enqueue(now, leaf, item);
        if let (Some(policy), Some(class)) = (&mut self.policy, class) {
            if !matches!(enqueued, Enqueued::Refused(..)) {
                policy.queued(class, bytes);
            }
        }
        match enqueued {
            Enqueued::Queued => {}
            Enqueued::Refused(item, reason) => {
                self.queue_drops += 1;
                self.drop(now, item, reason, outputs);
            }
            Enqueued::Displaced(item, reason) => {
                if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                    policy.unqueued(class, item.bytes());
                }
                self.queue_drops += 1;
                self.drop(now, item, reason, outputs);
            }
        }
    }

    fn drop(&mut self, now: Time, item: Item<P>, reason: DropReason, outputs: &mut Outputs<P>) {
        let bytes = item.bytes();
        self.traffic.dropped(reason, bytes);
        if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
            policy.dropped(now, class, bytes, reason);
        }
        outputs.drop_wire(now, self.port, reason, item.payload);
    }

    /// Fills the ring from the queues.
    fn fill(&mut self, now: Time) {
        while self.ring.has_room() {
            let Some(item) = self.scheduler.dequeue(now) else { return };
            if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                policy.unqueued(class, item.bytes());
                policy.sent(class, item.bytes());
            }
            self.ring.push(now, item);
            if self.upcoming.is_none() {
                self.look_ahead();
            }
        }
    }

    fn head_passage(&self) -> Option<Passage> {
        let (entered, item) = self.ring.head()?;
        Some(self.link.pass(entered, item.descriptor.line_len))
    }

    /// Finds out when the frame at the head of the ring will pass. To be called when that frame, or the link's rate, is another one.
    fn look_ahead(&mut self) {
        self.upcoming = self.head_passage();
    }

    /// When a shaper next lets a packet go into the ring, and which.
    fn next_release(&self) -> Option<(Time, &Descriptor)> {
        if !self.ring.has_room() || self.scheduler.len() == 0 {
            return None;
        }
        self.scheduler.next_release()
    }

    /// What is due is the frame at the head of the ring, or else the packet that a shaper lets go next: when it starts (or is let go), and when
    /// it can have reached the other end at the earliest.
    fn next_due(&self) -> Option<(Time, Time)> {
        let (time, end) = match self.upcoming {
            Some(upcoming) => (upcoming.start, upcoming.end),
            None => {
                let (time, descriptor) = self.next_release()?;
                (time, self.link.pass(time, descriptor.line_len).end)
            }
        };
        Some((time, end + self.impairment.least()))
    }

    /// Settles everything up to `until`.
    fn run(&mut self, until: Time) {
        loop {
            let start = self.upcoming.map(|upcoming| upcoming.start).filter(|time| *time <= until);
            let release = self.next_release().map(|(time, _)| time).filter(|time| *time <= until);
            match (start, release) {
                (None, None) => break,
                (Some(start), release) if release.is_none_or(|release| start <= release) => self.start_frame(),
                (_, Some(release)) => self.fill(release),
                (Some(_), None) => unreachable!("a start without a release is taken above"),
            }
        }
        self.settled = self.settled.max(until);
    }

    /// The frame at the head of the ring starts.
    fn start_frame(&mut self) {
        let Some((passage, item)) = self.upcoming.take().zip(self.ring.pop()) else { return };
        let Passage { start: now, end, .. } = passage;
        let bytes = item.bytes();
        self.link.enter(passage);
        self.look_ahead();
        self.traffic.count(now, bytes);
        self.delay.record(now.since(item.arrival));
        let Fate { arrives, lost } = self.impairment.pass(end);
        if lost {
            self.traffic.lost(bytes);
        } else {
            self.traffic.totals.sent.add(bytes);
        }
        self.wire.push(InFlight { arrives, lost, descriptor: item.descriptor, payload: item.payload });
        self.fill(now);
    }

    /// Passes on what has reached the other end by `now`.
    pub fn advance(&mut self, now: Time, outputs: &mut Outputs<P>) {
        while let Some((time, arrives)) = self.next_due() {
            if arrives > now {
                break;
            }
            self.run(time);
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
        earlier(self.wire.next(), self.next_due().map(|(_, arrives)| arrives))
    }

    pub fn counters(&mut self, now: Time, plan: &PortPlan) -> EgressCounters {
        let (active, max_active) = self.scheduler.conversations();
        let conversations = plan.conversations;
        EgressCounters {
            output: self.traffic.counters(now),
            queue: InterfaceQueueCounters {
                strategy: plan.strategy,
                depth: self.scheduler.len(),
                limit: plan.hold_queue,
                drops: self.queue_drops,
                conversations: conversations.map(|_| active),
                max_conversations: conversations.map(|plan| plan.most),
                threshold: conversations.map(|plan| plan.threshold),
                max_active_conversations: conversations.map(|_| max_active),
                reserved_conversations: conversations.map(|plan| plan.reserved),
                available_bandwidth_kbps: conversations.map(|plan| plan.available_kbps),
            },
            tx_ring: RingCounters { limit: plan.ring_limit, depth: self.ring.len() as u32 },
            queueing_delay: self.delay.counters(),
            policy: self.policy.as_mut().map(|policy| policy.counters(now, Some(&self.scheduler))),
            link: PropagationCounters { lost: self.traffic.lost, in_flight: self.wire.len() as u64 },
        }
    }

    pub fn clear(&mut self, now: Time) {
        self.traffic.clear(now);
        self.delay.clear();
        self.queue_drops = 0;
        self.scheduler.clear_counters();
        if let Some(policy) = &mut self.policy {
            policy.clear(now);
        }
    }

    fn queued(&self) -> Count {
        let mut queued = Count::default();
        for queue in self.scheduler.queues() {
            queued = queued.plus(queue.depth());
        }
        self.ring.iter().for_each(|item| queued.add(item.bytes()));
        queued
    }

    pub fn totals(&self) -> PortTotals {
        PortTotals { queued: self.queued(), ..self.traffic.totals }
    }

    pub fn audit(&self) -> Result<(), String> {
        if self.upcoming != self.head_passage() {
            return Err(format!("{:?} is to come, {:?} is expected", self.head_passage(), self.upcoming));
        }
        self.scheduler.audit()?;
        let classes = self.scheduler.queues().flat_map(Discipline::items);
        let classes = classes.filter_map(|item| Some((item.class?, item.bytes())));
        self.policy.as_ref().map_or(Ok(()), |policy| policy.audit(classes))
    }
}
