//! FQ-CoDel: "The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm", T. Hoeiland-Joergensen,
//! P. McKenney, D. Taht, J. Gettys, E. Dumazet, RFC 8290.
//!
//! Flows are hashed to queues, which take turns by deficit round robin; flows that have just become active come before
//! the others. Each queue has a separate CoDel (section 4.2); as in Linux it is asked with the bytes of all queues.
//! When the limit is reached packets of the queue with most bytes are dropped from its head, half of it and at most 64
//! at once (section 4.1). A packet that has just come is among them only if its queue had no other.

use std::collections::VecDeque;

use crate::counters::aqm::{FlowsCounters, ManagedCounters};
use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::aqm::FqCodelPlan;
use crate::queueing::aqm::codel::{Codel, Waiting};
use crate::queueing::aqm::manage::{memory_of, Decisions, Lost, Manage};
use crate::queueing::discipline::{flow_index, Item, Place};
use crate::time::Time;

/// A flow queue, with the state of its control law.
#[derive(Debug)]
struct Flow<P> {
    items: VecDeque<Item<P>>,
    bytes: u64,
    deficit: i64,
    law: Codel,
    /// Whether the flow is in one of the lists.
    listed: bool,
}

/// FQ-CoDel's queues.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    plan: FqCodelPlan,
    seed: u64,
    flows: Vec<Flow<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    depth: Count,
    /// Memory used by the packets, in bytes.
    memory: u64,
    active: u32,
    decisions: Decisions,
    /// Number of times that a flow became new.
    begun: u64,
}

/// The packets of one flow, with the common counters.
struct OfFlow<'a, P> {
    flow: &'a mut VecDeque<Item<P>>,
    bytes: &'a mut u64,
    depth: &'a mut Count,
    memory: &'a mut u64,
}

impl<P> Waiting<P> for OfFlow<'_, P> {
    fn pop(&mut self) -> Option<Item<P>> {
        let item = self.flow.pop_front()?;
        *self.bytes -= u64::from(item.bytes());
        self.depth.remove(item.bytes());
        *self.memory -= memory_of(item.bytes());
        Some(item)
    }

    fn bytes(&self) -> u64 {
        self.depth.bytes
    }
}

impl<P> FqCodel<P> {
    pub fn new(plan: FqCodelPlan, seed: u64) -> FqCodel<P> {
        let flow = || Flow { items: VecDeque::new(), bytes: 0, deficit: 0, law: Codel::default(), listed: false };
        FqCodel {
            plan,
            seed,
            flows: (0..plan.flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            depth: Count::default(),
            memory: 0,
            active: 0,
            decisions: Decisions::default(),
            begun: 0,
        }
    }

    /// Returns the queue of a packet; the number of queues need not be a power of two.
    fn flow_of(&self, descriptor: &Descriptor) -> usize {
        match self.plan.flows {
            flows if flows.is_power_of_two() => flow_index(descriptor.flow, self.seed, flows),
            flows => flow_index(descriptor.flow, self.seed, 1 << 31) % flows as usize,
        }
    }

    /// Makes room by dropping from the queue with the most bytes, counting the new packet at `own`. Returns whether
    /// that packet may join. This is rare, so all queues are searched, as in Linux.
    #[cold]
    fn make_room(&mut self, own: usize, bytes: u32, lost: &mut Vec<Lost<P>>) -> bool {
        let with_own = |(index, flow): (usize, &Flow<P>)| flow.bytes + if index == own { u64::from(bytes) } else { 0 };
        let fattest =
            (0..self.flows.len()).max_by_key(|index| (with_own((*index, &self.flows[*index])), usize::MAX - index));
        let Some(fattest) = fattest else { return false };
        let half = with_own((fattest, &self.flows[fattest])) / 2;
        let (mut packets, mut dropped) = (0, 0);
        let Flow { items, bytes, law, .. } = &mut self.flows[fattest];
        while packets < self.plan.drop_batch && (packets == 0 || dropped < half) {
            let Some(item) = (OfFlow { flow: items, bytes, depth: &mut self.depth, memory: &mut self.memory }).pop()
            else {
                break;
            };
            packets += 1;
            dropped += u64::from(item.bytes());
            self.decisions.overlimit.add(item.bytes());
            lost.push((DropReason::Tail, item));
        }
        law.count = law.count.saturating_add(packets);
        if packets > 0 && items.is_empty() {
            self.active -= 1;
        }
        packets > 0
    }
}

impl<P> Manage<P> for FqCodel<P> {
    fn admit(&mut self, _: Time, descriptor: &mut Descriptor, lost: &mut Vec<Lost<P>>) -> Result<Place, DropReason> {
        let (flow, bytes) = (self.flow_of(descriptor), descriptor.counted_len);
        let full =
            self.depth.packets >= u64::from(self.plan.limit) || self.memory + memory_of(bytes) > self.plan.memory_limit;
        if full && !self.make_room(flow, bytes, lost) {
            self.decisions.overlimit.add(bytes);
            return Err(DropReason::Tail);
        }
        Ok(Place { flow, number: 0 })
    }

    fn join(&mut self, place: Place, item: Item<P>) {
        let flow = &mut self.flows[place.flow];
        flow.bytes += u64::from(item.bytes());
        self.depth.add(item.bytes());
        self.memory += memory_of(item.bytes());
        self.active += u32::from(flow.items.is_empty());
        flow.items.push_back(item);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.plan.quantum);
            self.new.push_back(place.flow as u32);
            self.begun += 1;
        }
    }

    fn leave(&mut self, now: Time, lost: &mut Vec<Lost<P>>) -> Option<Item<P>> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.plan.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let held = !flow.items.is_empty();
            let mut packets = OfFlow {
                flow: &mut flow.items,
                bytes: &mut flow.bytes,
                depth: &mut self.depth,
                memory: &mut self.memory,
            };
            let item = flow.law.dequeue(now, &self.plan.law, &mut packets, &mut self.decisions, lost);
            if held && flow.items.is_empty() {
                self.active -= 1;
            }
            if let Some(item) = item {
                flow.deficit -= i64::from(item.bytes());
                return Some(item);
            }
            // A new flow passes through the list of old flows, so that it does not become new again at once.
            list.pop_front();
            if from_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn remove(&mut self) -> Option<Item<P>> {
        let Flow { items, bytes, .. } = self.flows.iter_mut().find(|flow| !flow.items.is_empty())?;
        let item = (OfFlow { flow: items, bytes, depth: &mut self.depth, memory: &mut self.memory }).pop();
        self.active -= u32::from(items.is_empty());
        item
    }

    fn next_bytes(&self) -> Option<u32> {
        let mut listed = self.new.iter().chain(&self.old);
        listed.find_map(|index| self.flows[*index as usize].items.front()).map(Item::bytes)
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.flows.iter().flat_map(|flow| flow.items.iter()))
    }

    fn flows(&self) -> Option<(u32, u32)> {
        Some((self.active, self.plan.flows))
    }

    fn counters(&self) -> ManagedCounters {
        let flows = FlowsCounters {
            active: self.active,
            most: self.plan.flows,
            begun: self.begun,
            new: self.new.len() as u32,
            old: self.old.len() as u32,
        };
        ManagedCounters { flows: Some(flows), ..self.decisions.of() }
    }

    fn clear(&mut self) {
        self.decisions.clear();
        self.begun = 0;
    }
}
