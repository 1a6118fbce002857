//! Departure of packets from the queues.

use crate::plan::tree::Rank;
use crate::queueing::discipline::{Discipline, Item};
use crate::queueing::scheduler::node::{InnerId, Leaf, LeafId, NodeId};
use crate::queueing::scheduler::Scheduler;
use crate::time::Time;

impl<P> Scheduler<P> {
    /// Removes the next packet that may leave at `now` and passes it to `take`. Returns whether there was one.
    #[inline]
    pub fn dequeue(&mut self, now: Time, take: impl FnOnce(Item<P>)) -> bool {
        if self.len() == 0 {
            return false;
        }
        self.clock = now;
        if self.timers.least_key() <= now.0 {
            self.expire(now);
        }
        if self.minimum_timers.least_key() <= now.0 {
            self.advance_minimums(now);
        }
        self.leave_queue(now, NodeId::ROOT, take).is_some()
    }

    /// Returns the queue of the packet that a node would send.
    #[inline]
    fn next(&self, mut node: NodeId) -> Option<LeafId> {
        loop {
            match node {
                NodeId::Leaf(leaf) => return Some(leaf),
                NodeId::Inner(inner) => node = self.inners[inner.0].next()?,
            }
        }
    }

    /// Removes the next packet below a node from its queue and from all nodes up to this one, the `top`, and passes it
    /// to `take`. The caller settles a `top` that is not the root.
    #[inline]
    pub(super) fn leave_queue<R>(&mut self, now: Time, top: NodeId, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        let id = self.next(top)?;
        self.touch_departing(id, now);
        let Leaf { queue, random_detect, member, numbered, flows, .. } = &mut self.leaves[id.0];
        let (bytes, delayed, taken) = queue.dequeue(|item| {
            if let Some(red) = random_detect.as_mut() {
                red.count_transmitted(&item.descriptor);
            }
            (item.bytes(), item.delayed, take(item))
        })?;
        member.count_out((bytes, delayed));
        let emptied = member.depth.packets == 0;
        if emptied {
            if let Some(red) = random_detect {
                red.record_empty(now);
            }
        }
        if let Some(shaper) = &mut member.shaper {
            shaper.take(bytes);
        }
        self.held -= u64::from(*numbered);
        let recount = emptied || *flows;
        // A queue without siblings and shaper that still has packets remains ready.
        let settled = member.only && member.shaper.is_none() && !emptied;
        let urgent = self.propagates && matches!(member.plan.rank, Rank::Priority(_));
        let mut parent = member.parent;
        if !member.only {
            member.record_served(&mut self.inners[parent.0], bytes, urgent, now);
        }
        let mut node = NodeId::Leaf(id);
        if !settled && node != top {
            self.contend(node);
        }
        while node != top && parent != InnerId::ROOT {
            node = NodeId::Inner(parent);
            self.leave(parent, (bytes, delayed), urgent, now);
            parent = self.inners[parent.0].member.parent;
            if node != top {
                self.contend(node);
            }
        }
        // Above the top only the depth changes, and the departures of the root are never read.
        self.remove(parent, bytes);
        if recount {
            self.recount(id);
        }
        Some(taken)
    }

    /// Updates a node after a packet of `bytes` from below it has left. `delayed` are the levels whose shapers it had
    /// waited for; an `urgent` packet takes nothing from the share of its class.
    #[inline]
    fn leave(&mut self, id: InnerId, (bytes, delayed): (u32, u8), urgent: bool, now: Time) {
        let member = &mut self.inners[id.0].member;
        member.count_out((bytes, delayed));
        if let Some(shaper) = &mut member.shaper {
            shaper.take(bytes);
        }
        let (above, from) = self.inners.split_at_mut(id.0);
        // There is nothing above the root.
        let this = &mut from[0].member;
        if let Some(parent) = above.get_mut(this.parent.0) {
            this.record_served(parent, bytes, urgent, now);
        }
    }
}
