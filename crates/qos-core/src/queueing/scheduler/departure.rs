//! How packets leave the queues.

use crate::plan::tree::{Rank, ROOT};
use crate::queueing::discipline::{Discipline, Item};
use crate::queueing::scheduler::node::Body;
use crate::queueing::scheduler::Scheduler;
use crate::queueing::turns;
use crate::time::Time;

const BYTE: u64 = 1 << 60;

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

    /// The next packet below a node leaves its queue, and all nodes from there up to this one, the `top`. One that is
    /// not the root is settled by the caller. In line: else the packet is copied once more.
    #[inline(always)]
    pub(super) fn leave_queue(&mut self, now: Time, top: usize) -> Option<Item<P>> {
        let mut leaf = top;
        while let Body::Inner(inner) = &self.nodes[leaf].body {
            leaf = inner.next()?;
        }
        self.touch(leaf, now);
        let this = &mut self.nodes[leaf];
        let Body::Leaf { queue, random_detect } = &mut this.body else { return None };
        let item = queue.dequeue()?;
        if let Some(red) = random_detect {
            red.transmitted(&item.descriptor);
            if this.depth.packets == 1 {
                red.emptied(now);
            }
        }
        self.held -= u64::from(this.numbered);
        let urgent = self.propagates && matches!(this.plan.rank, Rank::Priority(_));
        let (bytes, delayed) = (item.bytes(), item.delayed);
        let mut node = leaf;
        while node != top {
            self.leave(node, (bytes, delayed), urgent);
            self.contend(node);
            node = self.nodes[node].plan.parent;
        }
        self.leave(top, (bytes, delayed), urgent);
        while node != ROOT {
            node = self.nodes[node].plan.parent;
            self.nodes[node].depth.remove(bytes);
        }
        self.recount(leaf);
        Some(item)
    }

    /// A packet of so many bytes that waited below a node leaves it, and had waited for the shapers at some levels; an
    /// `urgent` one takes nothing of what its class shares with others.
    #[inline(always)]
    fn leave(&mut self, node: usize, (bytes, delayed): (u32, u8), urgent: bool) {
        let this = &mut self.nodes[node];
        this.depth.remove(bytes);
        this.output.add(bytes);
        if delayed & (1 << this.level) != 0 {
            this.delayed.add(bytes);
        }
        if this.shaper.is_some() {
            let waits = matches!(this.body, Body::Inner(_)) && self.head(node).is_none();
            let emptied = self.nodes[node].depth.packets == 0 || waits;
            if let Some(shaper) = &mut self.nodes[node].shaper {
                shaper.take(bytes, emptied);
            }
        }
        if node == ROOT {
            return;
        }
        let (above, from) = self.nodes.split_at_mut(node);
        let this = &mut from[0];
        let Body::Inner(parent) = &mut above[this.plan.parent].body else {
            unreachable!("a parent is an inner node");
        };
        if urgent {
            // It goes behind its siblings with priority.
            if let Some(propagated) = &mut parent.propagated {
                propagated.set(this.child, None);
            }
        } else if let Some(key) = this.key.take() {
            this.finish = match this.plan.rank {
                Rank::Weight(weight) => key + u128::from(bytes) * u128::from(BYTE / weight),
                Rank::AccountedWeight(weight, account) => {
                    key + u128::from(account.length(bytes)) * u128::from(BYTE / weight)
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
                parent.virtual_time = key;
            }
        }
    }
}
