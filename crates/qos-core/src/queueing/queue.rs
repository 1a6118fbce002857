//! [`Queue`]: one of the disciplines.

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::queue::QueuePlan;
use crate::queueing::aqm::managed::Managed;
use crate::queueing::discipline::{Discipline, Inserted, Item, Place};
use crate::queueing::fair_queue::FairQueue;
use crate::queueing::fifo::Fifo;
use crate::queueing::limited_fifo::LimitedFifo;
use crate::queueing::weighted_fair::{Waiting, WeightedFair};
use crate::time::Time;

/// Discipline of the queue.
#[derive(Debug)]
pub(crate) enum Queue<P> {
    Fifo(Fifo<P>),
    Limited(LimitedFifo<P>),
    WeightedFair(WeightedFair<P>),
    Fair(FairQueue<P>),
    Managed(Box<Managed<P>>),
}

macro_rules! each {
    ($queue:expr, $inner:ident => $call:expr) => {
        match $queue {
            Queue::Fifo($inner) => $call,
            Queue::Limited($inner) => $call,
            Queue::WeightedFair($inner) => $call,
            Queue::Fair($inner) => $call,
            Queue::Managed($inner) => $call,
        }
    };
}

impl<P> Queue<P> {
    /// Returns the queue of a plan.
    pub fn of(plan: &QueuePlan, seed: u64, now: Time) -> Queue<P> {
        match *plan {
            QueuePlan::Fifo { limit } => Queue::Fifo(Fifo::new(limit)),
            QueuePlan::Limited(ref limits) => Queue::Limited(LimitedFifo::new((**limits).clone())),
            QueuePlan::WeightedFair { flows, threshold, total } => {
                Queue::WeightedFair(WeightedFair::new(flows, threshold, total, None, seed))
            }
            QueuePlan::Conversation { limit, weight } => {
                Queue::WeightedFair(WeightedFair::new(1, limit, None, weight, seed))
            }
            QueuePlan::FairQueue { flows, per_flow, limit, limits_sum } => {
                Queue::Fair(FairQueue::new(flows, per_flow, limits_sum.then_some(limit), seed))
            }
            QueuePlan::Managed(ref plan) => Queue::Managed(Box::new(Managed::new(plan, seed, now))),
        }
    }
}

impl<P> Discipline<P> for Queue<P> {
    #[inline]
    fn place(&self, descriptor: &Descriptor) -> Result<Place, DropReason> {
        each!(self, queue => Discipline::<P>::place(queue, descriptor))
    }
    #[inline]
    fn insert(&mut self, place: Place, item: Item<P>) -> Inserted<P> {
        each!(self, queue => queue.insert(place, item))
    }
    #[inline]
    fn head(&self) -> Option<&Descriptor> {
        each!(self, queue => queue.head())
    }
    #[inline]
    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        each!(self, queue => queue.dequeue(take))
    }
    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        each!(self, queue => queue.items())
    }
    #[inline]
    fn flows(&self) -> Option<(u32, u32)> {
        each!(self, queue => Discipline::<P>::flows(queue))
    }
}

/// State of classic weighted fair queueing only: numbers from a sequence that the scheduler controls.
impl<P> Queue<P> {
    /// Returns whether the queue assigns sequence numbers.
    pub fn numbers(&self) -> bool {
        matches!(self, Queue::WeightedFair(_))
    }

    /// Sets the number of the last served packet; see [`WeightedFair::set_served`].
    #[inline]
    pub fn set_served(&mut self, number: u64) {
        if let Queue::WeightedFair(queue) = self {
            queue.set_served(number);
        }
    }

    /// Returns the conversation of a packet and its sequence number there, regardless of limits.
    pub fn next(&self, descriptor: &Descriptor) -> Place {
        match self {
            Queue::WeightedFair(queue) => queue.next(descriptor),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) | Queue::Managed(_) => Place::default(),
        }
    }

    /// Returns the conversations with packets.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting<'_, P>> {
        let queue = match self {
            Queue::WeightedFair(queue) => Some(queue),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) | Queue::Managed(_) => None,
        };
        queue.into_iter().flat_map(WeightedFair::waiting)
    }

    /// Counts a packet that was not admitted.
    pub fn count_refused(&mut self, descriptor: &Descriptor) {
        if let Queue::WeightedFair(queue) = self {
            queue.count_refused(descriptor);
        }
    }

    /// Restarts the drop counters; see [`WeightedFair::clear_drops`].
    pub fn clear_drops(&mut self) {
        match self {
            Queue::WeightedFair(queue) => queue.clear_drops(),
            Queue::Managed(queue) => queue.clear(),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) => {}
        }
    }

    /// Returns the sequence number of the next packet.
    #[inline]
    pub fn lowest(&self) -> Option<u64> {
        match self {
            Queue::WeightedFair(queue) => queue.lowest(),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) | Queue::Managed(_) => None,
        }
    }

    /// Returns the highest sequence number.
    pub fn highest(&self) -> Option<u64> {
        match self {
            Queue::WeightedFair(queue) => queue.highest(),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) | Queue::Managed(_) => None,
        }
    }

    /// Removes the packet with the highest number; see [`WeightedFair::discard`].
    pub fn discard(&mut self) -> Option<Item<P>> {
        match self {
            Queue::WeightedFair(queue) => queue.discard(),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) | Queue::Managed(_) => None,
        }
    }
}

/// Operations of active queue management, for queues that have it.
impl<P> Queue<P> {
    /// Returns the queue, if it has active queue management.
    pub fn managed(&self) -> Option<&Managed<P>> {
        match self {
            Queue::Managed(queue) => Some(queue),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) | Queue::WeightedFair(_) => None,
        }
    }

    /// Returns the queue mutably, if it has active queue management.
    pub fn managed_mut(&mut self) -> Option<&mut Managed<P>> {
        match self {
            Queue::Managed(queue) => Some(queue),
            Queue::Fifo(_) | Queue::Limited(_) | Queue::Fair(_) | Queue::WeightedFair(_) => None,
        }
    }
}
