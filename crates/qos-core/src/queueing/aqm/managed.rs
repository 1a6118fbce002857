//! [`Managed`]: one of the disciplines with active queue management.

use crate::counters::aqm::ManagedCounters;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::queue::ManagedPlan;
use crate::queueing::aqm::cake::Cake;
use crate::queueing::aqm::fq_codel::FqCodel;
use crate::queueing::aqm::manage::{Lost, Manage};
use crate::queueing::aqm::single::{CodelQueue, PieQueue};
use crate::queueing::discipline::{Discipline, Inserted, Item, Place};
use crate::time::Time;

/// A managed discipline, as a [`Discipline`].
#[derive(Debug)]
pub(crate) struct Managed<P> {
    kind: Kind<P>,
    /// The packet that leaves next, between `stage` and `dequeue`.
    staged: Option<Item<P>>,
    /// Placeholder for the packet that leaves next, which is selected only at departure. It takes no time on the line,
    /// so that no event is scheduled too late.
    front: Descriptor,
    holds: bool,
}

#[derive(Debug)]
enum Kind<P> {
    Codel(CodelQueue<P>),
    FqCodel(FqCodel<P>),
    Pie(PieQueue<P>),
    Cake(Cake<P>),
}

macro_rules! each {
    ($queue:expr, $inner:ident => $call:expr) => {
        match $queue {
            Kind::Codel($inner) => $call,
            Kind::FqCodel($inner) => $call,
            Kind::Pie($inner) => $call,
            Kind::Cake($inner) => $call,
        }
    };
}

impl<P> Managed<P> {
    pub fn new(plan: &ManagedPlan, seed: u64, now: Time) -> Managed<P> {
        let kind = match plan {
            ManagedPlan::Codel(plan) => Kind::Codel(CodelQueue::new(*plan)),
            ManagedPlan::FqCodel(plan) => Kind::FqCodel(FqCodel::new(*plan, seed)),
            ManagedPlan::Pie(plan) => Kind::Pie(PieQueue::new(*plan, seed, now)),
            ManagedPlan::Cake(plan) => Kind::Cake(Cake::new((**plan).clone(), seed)),
        };
        Managed { kind, staged: None, front: Descriptor::UNKNOWN, holds: false }
    }

    /// Decides on an arriving packet; see [`Manage::admit`].
    pub fn admit(
        &mut self,
        now: Time,
        descriptor: &mut Descriptor,
        lost: &mut Vec<Lost<P>>,
    ) -> Result<Place, DropReason> {
        let place = each!(&mut self.kind, queue => queue.admit(now, descriptor, lost));
        self.update_front();
        place
    }

    /// Selects the packet that leaves at `now`; `dequeue` then returns it.
    pub fn stage(&mut self, now: Time, lost: &mut Vec<Lost<P>>) {
        if self.staged.is_none() {
            self.staged = each!(&mut self.kind, queue => queue.leave(now, lost));
            self.update_front();
        }
    }

    pub fn counters(&self) -> ManagedCounters {
        each!(&self.kind, queue => Manage::<P>::counters(queue))
    }

    pub fn clear(&mut self) {
        each!(&mut self.kind, queue => Manage::<P>::clear(queue));
    }

    /// Stores the known properties of the packet that leaves next.
    fn update_front(&mut self) {
        let bytes = match &self.staged {
            Some(item) => Some(item.bytes()),
            None => each!(&self.kind, queue => Manage::<P>::next_bytes(queue)),
        };
        self.holds = bytes.is_some();
        self.front.counted_len = bytes.unwrap_or_default();
    }
}

impl<P> Discipline<P> for Managed<P> {
    /// Is never called: a packet is admitted first.
    fn place(&self, _: &Descriptor) -> Result<Place, DropReason> {
        Ok(Place::default())
    }

    fn insert(&mut self, place: Place, item: Item<P>) -> Inserted<P> {
        each!(&mut self.kind, queue => queue.join(place, item));
        self.update_front();
        Inserted::BEHIND
    }

    fn head(&self) -> Option<&Descriptor> {
        self.holds.then_some(&self.front)
    }

    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        let item = self.staged.take().or_else(|| each!(&mut self.kind, queue => queue.remove()))?;
        self.update_front();
        Some(take(item))
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.staged.iter().chain(each!(&self.kind, queue => queue.items())))
    }

    fn flows(&self) -> Option<(u32, u32)> {
        each!(&self.kind, queue => Manage::<P>::flows(queue))
    }
}
