//! The seam of queueing disciplines: [`Discipline`], and [`Queue`] that is one of them.

use crate::counters::{Count, DisciplineName};
use crate::engine::DropReason;
use crate::fair_queue::FairQueue;
use crate::fifo::Fifo;
use crate::packet::Descriptor;
use crate::time::Time;
use crate::weighted_fair::WeightedFair;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Item<P> {
    pub descriptor: Descriptor,
    pub payload: P,
    /// The class that it counts for, by its number in the policy.
    pub class: Option<usize>,
    /// When it came to the interface.
    pub arrival: Time,
    /// Bit n set: it had to wait for the shaper at level n of the hierarchy.
    pub delayed: u8,
}

impl<P> Item<P> {
    pub fn bytes(&self) -> u32 {
        self.descriptor.counted_len
    }
}

/// What became of a packet that was given to a queue.
#[derive(Debug)]
pub(crate) enum Enqueued<P> {
    /// It waits.
    Queued,
    /// It was not taken.
    Refused(Item<P>, DropReason),
    /// It waits, and another one was removed.
    Displaced(Item<P>, DropReason),
}

/// A queueing discipline: an order and a limit. Cost per packet must not grow with the number of flows.
pub(crate) trait Discipline<P> {
    /// Takes a packet or not.
    fn enqueue(&mut self, item: Item<P>) -> Enqueued<P>;
    /// Counted bytes of the packet that `dequeue` would give.
    fn head(&self) -> Option<&Descriptor>;
    /// Removes the next packet.
    fn dequeue(&mut self) -> Option<Item<P>>;
    /// Packets and counted bytes that wait.
    fn depth(&self) -> Count;
    /// Everything that waits, in no particular order.
    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a;
    /// Flow queues: in use, and at most.
    fn flows(&self) -> Option<(u32, u32)> {
        None
    }
}

/// What to build a queue from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePlan {
    Fifo {
        limit: u32,
    },
    /// `total` is its own limit; without it the interface's hold-queue limits it.
    WeightedFair {
        flows: u32,
        per_flow: u32,
        total: Option<u32>,
    },
    /// A class as one conversation of classic weighted fair queueing; without a weight the precedence decides.
    Conversation {
        limit: u32,
        weight: Option<u64>,
    },
    FairQueue {
        flows: u32,
        per_flow: u32,
        limit: u32,
    },
}

impl QueuePlan {
    pub fn name(&self) -> DisciplineName {
        match self {
            QueuePlan::Fifo { .. } | QueuePlan::Conversation { .. } => DisciplineName::Fifo,
            QueuePlan::WeightedFair { .. } => DisciplineName::WeightedFair,
            QueuePlan::FairQueue { .. } => DisciplineName::FairQueue,
        }
    }

    /// The limit that is shown.
    pub fn limit(&self) -> u32 {
        match *self {
            QueuePlan::Fifo { limit } | QueuePlan::FairQueue { limit, .. } | QueuePlan::Conversation { limit, .. } => {
                limit
            }
            QueuePlan::WeightedFair { total, .. } => total.unwrap_or(crate::defaults::FAIR_HOLD_QUEUE),
        }
    }

    pub fn per_flow(&self) -> Option<u32> {
        match *self {
            QueuePlan::Fifo { .. } | QueuePlan::Conversation { .. } => None,
            QueuePlan::FairQueue { per_flow, .. } | QueuePlan::WeightedFair { per_flow, .. } => Some(per_flow),
        }
    }

    /// Flow queues that it makes.
    pub fn flows(&self) -> u32 {
        match *self {
            QueuePlan::Fifo { .. } | QueuePlan::Conversation { .. } => 1,
            QueuePlan::WeightedFair { flows, .. } | QueuePlan::FairQueue { flows, .. } => flows,
        }
    }

    pub fn build<P>(&self, seed: u64) -> Queue<P> {
        match *self {
            QueuePlan::Fifo { limit } => Queue::Fifo(Fifo::new(limit)),
            QueuePlan::WeightedFair { flows, per_flow, total } => {
                Queue::WeightedFair(WeightedFair::new(flows, per_flow, total, None, seed))
            }
            QueuePlan::Conversation { limit, weight } => {
                Queue::WeightedFair(WeightedFair::new(1, limit, None, weight, seed))
            }
            QueuePlan::FairQueue { flows, per_flow, .. } => Queue::Fair(FairQueue::new(flows, per_flow, seed)),
        }
    }
}

/// One of the disciplines.
#[derive(Debug)]
pub(crate) enum Queue<P> {
    Fifo(Fifo<P>),
    WeightedFair(WeightedFair<P>),
    Fair(FairQueue<P>),
}

macro_rules! each {
    ($queue:expr, $inner:ident => $call:expr) => {
        match $queue {
            Queue::Fifo($inner) => $call,
            Queue::WeightedFair($inner) => $call,
            Queue::Fair($inner) => $call,
        }
    };
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

/// The flow queue of a packet: `flows` is a power of two.
pub(crate) fn flow_index(key: u64, seed: u64, flows: u32) -> usize {
    (crate::packet::mix(key ^ seed) & u64::from(flows - 1)) as usize
}

/// What only classic weighted fair queueing has: a place in a space of sequence numbers that the scheduler keeps.
impl<P> Queue<P> {
    fn weighted(&mut self) -> Option<&mut WeightedFair<P>> {
        match self {
            Queue::WeightedFair(queue) => Some(queue),
            Queue::Fifo(_) | Queue::Fair(_) => None,
        }
    }

    /// See [`WeightedFair::set_served`].
    pub fn set_served(&mut self, number: u64) {
        if let Some(queue) = self.weighted() {
            queue.set_served(number);
        }
    }

    /// The sequence number of the next packet.
    pub fn lowest(&self) -> Option<u64> {
        match self {
            Queue::WeightedFair(queue) => queue.lowest(),
            Queue::Fifo(_) | Queue::Fair(_) => None,
        }
    }

    /// The highest sequence number.
    pub fn highest(&self) -> Option<u64> {
        match self {
            Queue::WeightedFair(queue) => queue.highest(),
            Queue::Fifo(_) | Queue::Fair(_) => None,
        }
    }

    /// See [`WeightedFair::number`].
    pub fn number(&self, descriptor: &Descriptor) -> Result<u64, DropReason> {
        match self {
            Queue::WeightedFair(queue) => queue.number(descriptor),
            Queue::Fifo(_) | Queue::Fair(_) => Ok(0),
        }
    }

    /// See [`WeightedFair::discard`].
    pub fn discard(&mut self) -> Option<Item<P>> {
        self.weighted()?.discard()
    }
}
