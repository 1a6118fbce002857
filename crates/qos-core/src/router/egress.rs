//! A router port's egress: access lists, `rate-limit`, output policy, queues, transmit ring, link.
//!
//! Three kinds of events happen here: a packet arrives; a frame starts on the wire, which frees a place in the ring; a
//! shaper lets a packet go. They are settled in order of time, and no earlier than needed: see [`crate::Engine`] on
//! time.

use crate::classify::access_list::AccessList;
use crate::config::defaults;
use crate::counters::count::Count;
use crate::counters::interface_queueing::{InterfaceShaperCounters, NumberedQueueCounters};
use crate::counters::policy::PolicyCounters;
use crate::counters::port::{InterfaceQueueCounters, RingCounters};
use crate::counters::rate_limit::RateLimitCounters;
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::link::outbound::Outbound;
use crate::link::outputs::Outputs;
use crate::link::serialiser::Passage;
use crate::plan::port::{PortPlan, RouterPlan};
use crate::plan::tree::{Rank, SINGLE};
use crate::policy::{Policy, Verdict};
use crate::queueing::discipline::{Discipline, Enqueued, Item};
use crate::queueing::scheduler::Scheduler;
use crate::queueing::statistics;
use crate::router::admission::Admission;
use crate::router::tx_ring::TxRing;
use crate::router::vlans::Vlans;
use crate::time::Time;

/// A router port's egress.
#[derive(Debug)]
pub(crate) struct Egress<P> {
    pub outbound: Outbound<P>,
    plan: RouterPlan,
    police_in_drop_rate: bool,
    seed: u64,
    admission: Option<Box<Admission>>,
    policy: Option<Policy>,
    scheduler: Scheduler<P>,
    ring: TxRing<P>,
    /// How the frame at the head of the ring will pass the link.
    upcoming: Option<Passage>,
    queue_drops: u64,
    /// The class of the frame that started last, and when its last bit is on the wire.
    on_wire: Option<(usize, Time)>,
    /// Of a port with subinterfaces.
    pub vlans: Option<Box<Vlans>>,
}

impl<P> Egress<P> {
    pub fn new(mut outbound: Outbound<P>, port: &PortPlan, plan: &RouterPlan, seed: u64, now: Time) -> Egress<P> {
        outbound.configure(port);
        Egress {
            outbound,
            police_in_drop_rate: port.police_in_drop_rate,
            seed,
            admission: Admission::of(&plan.admission.output, now),
            policy: Egress::<P>::policy(port, plan, now),
            scheduler: Scheduler::new(&plan.nodes, plan.hold, seed, port.rate, now),
            ring: TxRing::new(plan.ring),
            upcoming: None,
            queue_drops: 0,
            on_wire: None,
            vlans: Vlans::of(&port.subinterfaces, None),
            plan: plan.clone(),
        }
    }

    fn policy(port: &PortPlan, plan: &RouterPlan, now: Time) -> Option<Policy> {
        Some(Policy::new(plan.output.clone()?, now, port.load_interval_s, port.police_in_drop_rate))
    }

    /// Changes what the port runs. Everything up to `now` must be settled.
    pub fn configure(
        &mut self,
        now: Time,
        port: &PortPlan,
        plan: &RouterPlan,
        lists: &mut [AccessList],
        outputs: &mut Outputs<P>,
    ) {
        let now = now.max(self.outbound.settled);
        self.run(now);
        self.drop_refused(outputs);
        self.outbound.configure(port);
        self.look_ahead();
        self.ring.set_limit(plan.ring);
        self.scheduler.set_hold(plan.hold);
        self.scheduler.set_rate(port.rate);
        Admission::replace(&mut self.admission, &plan.admission.output, now);
        let old = std::mem::replace(&mut self.plan, plan.clone());
        let police_in_drop_rate = std::mem::replace(&mut self.police_in_drop_rate, port.police_in_drop_rate);
        let queues = old.nodes != plan.nodes || old.queueing != plan.queueing;
        if old.output != plan.output || queues || police_in_drop_rate != port.police_in_drop_rate {
            self.replace(now, port, lists, outputs);
        } else if let Some(policy) = &mut self.policy {
            policy.set_load_interval(port.load_interval_s);
        }
        self.vlans = Vlans::of(&port.subinterfaces, self.vlans.as_deref());
        if !port.enabled {
            self.purge(now, outputs);
        }
        self.fill(now);
        self.run(now);
        self.drop_refused(outputs);
    }

    /// Drops what waits: the port becomes another one.
    pub fn give_up(&mut self, now: Time, outputs: &mut Outputs<P>) {
        let now = now.max(self.outbound.settled);
        self.run(now);
        self.drop_refused(outputs);
        self.purge(now, outputs);
    }

    /// Makes the index of the policy's classes anew.
    pub fn index(&mut self, lists: &[AccessList]) {
        if let Some(policy) = &mut self.policy {
            policy.index(lists);
        }
    }

    /// Puts other queues in place; what waits moves to them.
    fn replace(&mut self, now: Time, port: &PortPlan, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        self.policy = Egress::<P>::policy(port, &self.plan, now);
        self.ring.forget_classes();
        self.on_wire = None;
        let mut scheduler = Scheduler::new(&self.plan.nodes, self.plan.hold, self.seed, port.rate, now);
        std::mem::swap(&mut self.scheduler, &mut scheduler);
        for mut item in scheduler.drain() {
            let verdict = self.policy.as_mut().map(|policy| policy.readmit(now, &mut item.descriptor, lists));
            item.class = verdict.map(|verdict| verdict.class);
            let leaf = self.leaf(verdict, &item.descriptor, lists);
            self.enqueue(now, leaf, item, false, outputs);
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
        let (arrival, now) = self.outbound.arrive(arrival, descriptor.counted_len);
        self.run(now);
        self.drop_refused(outputs);
        if !self.outbound.enabled {
            let item = Item { descriptor, payload, class: None, arrival, delayed: 0 };
            return self.drop(arrival, item, DropReason::Disabled, outputs);
        }
        if let Some(admission) = &mut self.admission {
            if let Some(reason) = admission.refuses(arrival, &mut descriptor, lists) {
                let item = Item { descriptor, payload, class: None, arrival, delayed: 0 };
                return self.drop(arrival, item, reason, outputs);
            }
        }
        let verdict = self.policy.as_mut().map(|policy| policy.apply(arrival, &mut descriptor, lists));
        let class = verdict.map(|verdict| verdict.class);
        match verdict {
            Some(verdict) if !verdict.pass => {
                // The policy has counted it already.
                let item = Item { descriptor, payload, class: None, arrival, delayed: 0 };
                self.drop(arrival, item, DropReason::Police, outputs);
            }
            _ => {
                let leaf = self.leaf(verdict, &descriptor, lists);
                let mut straight = false;
                if let (Some(policy), Some(class)) = (&mut self.policy, class) {
                    let bytes = descriptor.counted_len;
                    straight = self.ring.has_room() && self.scheduler.passes(now, leaf, bytes);
                    if straight && defaults::CONDITIONAL_POLICER_METERS_ALWAYS {
                        policy.within_rate(arrival, class, bytes);
                    }
                    if !straight && !policy.congested(arrival, class, &descriptor) {
                        self.queue_drops += 1;
                        let item = Item { descriptor, payload, class: Some(class), arrival, delayed: 0 };
                        return self.drop(now, item, DropReason::Priority, outputs);
                    }
                }
                // Made where it is handed on, so that it is not copied.
                let item = Item { descriptor, payload, class, arrival, delayed: 0 };
                self.enqueue(now, leaf, item, straight, outputs);
                if self.ring.has_room() {
                    self.fill(now);
                    self.run(now);
                }
                self.drop_refused(outputs);
            }
        }
    }

    /// Drops what shapers had let go and the queues behind them did not take.
    #[inline]
    fn drop_refused(&mut self, outputs: &mut Outputs<P>) {
        if self.scheduler.has_refused() {
            self.drop_all_refused(outputs);
        }
    }

    #[cold]
    fn drop_all_refused(&mut self, outputs: &mut Outputs<P>) {
        while let Some((now, item)) = self.scheduler.take_refused() {
            if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                policy.unqueued(class, item.bytes());
            }
            self.queue_drops += 1;
            self.drop(now, item, DropReason::Tail, outputs);
        }
    }

    /// The queue that a packet joins.
    fn leaf(&self, verdict: Option<Verdict>, descriptor: &Descriptor, lists: &mut [AccessList]) -> usize {
        match &self.plan.queueing {
            None => verdict.map_or(SINGLE, |verdict| verdict.leaf),
            // A policy beside it has no queues.
            Some(queueing) => queueing.steering.leaf(descriptor, lists),
        }
    }

    fn enqueue(&mut self, now: Time, leaf: usize, item: Item<P>, straight: bool, outputs: &mut Outputs<P>) {
        let (class, bytes) = (item.class, item.bytes());
        let enqueued = self.scheduler.enqueue(now, leaf, item, straight);
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
        if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
            policy.dropped(now, class, bytes, reason);
        }
        self.outbound.drop(now, bytes, item.payload, reason, outputs);
    }

    /// Fills the ring from the queues.
    fn fill(&mut self, now: Time) {
        while self.ring.has_room() {
            let Some(item) = self.scheduler.dequeue(now) else { return };
            if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                policy.left(class, item.bytes());
            }
            self.ring.push(now, item);
            if self.upcoming.is_none() {
                self.look_ahead();
            }
        }
    }

    fn head_passage(&self) -> Option<Passage> {
        let (entered, item) = self.ring.head()?;
        Some(self.outbound.link.pass(entered, item.descriptor.line_len))
    }

    /// Finds out when the frame at the head of the ring will pass. To be called when that frame, or the link's rate, is
    /// another one.
    fn look_ahead(&mut self) {
        self.upcoming = self.head_passage();
    }

    /// Whether a shaper could let a packet go into the ring, or into the interface's queues.
    fn releases(&self) -> bool {
        (self.ring.has_room() || self.scheduler.releases_apart()) && self.scheduler.len() > 0
    }

    /// What is due is the frame at the head of the ring, or else the packet that a shaper lets go next: when it starts
    /// (or is let go), and when it can have reached the other end at the earliest.
    fn next_due(&self) -> Option<(Time, Time)> {
        let (time, end) = match self.upcoming {
            Some(upcoming) => (upcoming.start, upcoming.end),
            None => {
                let (time, descriptor) = if self.releases() { self.scheduler.next_release()? } else { return None };
                (time, self.outbound.link.pass(time, descriptor.line_len).end)
            }
        };
        Some((time, self.outbound.reaches(end)))
    }

    /// Settles everything up to `until`.
    fn run(&mut self, until: Time) {
        loop {
            let start = self.upcoming.map(|upcoming| upcoming.start).filter(|time| *time <= until);
            let release = if self.releases() { self.scheduler.next_release_time() } else { None };
            let release = release.filter(|time| *time <= until);
            match (start, release) {
                (None, None) => break,
                (Some(start), release) if release.is_none_or(|release| start <= release) => self.start_frame(),
                (_, Some(release)) if self.ring.has_room() => self.fill(release),
                (_, Some(release)) => self.scheduler.expire(release),
                (Some(_), None) => unreachable!("a start without a release is taken above"),
            }
        }
        self.outbound.settled = self.outbound.settled.max(until);
    }

    /// The frame at the head of the ring starts.
    fn start_frame(&mut self) {
        let Some((passage, item)) = self.upcoming.take().zip(self.ring.pop()) else { return };
        let Passage { start: now, end, .. } = passage;
        self.outbound.link.enter(passage, item.descriptor.line_len);
        self.on_wire = item.class.map(|class| (class, end));
        self.look_ahead();
        if let Some(vlans) = &mut self.vlans {
            vlans.takes(&item.descriptor);
        }
        self.outbound.start((now, end), item.arrival, item.descriptor, item.payload);
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
        self.drop_refused(outputs);
        self.outbound.deliver(now, outputs);
    }

    pub fn deadline(&self) -> Option<Time> {
        self.outbound.deadline(self.next_due().map(|(_, arrives)| arrives))
    }

    pub fn queue_counters(&self) -> InterfaceQueueCounters {
        let (active, max_active) = self.scheduler.conversations();
        let conversations = self.plan.conversations;
        // What waits for a shaper has not come to the interface's queue yet.
        let shapers = self.plan.queueing.as_ref().map_or(&[][..], |queueing| &queueing.shapers);
        let nodes = shapers.iter().map(|node| &self.scheduler.nodes()[*node]);
        // The scheduler leaves out those that stand before weighted fair queueing.
        let beside = nodes.filter(|node| !matches!(node.plan.rank, Rank::Released(_)));
        let held: u64 = beside.map(|node| node.depth.packets).sum();
        InterfaceQueueCounters {
            strategy: self.plan.strategy,
            depth: self.scheduler.depth() - held,
            limit: self.plan.hold_queue,
            drops: self.queue_drops,
            conversations: conversations.map(|_| active),
            max_conversations: conversations.map(|plan| plan.most),
            threshold: conversations.map(|plan| plan.threshold),
            max_active_conversations: conversations.map(|_| max_active),
            reserved_conversations: conversations.map(|plan| plan.reserved),
            available_bandwidth_kbps: conversations.map(|plan| plan.available_kbps),
        }
    }

    /// The queues that have numbers.
    pub fn numbered_counters(&self) -> Vec<NumberedQueueCounters> {
        let queues = self.plan.queueing.as_ref().map_or(&[][..], |queueing| &queueing.queues);
        queues.iter().map(|(number, node)| statistics::numbered(*number, &self.scheduler.nodes()[*node])).collect()
    }

    /// The interface's own shapers.
    pub fn shaper_counters(&self) -> Vec<InterfaceShaperCounters> {
        let shapers = self.plan.queueing.as_ref().map_or(&[][..], |queueing| &queueing.shapers);
        shapers.iter().filter_map(|node| statistics::interface_shaper(&self.scheduler.nodes()[*node])).collect()
    }

    pub fn ring_counters(&self) -> RingCounters {
        RingCounters { limit: self.plan.ring.limit, depth: self.ring.used() }
    }

    pub fn policy_counters(&mut self, now: Time) -> Option<PolicyCounters> {
        let on_wire = self.on_wire.filter(|(_, end)| defaults::HQF_DEPTH_COUNTS_WIRE && *end > now);
        let classes = self.ring.iter().filter_map(|item| item.class).chain(on_wire.map(|(class, _)| class));
        self.policy.as_mut().map(|policy| policy.counters(now, Some(&self.scheduler), classes))
    }

    pub fn limit_counters(&self, now: Time) -> Vec<RateLimitCounters> {
        Admission::limit_counters(self.admission.as_deref(), now)
    }

    pub fn denied(&self) -> Count {
        Admission::denied(self.admission.as_deref())
    }

    pub fn clear(&mut self, now: Time) {
        self.outbound.clear(now);
        if let Some(admission) = &mut self.admission {
            admission.clear(now);
        }
        if let Some(vlans) = &mut self.vlans {
            vlans.clear();
        }
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
        self.outbound.totals(self.queued())
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
