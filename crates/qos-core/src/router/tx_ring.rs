//! The transmit ring: packets that the hardware holds in addition to the one on the wire. Their order is settled.

use std::collections::VecDeque;

use crate::config::defaults::ATM_PARTICLE;
use crate::plan::port::RingPlan;
use crate::queueing::discipline::Item;
use crate::time::Time;
use crate::wire::framing::ATM_CORE_HEADER;

/// A ring with a limit of packets, or of the particles that hold them: a packet is accepted while less than the limit
/// is in use.
#[derive(Debug)]
pub(crate) struct TxRing<P> {
    entries: VecDeque<(Time, Item<P>)>,
    plan: RingPlan,
    /// Packets, or particles.
    used: u32,
}

impl<P> TxRing<P> {
    pub fn new(plan: RingPlan) -> TxRing<P> {
        TxRing { entries: VecDeque::new(), plan, used: 0 }
    }

    /// Sets the limit. A ring that exceeds a new limit drains by itself.
    pub fn set_limit(&mut self, plan: RingPlan) {
        self.plan = plan;
        self.used = self.entries.iter().map(|(_, item)| room(plan, item)).sum();
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        let limit = match self.plan.limit {
            limit if mistaken!(RingLonger) => limit + 1,
            limit if limit > 1 && mistaken!(RingShorter) => limit - 1,
            limit => limit,
        };
        self.used < limit
    }

    #[inline]
    pub fn push(&mut self, now: Time, item: Item<P>) {
        self.used += room(self.plan, &item);
        self.entries.push_back((now, item));
    }

    /// Returns the first packet and the time at which it entered the ring.
    #[inline]
    pub fn head(&self) -> Option<(Time, &Item<P>)> {
        self.entries.front().map(|(entered, item)| (*entered, item))
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Item<P>> {
        let (_, item) = self.entries.pop_front()?;
        self.used -= room(self.plan, &item);
        Some(item)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Item<P>> {
        self.entries.iter().map(|(_, item)| item)
    }

    /// Removes the classes of the packets after their policy was removed.
    pub fn forget_classes(&mut self) {
        self.entries.iter_mut().for_each(|(_, item)| item.class = None);
    }

    /// Returns the used part of the limit.
    pub fn used(&self) -> u32 {
        self.used
    }
}

/// Returns the part of the ring's limit that a packet takes.
#[inline]
fn room<P>(plan: RingPlan, item: &Item<P>) -> u32 {
    if plan.particles {
        (item.bytes() - ATM_CORE_HEADER).div_ceil(ATM_PARTICLE)
    } else {
        1
    }
}
