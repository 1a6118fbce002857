//! A router port's egress: access lists, `rate-limit`, output policy, queues, transmit ring, link.
//!
//! Three kinds of events happen here: a packet arrives; a frame starts on the wire, which frees a place in the ring; a
//! shaper releases a packet. They are settled in order of time, and no earlier than needed: see [`crate::Engine`] on
//! time.

use std::cmp::Reverse;

use crate::classify::access_list::AccessList;
use crate::config::defaults;
use crate::counters::aqm::TreeNodeCounters;
use crate::counters::buckets::ClassBuckets;
use crate::counters::conversation::ConversationCounters;
use crate::counters::count::Count;
use crate::counters::interface_queueing::{InterfaceShaperCounters, NumberedQueueCounters};
use crate::counters::policy::PolicyCounters;
use crate::counters::port::{InterfaceQueueCounters, RingCounters, Strategy};
use crate::counters::queue::RandomDetectCounters;
use crate::counters::rate_limit::RateLimitCounters;
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::{Descriptor, HeaderRest};
use crate::frame::drop_reason::DropReason;
use crate::link::outbound::Outbound;
use crate::link::outputs::Outputs;
use crate::link::serialiser::Passage;
use crate::plan::port::{PortPlan, RouterPlan};
use crate::plan::tree::{Rank, SINGLE};
use crate::policy::{Policy, Verdict};
use crate::queueing::discipline::{Discipline, Item};
use crate::queueing::queue_counters;
use crate::queueing::random_detect::RandomDetect;
use crate::queueing::scheduler::{Room, Scheduler};
use crate::router::admission::Admission;
use crate::router::tx_ring::TxRing;
use crate::router::vlans::Vlans;
use crate::time::Time;

/// Maximum number of reported conversations: the default of an interface with a bandwidth above 512 kb/s.
const CONVERSATIONS_REPORTED: usize = 256;

/// Place of a packet that has passed the stages ahead of the queues.
#[derive(Clone, Copy, Debug)]
struct Passed {
    class: Option<usize>,
    /// The node of its queue.
    leaf: usize,
    /// Whether it moves on from the queue to the transmit ring at once.
    straight: bool,
}

/// Reason and time at which a packet does not reach the queues, and the class that counts it.
#[derive(Clone, Copy, Debug)]
struct Stopped {
    at: Time,
    class: Option<usize>,
    reason: DropReason,
}

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
    /// Passage of the frame at the head of the ring over the link.
    upcoming: Option<Passage>,
    queue_drops: u64,
    /// The class of the frame that started last, and the time at which its last bit is on the wire.
    on_wire: Option<(usize, Time)>,
    /// Policy of a port with subinterfaces.
    pub vlans: Option<Box<Vlans>>,
}

/// Returns the node of the queue that a packet joins.
#[inline]
fn leaf(plan: &RouterPlan, verdict: Option<Verdict>, descriptor: &Descriptor, lists: &mut [AccessList]) -> usize {
    match &plan.queueing {
        None => verdict.map_or(SINGLE, |verdict| verdict.leaf),
        // An additional policy has no queues.
        Some(queueing) => queueing.steering.leaf(descriptor, lists),
    }
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

    /// Changes the plan of the port. Everything up to `now` must be settled.
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

    /// Drops waiting packets, because the port is replaced.
    pub fn give_up(&mut self, now: Time, outputs: &mut Outputs<P>) {
        let now = now.max(self.outbound.settled);
        self.run(now);
        self.drop_refused(outputs);
        self.purge(now, outputs);
    }

    /// Rebuilds the index of the policy's classes.
    pub fn index(&mut self, lists: &[AccessList]) {
        if let Some(policy) = &mut self.policy {
            policy.index(lists);
        }
    }

    /// Replaces the queues; waiting packets move to the new ones.
    fn replace(&mut self, now: Time, port: &PortPlan, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        self.policy = Egress::<P>::policy(port, &self.plan, now);
        self.ring.forget_classes();
        self.on_wire = None;
        let mut scheduler = Scheduler::new(&self.plan.nodes, self.plan.hold, self.seed, port.rate, now);
        std::mem::swap(&mut self.scheduler, &mut scheduler);
        for mut item in scheduler.drain() {
            let verdict = self.policy.as_mut().map(|policy| policy.readmit(now, &mut item.descriptor, lists));
            item.class = verdict.map(|verdict| verdict.class);
            let leaf = leaf(&self.plan, verdict, &item.descriptor, lists);
            match self.scheduler.admit(now, leaf, &mut item.descriptor, false) {
                Ok(room) => {
                    item.delayed = room.delayed;
                    self.join(now, room, item, outputs);
                }
                Err(reason) => {
                    self.queue_drops += 1;
                    self.drop(now, item.class, item.bytes(), item.payload, reason, outputs);
                }
            }
        }
    }

    /// Drops all waiting packets.
    fn purge(&mut self, now: Time, outputs: &mut Outputs<P>) {
        for item in self.scheduler.drain() {
            if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                policy.count_unqueued(class, item.bytes());
            }
            self.drop_item(now, item, DropReason::Disabled, outputs);
        }
        while let Some(mut item) = self.ring.pop() {
            // The class counted the packet as sent when it left the queue.
            item.class = None;
            self.drop_item(now, item, DropReason::Disabled, outputs);
        }
        self.upcoming = None;
    }

    /// Sends a frame of the router. It is described in place, so that the description is not copied before it is
    /// queued.
    #[inline]
    pub fn transmit(
        &mut self,
        arrival: Time,
        descriptor: &mut Descriptor,
        payload: P,
        lists: &mut [AccessList],
        outputs: &mut Outputs<P>,
    ) {
        let (arrival, now) = self.outbound.arrive(arrival, descriptor.counted_len);
        self.run(now);
        self.drop_refused(outputs);
        let Passed { class, leaf, straight } = match self.pass(arrival, now, descriptor, lists) {
            Ok(passed) => passed,
            Err(Stopped { at, class, reason }) => {
                return self.drop(at, class, descriptor.counted_len, payload, reason, outputs);
            }
        };
        match self.scheduler.admit(now, leaf, descriptor, straight) {
            // Built at its destination, so that it is not copied.
            Ok(room) => {
                let delayed = room.delayed;
                let item = Item { descriptor: *descriptor, payload, class, arrival, delayed };
                self.join(now, room, item, outputs);
            }
            Err(reason) => {
                self.queue_drops += 1;
                // Everything before now is settled, and no packet has joined.
                self.drop(now, class, descriptor.counted_len, payload, reason, outputs);
                return self.drop_refused(outputs);
            }
        }
        if self.ring.has_room() {
            self.fill(now);
            self.run(now);
        }
        self.drop_refused(outputs);
    }

    /// Applies the stages ahead of the queues to a packet that joins them at `now`.
    #[inline]
    fn pass(
        &mut self,
        arrival: Time,
        now: Time,
        descriptor: &mut Descriptor,
        lists: &mut [AccessList],
    ) -> Result<Passed, Stopped> {
        let stopped = |reason| Err(Stopped { at: arrival, class: None, reason });
        if !self.outbound.enabled {
            return stopped(DropReason::Disabled);
        }
        if let Some(admission) = &mut self.admission {
            if let Some(reason) = admission.refuses(arrival, descriptor, lists) {
                return stopped(reason);
            }
        }
        let Some(policy) = &mut self.policy else {
            return Ok(Passed { class: None, leaf: leaf(&self.plan, None, descriptor, lists), straight: false });
        };
        let verdict = policy.apply(arrival, descriptor, lists);
        if !verdict.pass {
            // The policy has already counted it.
            return stopped(DropReason::Police);
        }
        let (class, bytes) = (verdict.class, descriptor.counted_len);
        let leaf = leaf(&self.plan, Some(verdict), descriptor, lists);
        let straight = self.ring.has_room() && self.scheduler.passes(now, leaf, bytes);
        if straight {
            if defaults::CONDITIONAL_POLICER_METERS_ALWAYS {
                policy.within_rate(arrival, class, bytes);
            }
        } else if !policy.admit_congested(arrival, class, bytes) {
            self.queue_drops += 1;
            return Err(Stopped { at: now, class: Some(class), reason: DropReason::Priority });
        }
        Ok(Passed { class: Some(class), leaf, straight })
    }

    /// Drops the packets that shapers released and the next queues refused, and those dropped by active queue
    /// management.
    #[inline]
    fn drop_refused(&mut self, outputs: &mut Outputs<P>) {
        if self.scheduler.has_refused() {
            self.drop_all_refused(outputs);
        }
    }

    #[cold]
    fn drop_all_refused(&mut self, outputs: &mut Outputs<P>) {
        while let Some((now, reason, item)) = self.scheduler.take_refused() {
            if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
                policy.count_unqueued(class, item.bytes());
            }
            self.queue_drops += 1;
            self.drop_item(now, item, reason, outputs);
        }
    }

    /// Adds a packet to the queue that has room for it.
    #[inline]
    fn join(&mut self, now: Time, room: Room<P>, item: Item<P>, outputs: &mut Outputs<P>) {
        if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
            policy.count_queued(class, item.bytes());
        }
        if let Some(other) = self.scheduler.join(now, room, item) {
            self.drop_displaced(now, *other, outputs);
        }
    }

    #[cold]
    fn drop_displaced(&mut self, now: Time, item: Item<P>, outputs: &mut Outputs<P>) {
        if let (Some(policy), Some(class)) = (&mut self.policy, item.class) {
            policy.count_unqueued(class, item.bytes());
        }
        self.queue_drops += 1;
        self.drop_item(now, item, DropReason::Tail, outputs);
    }

    fn drop_item(&mut self, now: Time, item: Item<P>, reason: DropReason, outputs: &mut Outputs<P>) {
        self.drop(now, item.class, item.bytes(), item.payload, reason, outputs);
    }

    fn drop(
        &mut self,
        now: Time,
        class: Option<usize>,
        bytes: u32,
        payload: P,
        reason: DropReason,
        outputs: &mut Outputs<P>,
    ) {
        if let (Some(policy), Some(class)) = (&mut self.policy, class) {
            policy.count_dropped(now, class, bytes, reason);
        }
        self.outbound.drop(now, bytes, payload, reason, outputs);
    }

    /// Fills the ring from the queues.
    fn fill(&mut self, now: Time) {
        while self.ring.has_room() {
            let Egress { scheduler, policy, ring, .. } = self;
            let left = scheduler.dequeue(now, |item| {
                if let (Some(policy), Some(class)) = (policy, item.class) {
                    policy.count_departed(class, item.bytes());
                }
                ring.push(now, item);
            });
            if !left {
                return;
            }
            if self.upcoming.is_none() {
                self.look_ahead();
            }
        }
    }

    #[inline(always)]
    fn head_passage(&self) -> Option<Passage> {
        let (entered, item) = self.ring.head()?;
        Some(self.outbound.link.pass(entered, item.descriptor.line_len))
    }

    /// Calculates the passage of the frame at the head of the ring. Must be called after that frame or the link's rate
    /// has changed.
    #[inline]
    fn look_ahead(&mut self) {
        self.upcoming = self.head_passage();
    }

    /// Returns whether a shaper could release a packet into the ring, or into the interface's queues.
    fn releases(&self) -> bool {
        (self.ring.has_room() || self.scheduler.releases_apart()) && self.scheduler.len() > 0
    }

    /// Returns the time at which a shaper next releases a packet, if no frame is in the ring, and the earliest time at
    /// which it can reach the other end.
    #[inline]
    fn next_release(&self) -> Option<(Time, Time)> {
        if !self.scheduler.shapes() {
            return None;
        }
        self.next_shaped_release()
    }

    fn next_shaped_release(&self) -> Option<(Time, Time)> {
        let (time, descriptor) = self.scheduler.next_release()?;
        Some((time, self.outbound.reaches(self.outbound.link.pass(time, descriptor.line_len).end)))
    }

    /// Settles everything up to `until`.
    #[inline]
    fn run(&mut self, until: Time) {
        if self.scheduler.shapes() {
            self.run_shaped(until);
        } else {
            while self.upcoming.as_ref().is_some_and(|passage| passage.start <= until) {
                self.start_frame();
            }
        }
        self.outbound.settled = self.outbound.settled.max(until);
    }

    /// Settles everything up to `until` with shapers. At equal times the start of a frame comes first.
    fn run_shaped(&mut self, until: Time) {
        loop {
            let release = if self.releases() { self.scheduler.next_release_time() } else { None };
            match (self.upcoming, release) {
                (Some(passage), release) if release.is_none_or(|release| passage.start <= release) => {
                    if passage.start > until {
                        return;
                    }
                    self.start_frame();
                }
                (_, Some(release)) if release <= until => {
                    if self.ring.has_room() {
                        self.fill(release);
                    } else {
                        self.scheduler.expire(release);
                    }
                }
                _ => return,
            }
        }
    }

    /// Starts the frame at the head of the ring, with its calculated passage.
    fn start_frame(&mut self) {
        let Some(passage) = self.upcoming else { return };
        let Some(item) = self.ring.pop() else { return self.look_ahead() };
        let Passage { start: now, end, .. } = passage;
        self.outbound.link.enter(passage, item.descriptor.line_len);
        self.on_wire = item.class.map(|class| (class, end));
        self.look_ahead();
        if let Some(vlans) = &mut self.vlans {
            vlans.accepts(&item.descriptor);
        }
        self.outbound.start((now, end), item.arrival, item.descriptor, item.payload);
        self.fill(now);
    }

    /// Settles everything up to `now`, as the arrival of a packet does.
    pub fn settle(&mut self, now: Time, outputs: &mut Outputs<P>) {
        self.run(now);
        self.drop_refused(outputs);
    }

    /// Passes on frames that have reached the other end by `now`.
    #[inline]
    pub fn advance(&mut self, now: Time, outputs: &mut Outputs<P>) {
        loop {
            let (time, reaches) = match self.upcoming {
                Some(passage) => (passage.start, self.outbound.reaches(passage.end)),
                None => match self.next_release() {
                    Some(release) => release,
                    None => break,
                },
            };
            if reaches > now {
                break;
            }
            self.run(time);
        }
        self.drop_refused(outputs);
        self.outbound.deliver(now, outputs);
    }

    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let due = match self.upcoming {
            Some(passage) => Some(self.outbound.reaches(passage.end)),
            None => self.next_release().map(|(_, reaches)| reaches),
        };
        self.outbound.deadline(due)
    }

    pub fn queue_counters(&self) -> InterfaceQueueCounters {
        let (active, max_active) = self.scheduler.conversations();
        let conversations = self.plan.conversations;
        // A packet waiting for a shaper has not reached the interface's queue yet.
        let shapers = self.plan.queueing.as_ref().map_or(&[][..], |queueing| &queueing.shapers);
        let nodes = shapers.iter().map(|node| self.scheduler.node(*node));
        // The scheduler omits the packets that wait in front of weighted fair queueing.
        let adjacent = nodes.map(|node| node.member()).filter(|member| !matches!(member.plan.rank, Rank::Released(_)));
        let held: u64 = adjacent.map(|member| member.depth.packets).sum();
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

    /// Returns the conversations with packets, in order of decreasing packets; `rest` supplies the header fields that
    /// the engine lacks.
    pub fn conversations(&self, rest: &dyn Fn(&P) -> HeaderRest) -> Vec<ConversationCounters> {
        let numbers = |class| self.policy.as_ref().and_then(|policy| policy.conversation(class));
        let reported = self.scheduler.waiting_conversations().map(|waiting| {
            let number = waiting.head.class.and_then(numbers).unwrap_or(waiting.flow as u32);
            queue_counters::conversation(number, &waiting, rest(&waiting.head.payload))
        });
        let mut reported: Vec<_> = reported.collect();
        reported.sort_by_key(|each| (Reverse(each.depth_packets), each.number));
        reported.truncate(CONVERSATIONS_REPORTED);
        reported
    }

    /// Returns the counters of early detection in the interface's own queue.
    pub fn random_detect_counters(&self) -> Option<RandomDetectCounters> {
        let own = self.plan.nodes.len() > SINGLE && self.plan.strategy == Strategy::Fifo;
        let node = own.then(|| self.scheduler.node(SINGLE))?;
        node.random_detect().map(RandomDetect::counters)
    }

    /// Returns the numbered queues.
    pub fn numbered_counters(&self) -> Vec<NumberedQueueCounters> {
        let queues = self.plan.queueing.as_ref().map_or(&[][..], |queueing| &queueing.queues);
        queues.iter().map(|(number, node)| queue_counters::numbered(*number, &self.scheduler.node(*node))).collect()
    }

    /// Returns the interface's own shapers.
    pub fn shaper_counters(&self) -> Vec<InterfaceShaperCounters> {
        let shapers = self.plan.queueing.as_ref().map_or(&[][..], |queueing| &queueing.shapers);
        shapers.iter().filter_map(|node| queue_counters::interface_shaper(&self.scheduler.node(*node))).collect()
    }

    /// Returns the classes and queues of a tree.
    pub fn tree_counters(&self) -> Vec<TreeNodeCounters> {
        let tree = self.plan.queueing.as_ref().map_or(&[][..], |queueing| &queueing.tree);
        let nodes = tree.iter().enumerate().map(|(index, plan)| (plan, self.scheduler.node(SINGLE + index)));
        nodes.map(|(plan, node)| queue_counters::tree_node(plan, &node)).collect()
    }

    pub fn ring_counters(&self) -> RingCounters {
        RingCounters { limit: self.plan.ring.limit, depth: self.ring.used() }
    }

    pub fn policy_counters(&mut self, now: Time) -> Option<PolicyCounters> {
        let on_wire = self.on_wire.filter(|(_, end)| defaults::HQF_DEPTH_COUNTS_WIRE && *end > now);
        let classes = self.ring.iter().filter_map(|item| item.class).chain(on_wire.map(|(class, _)| class));
        let later = !self.scheduler.is_classic();
        let shown = classes.filter(|_| later);
        self.policy.as_mut().map(|policy| policy.counters(now, Some(&self.scheduler), shown))
    }

    pub fn buckets(&self, now: Time) -> Vec<ClassBuckets> {
        self.policy.as_ref().map_or_else(Vec::new, |policy| policy.buckets(now))
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
        let mut queued = self.scheduler.waiting();
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
