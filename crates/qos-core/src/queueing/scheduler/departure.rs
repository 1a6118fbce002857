//! How packets leave the queues.

use crate::plan::tree::{Rank, ROOT};
use crate::queueing::discipline::{Discipline, Item};
use crate::queueing::scheduler::node::Body;
use crate::queueing::scheduler::Scheduler;
use crate::queueing::turns;
use crate::time::Time;

const BYTE: u128 = 1 << 60;

impl<P> Scheduler<P> {
    /// The next packet that may leave at `now`, if any.
    pub fn dequeue(&mut self, now: Time) -> Option<Item<P>> {
        if self.len() == 0 {
            return None;
        }
        if !self.shaped.is_empty() {
            self.expire(now);
        }
        self.leave_queue(now, ROOT)
    }

    /// The next packet below a node leaves its queue, and all nodes from there up to this one. In line: else the packet
    /// is copied once more.
    #[inline(always)]
    pub(super) fn leave_queue(&mut self, now: Time, top: usize) -> Option<Item<P>> {
        let mut leaf = top;
        while let Body::Inner(inner) = &self.nodes[leaf].body {
            leaf = inner.next()?;
        }
        self.touch(leaf, now);
        let before = self.nodes[leaf].active();
        let item = self.queue(leaf).dequeue()?;
        let bytes = item.bytes();
        self.uncount(leaf, bytes);
        self.recount(leaf, before);
        let depth = self.nodes[leaf].depth.packets;
        if let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body {
            red.transmitted(&item.descriptor);
            if depth == 0 {
                red.emptied(now);
            }
        }
        let urgent = self.propagates && matches!(self.nodes[leaf].plan.rank, Rank::Priority(_));
        let mut at = Some(leaf);
        while let Some(node) = at {
            self.leave(node, &item, urgent);
            at = self.parent(node).filter(|_| node != top);
        }
        Some(item)
    }

    /// A packet that waited below a node leaves it; an `urgent` one takes nothing of what its class shares with others.
    #[inline(always)]
    pub(super) fn leave(&mut self, node: usize, item: &Item<P>, urgent: bool) {
        let bytes = item.bytes();
        let emptied = self.nodes[node].shaper.is_some() && self.head(node).is_none();
        let this = &mut self.nodes[node];
        this.output.add(bytes);
        if item.delayed & (1 << this.level) != 0 {
            this.delayed.add(bytes);
        }
        if let Some(shaper) = &mut this.shaper {
            shaper.take(bytes, emptied);
        }
        if node == ROOT {
            return;
        }
        let (parent, child) = (this.plan.parent, this.child);
        if urgent {
            // It goes behind its siblings with priority.
            if let Some(propagated) = &mut self.inner(parent).propagated {
                propagated.set(child, None);
            }
        } else if let Some(key) = this.key.take() {
            this.finish = match this.plan.rank {
                Rank::Weight(weight) => key + u128::from(bytes) * (BYTE / u128::from(weight)),
                Rank::AccountedWeight(weight, account) => {
                    key + u128::from(account.length(bytes)) * (BYTE / u128::from(weight))
                }
                Rank::Factor(_) | Rank::Priority(_) | Rank::Released(_) => key,
                Rank::Turn(turn) => {
                    let (next, used) = turns::after(turn, key, this.used, bytes, this.depth.packets == 0);
                    this.used = used;
                    next
                }
                Rank::Strict(_) => 0,
            };
            // A queue that is served ahead of the others takes nobody's turn.
            if !matches!(this.plan.rank, Rank::Strict(_)) {
                self.inner(parent).virtual_time = key;
            }
        }
        self.contend(node);
    }
}
