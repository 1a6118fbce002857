//! [`Queue`]: one of the disciplines.

use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::plan::queue::QueuePlan;
use crate::queueing::discipline::{Discipline, Enqueued, Item};
use crate::queueing::fair_queue::FairQueue;
use crate::queueing::fifo::Fifo;
use crate::queueing::limited_fifo::LimitedFifo;
use crate::queueing::weighted_fair::WeightedFair;

/// One of the disciplines.
#[derive(Debug)]
pub(crate) enum Queue<P> {
    Fifo(Fifo<P>),
    Limited(LimitedFifo<P>),
    WeightedFair(WeightedFair<P>),
    Fair(FairQueue<P>),
}

macro_rules! each {
    ($queue:expr, $inner:ident => $call:expr) => {
        match $queue {
            Queue::Fifo($inner) => $call,
            Queue::Limited($inner) => $call,
            Queue::WeightedFair($inner) => $call,
            Queue::Fair($inner) => $call,
        }
    };
}

impl<P> Queue<P> {
    /// The queue of a plan.
    pub fn of(plan: &QueuePlan, seed: u64) -> Queue<P> {
        match *plan {
            QueuePlan::Fifo { limit } => Queue::Fifo(Fifo::new(limit)),
            QueuePlan::Limited(ref limits) => Queue::Limited(LimitedFifo::new((**limits).clone())),
            QueuePlan::WeightedFair { flows, threshold, total } => {
                Queue::WeightedFair(WeightedFair::new(flows, threshold, total, None, seed))
            }
            QueuePlan::Conversation { limit, weight } => {
                Queue::WeightedFair(WeightedFair::new(1, limit, None, weight, seed))
            }
            QueuePlan::FairQueue { flows, per_flow, .. } => Queue::Fair(FairQueue::new(flows, per_flow, seed)),
        }
    }
}

impl<P> Discipline<P> for Queue<P> {
    fn enqueue(&mut self, item: Item<P>) -> Enqueued<P> {
        each!(self, queue => queue.enqueue(item))
    }
    fn head(&self) -> Option<&Descriptor> {
        each!(self, queue => queue.head())
    }
    fn dequeue(&mut self) -> Option<Item<P>> {
        each!(self, queue => queue.dequeue())
    }
    fn depth(&self) -> Count {
        each!(self, queue => queue.depth())
    }
    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        each!(self, queue => queue.items())
    }
    fn flows(&self) -> Option<(u32, u32)> {
        each!(self, queue => Discipline::<P>::flows(queue))
    }
}

/// What only classic weighted fair queueing has: a place in a space of sequence numbers that the scheduler keeps.
impl<P> Queue<P> {
    /// The queue itself, if it is one of that kind.
    pub fn weighted(&mut self) -> Option<&mut WeightedFair<P>> {
        match self {
            Queue::WeightedFair(queue) => Some(queue),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) => None,
        }
    }

    /// Whether a packet that has joined others is the next to leave.
    pub fn leads(&self) -> bool {
        match self {
            Queue::WeightedFair(queue) => queue.leads(),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) => false,
        }
    }

    /// The sequence number of the next packet.
    pub fn lowest(&self) -> Option<u64> {
        match self {
            Queue::WeightedFair(queue) => queue.lowest(),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) => None,
        }
    }

    /// The highest sequence number.
    pub fn highest(&self) -> Option<u64> {
        match self {
            Queue::WeightedFair(queue) => queue.highest(),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) => None,
        }
    }

    /// See [`WeightedFair::discard`].
    pub fn discard(&mut self) -> Option<Item<P>> {
        self.weighted()?.discard()
    }
}
