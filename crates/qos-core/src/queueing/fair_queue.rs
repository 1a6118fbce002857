//! Fair queueing of the later generation (`fair-queue` in a class): equal bytes for each flow of any precedence.
//!
//! Deficit round robin (Shreedhar and Varghese, 1995) over hashed flow queues. A flow may hold a quarter of the queue
//! limit; the limit itself is not enforced, as measured on routers of that generation. On IOS-XE it is.

use std::collections::VecDeque;

use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::queueing::discipline::{flow_index, Discipline, Inserted, Item, Place};

/// Bytes that a flow may send per round: at least a full Ethernet frame, so that the cost of a round does not depend on
/// the number of flows.
const QUANTUM: u64 = 1_600;

#[derive(Debug)]
struct Flow<P> {
    items: VecDeque<Item<P>>,
    deficit: u64,
}

/// Deficit round robin over flow queues.
#[derive(Debug)]
pub(crate) struct FairQueue<P> {
    flows: Vec<Flow<P>>,
    /// Flows with packets; the first one's head may always leave (see `settle`).
    active: VecDeque<u32>,
    /// Whether the first active flow has received its quantum of this round.
    served: bool,
    /// Maximum number of packets of a flow.
    per_flow: Option<usize>,
    /// Maximum number of packets of all flows together.
    total: Option<u64>,
    seed: u64,
    depth: Count,
}

impl<P> FairQueue<P> {
    /// Creates an empty queue; `flows` is a power of two.
    pub fn new(flows: u32, per_flow: Option<u32>, total: Option<u32>, seed: u64) -> FairQueue<P> {
        FairQueue {
            flows: (0..flows).map(|_| Flow { items: VecDeque::new(), deficit: 0 }).collect(),
            active: VecDeque::new(),
            served: false,
            per_flow: per_flow.map(|most| most as usize),
            total: total.map(u64::from),
            seed,
            depth: Count::default(),
        }
    }

    /// Rotates the flows until the head of the first one may leave, so that reading the head changes nothing.
    fn settle(&mut self) {
        while let Some(&first) = self.active.front() {
            let flow = &mut self.flows[first as usize];
            let head = flow.items.front().map_or(0, |item| u64::from(item.bytes()));
            if !self.served {
                flow.deficit += QUANTUM;
                self.served = true;
            }
            if flow.deficit >= head {
                return;
            }
            self.active.rotate_left(1);
            self.served = false;
        }
    }
}

impl<P> Discipline<P> for FairQueue<P> {
    fn place(&self, descriptor: &Descriptor) -> Result<Place, DropReason> {
        let flow = flow_index(descriptor.flow, self.seed, self.flows.len() as u32);
        let held = match self.per_flow {
            Some(_) if mistaken!(FairQueueSumLimited) => self.depth.packets as usize / 4,
            _ => self.flows[flow].items.len(),
        };
        if self.per_flow.is_some_and(|most| held >= most) {
            return Err(DropReason::Flow);
        }
        if self.total.is_some_and(|most| self.depth.packets >= most) {
            return Err(DropReason::Tail);
        }
        Ok(Place { flow, number: 0 })
    }

    fn insert(&mut self, place: Place, item: Item<P>) -> Inserted<P> {
        self.depth.add(item.bytes());
        let flow = &mut self.flows[place.flow];
        flow.items.push_back(item);
        if flow.items.len() == 1 {
            self.active.push_back(place.flow as u32);
            if self.active.len() == 1 {
                self.settle();
            }
        }
        Inserted::BEHIND
    }

    fn head(&self) -> Option<&Descriptor> {
        let first = *self.active.front()?;
        self.flows[first as usize].items.front().map(|item| &item.descriptor)
    }

    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        let first = *self.active.front()?;
        let flow = &mut self.flows[first as usize];
        let item = flow.items.pop_front()?;
        let bytes = item.bytes();
        let taken = take(item);
        self.depth.remove(bytes);
        let cost = if mistaken!(PacketFair) { QUANTUM } else { u64::from(bytes) };
        flow.deficit = flow.deficit.saturating_sub(cost);
        if flow.items.is_empty() {
            flow.deficit = 0;
            self.active.pop_front();
            self.served = false;
        }
        self.settle();
        Some(taken)
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.flows.iter().flat_map(|flow| flow.items.iter()))
    }

    fn flows(&self) -> Option<(u32, u32)> {
        Some((self.active.len() as u32, self.flows.len() as u32))
    }
}
