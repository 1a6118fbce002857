//! FIFO queues under CoDel and under PIE.

use std::collections::VecDeque;

use crate::counters::aqm::ManagedCounters;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::aqm::{CodelQueuePlan, PiePlan};
use crate::queueing::aqm::codel::{Codel, Waiting};
use crate::queueing::aqm::manage::{mark, Decisions, Lost, Manage};
use crate::queueing::aqm::pie::{Pie, MOST_MARKED};
use crate::queueing::discipline::{Item, Place};
use crate::time::Time;

/// Packets in their order, and their bytes.
#[derive(Debug)]
pub(crate) struct Packets<P> {
    pub items: VecDeque<Item<P>>,
    bytes: u64,
}

impl<P> Packets<P> {
    pub fn new() -> Packets<P> {
        Packets { items: VecDeque::new(), bytes: 0 }
    }

    pub fn push(&mut self, item: Item<P>) {
        self.bytes += u64::from(item.bytes());
        self.items.push_back(item);
    }
}

impl<P> Waiting<P> for Packets<P> {
    fn pop(&mut self) -> Option<Item<P>> {
        let item = self.items.pop_front()?;
        self.bytes -= u64::from(item.bytes());
        Some(item)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Returns the reason why a queue of at most `limit` packets does not accept another one.
fn full<P>(packets: &Packets<P>, limit: u32, bytes: u32, decisions: &mut Decisions) -> Result<(), DropReason> {
    if packets.items.len() >= limit as usize {
        decisions.overlimit.add(bytes);
        return Err(DropReason::Tail);
    }
    Ok(())
}

/// The methods of [`Manage`] for queues with packets in order.
macro_rules! note_in_order_data {
    () => {
        fn join(&mut self, _: Place, item: Item<P>) {
            self.packets.push(item);
        }

        fn remove(&mut self) -> Option<Item<P>> {
            self.packets.pop()
        }

        fn next_bytes(&self) -> Option<u32> {
            self.packets.items.front().map(Item::bytes)
        }

        fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
        where
            P: 'a,
        {
            Box::new(self.packets.items.iter())
        }

        fn clear(&mut self) {
            self.decisions.clear();
        }
    };
}

/// A FIFO under CoDel.
#[derive(Debug)]
pub(crate) struct CodelQueue<P> {
    plan: CodelQueuePlan,
    packets: Packets<P>,
    law: Codel,
    decisions: Decisions,
}

impl<P> CodelQueue<P> {
    pub fn new(plan: CodelQueuePlan) -> CodelQueue<P> {
        CodelQueue { plan, packets: Packets::new(), law: Codel::default(), decisions: Decisions::default() }
    }
}

impl<P> Manage<P> for CodelQueue<P> {
    fn admit(&mut self, _: Time, descriptor: &mut Descriptor, _: &mut Vec<Lost<P>>) -> Result<Place, DropReason> {
        full(&self.packets, self.plan.limit, descriptor.counted_len, &mut self.decisions)?;
        Ok(Place::default())
    }

    fn leave(&mut self, now: Time, lost: &mut Vec<Lost<P>>) -> Option<Item<P>> {
        self.law.dequeue(now, &self.plan.law, &mut self.packets, &mut self.decisions, lost)
    }

    note_in_order_data!();

    fn counters(&self) -> ManagedCounters {
        self.decisions.of()
    }
}

/// A FIFO under PIE.
#[derive(Debug)]
pub(crate) struct PieQueue<P> {
    plan: PiePlan,
    packets: Packets<P>,
    law: Pie,
    decisions: Decisions,
}

impl<P> PieQueue<P> {
    pub fn new(plan: PiePlan, seed: u64, now: Time) -> PieQueue<P> {
        PieQueue { plan, packets: Packets::new(), law: Pie::new(plan, seed, now), decisions: Decisions::default() }
    }
}

impl<P> Manage<P> for PieQueue<P> {
    fn admit(&mut self, now: Time, descriptor: &mut Descriptor, _: &mut Vec<Lost<P>>) -> Result<Place, DropReason> {
        let bytes = descriptor.counted_len;
        self.law.advance(now, self.packets.bytes());
        if let Err(reason) = full(&self.packets, self.plan.limit, bytes, &mut self.decisions) {
            self.law.record_overflow();
            return Err(reason);
        }
        if self.law.drops(bytes, self.packets.bytes()) {
            let marks = self.plan.ecn && self.law.probability() <= MOST_MARKED;
            if !(marks && mark(descriptor)) {
                self.decisions.early.add(bytes);
                return Err(DropReason::Aqm);
            }
            self.decisions.marked.add(bytes);
        }
        Ok(Place::default())
    }

    fn leave(&mut self, now: Time, _: &mut Vec<Lost<P>>) -> Option<Item<P>> {
        self.law.advance(now, self.packets.bytes());
        let item = self.packets.pop()?;
        let sojourn = now.since(item.arrival);
        self.decisions.sojourn_ns = Some(sojourn.0);
        self.law.record_departure(now, sojourn, self.packets.bytes());
        Some(item)
    }

    note_in_order_data!();

    fn counters(&self) -> ManagedCounters {
        ManagedCounters {
            probability: Some(self.law.probability()),
            delay_ns: Some(self.law.delay().0),
            ..self.decisions.of()
        }
    }
}
