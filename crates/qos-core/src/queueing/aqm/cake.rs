//! CAKE: tins by code point, flow queues with fairness among hosts, COBALT.
//!
//! Source: "Piece of CAKE" (see [`crate::queueing::aqm::cobalt`]), tc-cake(8), and Linux's `sch_cake`. The total rate
//! is that of the scheduler's shaper above this queue, which releases a packet as soon as the time of the previous one
//! has passed: CAKE's own shaper, which has no burst. Within that a tin has priority over those before it up to its
//! threshold rate; without a rate the tins share by deficit round robin.
//!
//! In a tin flows take turns by deficit round robin, those that have just become active first. A flow whose host has n
//! bulk flows gets 1/n of the quantum (triple isolation: n is the greater of its source's and its destination's).

use std::collections::VecDeque;

use crate::counters::aqm::{FlowsCounters, ManagedCounters, TinCounters};
use crate::counters::count::Count;
use crate::frame::descriptor::{Descriptor, Network};
use crate::frame::drop_reason::DropReason;
use crate::plan::aqm::{CakePlan, TinPlan};
use crate::queueing::aqm::cake_flows::{place, Hashes, Ways, QUEUES};
use crate::queueing::aqm::cobalt::{Chance, Cobalt};
use crate::queueing::aqm::manage::{memory_of, Decisions, Lost, Manage};
use crate::queueing::discipline::{Item, Place};
use crate::time::{Rate, Time};

/// The code point by which ARP is put into a tin: CS7.
const CONTROL: usize = 56;

/// List and role of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    None,
    /// The flow has just become active.
    Sparse,
    /// The flow has used its first quantum and is empty: it takes turns with the bulk flows, but counts as sparse.
    SparseWait,
    Bulk,
    /// Empty, while the state of its queue management decays.
    Decaying,
}

#[derive(Debug)]
struct Flow<P> {
    items: VecDeque<Item<P>>,
    bytes: u64,
    deficit: i64,
    law: Cobalt,
    set: Set,
    source: usize,
    destination: usize,
}

/// Bulk flows of a host in each direction.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    from: u32,
    to: u32,
}

#[derive(Debug)]
struct Tin<P> {
    plan: TinPlan,
    flows: Vec<Flow<P>>,
    tags: Vec<u64>,
    hosts: Vec<Host>,
    source_tags: Vec<u64>,
    destination_tags: Vec<u64>,
    sparse: VecDeque<u32>,
    bulk: VecDeque<u32>,
    decaying: VecDeque<u32>,
    sparse_flows: u32,
    bulk_flows: u32,
    depth: Count,
    deficit: i64,
    /// Time at which its rate falls below the threshold.
    time_next: Time,
    ways: Ways,
    sent: Count,
    decisions: Decisions,
    average_delay_ns: u64,
    peak_delay_ns: u64,
}

/// CAKE's queues.
#[derive(Debug)]
pub(crate) struct Cake<P> {
    plan: CakePlan,
    seed: u64,
    tins: Vec<Tin<P>>,
    /// The tin that has its turn, without a rate.
    current: usize,
    chance: Chance,
    depth: Count,
    /// Memory used by the packets, in bytes.
    memory: u64,
}

impl<P> Tin<P> {
    fn new(plan: TinPlan) -> Tin<P> {
        let flow = || Flow {
            items: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            law: Cobalt::default(),
            set: Set::None,
            source: 0,
            destination: 0,
        };
        Tin {
            plan,
            flows: (0..QUEUES).map(|_| flow()).collect(),
            tags: vec![0; QUEUES],
            hosts: vec![Host::default(); QUEUES],
            source_tags: vec![0; QUEUES],
            destination_tags: vec![0; QUEUES],
            sparse: VecDeque::new(),
            bulk: VecDeque::new(),
            decaying: VecDeque::new(),
            sparse_flows: 0,
            bulk_flows: 0,
            depth: Count::default(),
            deficit: 0,
            time_next: Time(0),
            ways: Ways::default(),
            sent: Count::default(),
            decisions: Decisions::default(),
            average_delay_ns: 0,
            peak_delay_ns: 0,
        }
    }

    /// Returns the queue of a packet, which belongs to its flow from now on.
    fn flow_of(&mut self, hashes: Hashes) -> usize {
        let Tin { flows, tags, .. } = self;
        let (at, found) = place(hashes.flow, tags, |at| flows[at].set != Set::None);
        self.ways.count(found);
        let same = self.tags[at] == hashes.flow && self.flows[at].set != Set::None;
        if !same {
            self.tags[at] = hashes.flow;
            // If two flows share a queue, both count for the host of the later one.
            self.count_bulk(at, false);
            let hosts = &self.hosts;
            let source = place(hashes.source, &self.source_tags, |at| hosts[at].from > 0).0;
            let destination = place(hashes.destination, &self.destination_tags, |at| hosts[at].to > 0).0;
            (self.source_tags[source], self.destination_tags[destination]) = (hashes.source, hashes.destination);
            (self.flows[at].source, self.flows[at].destination) = (source, destination);
            self.count_bulk(at, true);
        }
        at
    }

    /// Adds a queue to the bulk flows of its hosts, or removes it, if it is one.
    fn count_bulk(&mut self, at: usize, add: bool) {
        let Flow { set, source, destination, .. } = self.flows[at];
        if set == Set::Bulk {
            let change = |count: &mut u32| *count = if add { *count + 1 } else { count.saturating_sub(1) };
            change(&mut self.hosts[source].from);
            change(&mut self.hosts[destination].to);
        }
    }

    /// Changes the list that a flow counts for.
    fn become_set(&mut self, at: usize, set: Set) {
        self.count_bulk(at, false);
        for (set, step) in [(self.flows[at].set, -1), (set, 1)] {
            let count = match set {
                Set::Sparse | Set::SparseWait => &mut self.sparse_flows,
                Set::Bulk => &mut self.bulk_flows,
                Set::None | Set::Decaying => continue,
            };
            *count = count.saturating_add_signed(step);
        }
        self.flows[at].set = set;
        self.count_bulk(at, true);
    }

    /// Returns whether the set has flows that may have packets.
    fn has_flows(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// Returns the list of the next flow. Decaying flows come first, one at a time.
    fn next_list(&mut self, first: bool) -> Option<&mut VecDeque<u32>> {
        let Tin { sparse, bulk, decaying, .. } = self;
        if first && !decaying.is_empty() {
            return Some(decaying);
        }
        [sparse, bulk, decaying].into_iter().find(|list| !list.is_empty())
    }

    fn pop(&mut self, at: usize) -> Option<Item<P>> {
        let flow = &mut self.flows[at];
        let item = flow.items.pop_front()?;
        flow.bytes -= u64::from(item.bytes());
        self.depth.remove(item.bytes());
        Some(item)
    }

    /// Handles a flow that was asked for a packet and had none: it leaves the lists, or waits until its queue
    /// management is idle.
    fn was_empty(&mut self, at: usize, now: Time) {
        self.flows[at].law.was_empty(now, &self.plan);
        if self.flows[at].law.is_active(now) {
            self.become_set(at, Set::Decaying);
            self.decaying.push_back(at as u32);
        } else {
            self.become_set(at, Set::None);
        }
    }

    fn record_departure(&mut self, now: Time, item: &Item<P>) {
        let delay = now.since(item.arrival).0;
        self.sent.add(item.bytes());
        self.decisions.sojourn_ns = Some(delay);
        self.average_delay_ns = averaged(self.average_delay_ns, delay, 8);
        let shift = if delay > self.peak_delay_ns { 2 } else { 8 };
        self.peak_delay_ns = averaged(self.peak_delay_ns, delay, shift);
    }

    fn counters(&self) -> TinCounters {
        TinCounters {
            threshold_bps: self.plan.threshold_bps,
            target_ns: self.plan.target.0,
            interval_ns: self.plan.interval.0,
            average_delay_ns: self.average_delay_ns,
            peak_delay_ns: self.peak_delay_ns,
            depth_packets: self.depth.packets,
            depth_bytes: self.depth.bytes,
            sent: self.sent,
            overlimit: self.decisions.overlimit,
            early: self.decisions.early,
            marked: self.decisions.marked,
            way_indirect_hits: self.ways.indirect,
            way_misses: self.ways.misses,
            way_collisions: self.ways.collisions,
            sparse_flows: self.sparse_flows,
            bulk_flows: self.bulk_flows,
        }
    }
}

/// Returns the average after a step of 2⁻ⁿ of its distance from the value.
fn averaged(average: u64, sample: u64, shift: u32) -> u64 {
    average - (average >> shift) + (sample >> shift)
}

impl<P> Cake<P> {
    pub fn new(plan: CakePlan, seed: u64) -> Cake<P> {
        let tins = plan.tins.iter().map(|tin| Tin::new(*tin)).collect();
        Cake { plan, seed, tins, current: 0, chance: Chance(seed), depth: Count::default(), memory: 0 }
    }

    /// Subtracts a packet that no longer waits from the counters.
    fn uncount(&mut self, bytes: u32) {
        self.depth.remove(bytes);
        self.memory -= memory_of(bytes);
    }

    fn tin_of(&self, descriptor: &Descriptor) -> usize {
        let code_point = if descriptor.network == Network::Other { CONTROL } else { usize::from(descriptor.dscp) };
        usize::from(self.plan.tin_of[code_point])
    }

    /// Returns the quantum of a flow in each round: that of its tin, shared among the bulk flows of the host that has
    /// more of them. The remainder of the division is rounded at random, so that no bytes are lost on average.
    fn quantum(&mut self, tin: usize, at: usize, dithered: bool) -> i64 {
        let Tin { plan, flows, hosts, .. } = &self.tins[tin];
        let mut load = 1;
        if self.plan.isolation.fair_sources {
            load = load.max(hosts[flows[at].source].from);
        }
        if self.plan.isolation.fair_destinations {
            load = load.max(hosts[flows[at].destination].to);
        }
        let rest = if dithered { u64::from(self.chance.next() >> 16) } else { 0 };
        ((u64::from(plan.flow_quantum) * u64::from(65_535 / load) + rest) >> 16) as i64
    }

    /// Removes a packet from the head of the longest queue, counting the new packet at `own`. Returns false if that
    /// queue has no other packet. This is rare, so all queues are searched.
    #[cold]
    fn make_room(&mut self, now: Time, own: (usize, usize), bytes: u32, lost: &mut Vec<Lost<P>>) -> bool {
        let mut longest = (own, self.tins[own.0].flows[own.1].bytes + u64::from(bytes));
        for (number, tin) in self.tins.iter().enumerate() {
            for (at, flow) in tin.flows.iter().enumerate() {
                if flow.bytes > longest.1 {
                    longest = ((number, at), flow.bytes);
                }
            }
        }
        let ((number, at), _) = longest;
        let tin = &mut self.tins[number];
        tin.flows[at].law.record_overflow(now, &tin.plan);
        let Some(item) = tin.pop(at) else { return false };
        tin.decisions.overlimit.add(item.bytes());
        self.uncount(item.bytes());
        lost.push((DropReason::Tail, item));
        true
    }

    /// Returns the tin to serve.
    fn choose_tin(&mut self, now: Time) -> Option<usize> {
        if !self.tins.iter().any(Tin::has_flows) {
            return None;
        }
        if self.tins[0].plan.threshold_bps > 0 {
            // The last one below its threshold, or else the next one to be served.
            let serving = || (0..self.tins.len()).filter(|tin| self.tins[*tin].has_flows());
            let below = serving().rev().find(|tin| self.tins[*tin].time_next <= now);
            return below.or_else(|| serving().min_by_key(|tin| (self.tins[*tin].time_next, usize::MAX - tin)));
        }
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.has_flows() {
                return Some(self.current);
            }
            if tin.deficit <= 0 {
                tin.deficit += i64::from(tin.plan.quantum);
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }

    /// Charges a flow of a tin for a packet that leaves.
    fn charge(&mut self, number: usize, at: usize, bytes: u32, now: Time) {
        let length = self.plan.account.map_or(bytes, |account| account.length(bytes));
        let tin = &mut self.tins[number];
        tin.flows[at].deficit -= i64::from(length);
        tin.deficit -= i64::from(length);
        if tin.plan.threshold_bps > 0 {
            let time = Rate(tin.plan.threshold_bps).time_for_bytes(u64::from(length));
            tin.time_next = if tin.time_next < now { tin.time_next + time } else { tin.time_next.max(now + time) };
        }
    }

    /// Returns a packet of a flow that may leave now; `None` if it was dropped, or if there was none.
    fn take(&mut self, number: usize, at: usize, now: Time, lost: &mut Vec<Lost<P>>) -> Option<Item<P>> {
        loop {
            let random = self.chance.next();
            let tin = &mut self.tins[number];
            let mut item = tin.pop(at)?;
            self.depth.remove(item.bytes());
            self.memory -= memory_of(item.bytes());
            let last = tin.flows[at].items.is_empty();
            let Tin { flows, plan, decisions, .. } = tin;
            let sojourn = now.since(item.arrival);
            let signal = flows[at].law.decide(now, sojourn, plan, &mut item.descriptor, random);
            // The last packet of a queue may be marked, and is not dropped.
            if signal.drop && !last {
                decisions.early.add(item.bytes());
                lost.push((DropReason::Aqm, item));
                continue;
            }
            if signal.marked {
                decisions.marked.add(item.bytes());
            }
            return Some(item);
        }
    }
}

impl<P> Manage<P> for Cake<P> {
    fn admit(&mut self, now: Time, descriptor: &mut Descriptor, lost: &mut Vec<Lost<P>>) -> Result<Place, DropReason> {
        let number = self.tin_of(descriptor);
        if self.plan.wash {
            descriptor.dscp = 0;
        }
        let hashes = Hashes::of(descriptor, &self.plan.isolation, self.seed);
        let tin = &mut self.tins[number];
        if tin.depth.packets == 0 {
            tin.time_next = tin.time_next.max(now);
        }
        let at = tin.flow_of(hashes);
        let bytes = descriptor.counted_len;
        while self.memory + memory_of(bytes) > self.plan.memory_limit {
            if !self.make_room(now, (number, at), bytes, lost) {
                self.tins[number].decisions.overlimit.add(bytes);
                return Err(DropReason::Tail);
            }
        }
        Ok(Place { flow: at, number: number as u64 })
    }

    fn join(&mut self, place: Place, item: Item<P>) {
        let Place { flow: at, number } = place;
        let number = number as usize;
        self.depth.add(item.bytes());
        self.memory += memory_of(item.bytes());
        let tin = &mut self.tins[number];
        tin.depth.add(item.bytes());
        tin.flows[at].bytes += u64::from(item.bytes());
        tin.flows[at].items.push_back(item);
        match tin.flows[at].set {
            Set::None | Set::Decaying => {
                tin.decaying.retain(|other| *other as usize != at);
                tin.become_set(at, Set::Sparse);
                tin.sparse.push_back(at as u32);
                self.tins[number].flows[at].deficit = self.quantum(number, at, false);
            }
            Set::SparseWait => tin.become_set(at, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
    }

    fn leave(&mut self, now: Time, lost: &mut Vec<Lost<P>>) -> Option<Item<P>> {
        if self.depth.packets == 0 {
            return None;
        }
        let mut first = true;
        loop {
            let number = self.choose_tin(now)?;
            let tin = &mut self.tins[number];
            let Some(list) = tin.next_list(first) else { continue };
            first = false;
            let Some(at) = list.pop_front().map(|at| at as usize) else { continue };
            if tin.flows[at].deficit <= 0 {
                if tin.flows[at].set == Set::Sparse {
                    let set = if tin.flows[at].items.is_empty() { Set::SparseWait } else { Set::Bulk };
                    tin.become_set(at, set);
                }
                tin.bulk.push_back(at as u32);
                let quantum = self.quantum(number, at, true);
                self.tins[number].flows[at].deficit += quantum;
                continue;
            }
            let Some(item) = self.take(number, at, now, lost) else {
                self.tins[number].was_empty(at, now);
                continue;
            };
            let tin = &mut self.tins[number];
            let list = match tin.flows[at].set {
                Set::Sparse => &mut tin.sparse,
                Set::SparseWait | Set::Bulk => &mut tin.bulk,
                Set::None | Set::Decaying => &mut tin.decaying,
            };
            // It stays in front until its quantum is used.
            list.push_front(at as u32);
            tin.record_departure(now, &item);
            self.charge(number, at, item.bytes(), now);
            return Some(item);
        }
    }

    fn remove(&mut self) -> Option<Item<P>> {
        for tin in &mut self.tins {
            if let Some(at) = tin.flows.iter().position(|flow| !flow.items.is_empty()) {
                let item = tin.pop(at)?;
                self.uncount(item.bytes());
                return Some(item);
            }
        }
        None
    }

    fn next_bytes(&self) -> Option<u32> {
        let waiting = self.tins.iter().rev().filter(|tin| tin.depth.packets > 0);
        waiting
            .flat_map(|tin| tin.sparse.iter().chain(&tin.bulk).filter_map(|at| tin.flows[*at as usize].items.front()))
            .next()
            .map(Item::bytes)
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.tins.iter().flat_map(|tin| tin.flows.iter().flat_map(|flow| flow.items.iter())))
    }

    fn flows(&self) -> Option<(u32, u32)> {
        let active: u32 = self.tins.iter().map(|tin| tin.sparse_flows + tin.bulk_flows).sum();
        Some((active, (QUEUES * self.tins.len()) as u32))
    }

    fn counters(&self) -> ManagedCounters {
        let sum = |part: fn(&Decisions) -> Count| {
            self.tins.iter().fold(Count::default(), |sum, tin| sum.plus(part(&tin.decisions)))
        };
        let tins = || self.tins.iter();
        let flows = FlowsCounters {
            active: tins().map(|tin| tin.sparse_flows + tin.bulk_flows).sum(),
            most: (QUEUES * self.tins.len()) as u32,
            begun: tins().map(|tin| tin.ways.misses).sum(),
            new: tins().map(|tin| tin.sparse.len() as u32).sum(),
            old: tins().map(|tin| tin.bulk.len() as u32).sum(),
        };
        ManagedCounters {
            overlimit: sum(|decisions| decisions.overlimit),
            early: sum(|decisions| decisions.early),
            marked: sum(|decisions| decisions.marked),
            flows: Some(flows),
            tins: tins().map(Tin::counters).collect(),
            ..ManagedCounters::default()
        }
    }

    fn clear(&mut self) {
        for tin in &mut self.tins {
            tin.decisions.clear();
            tin.sent = Count::default();
            tin.ways = Ways::default();
        }
    }
}
