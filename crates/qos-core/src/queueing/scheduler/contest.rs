//! Effect of a change below a node on its competition with its siblings, and so on up to the root.

use crate::frame::descriptor::Descriptor;
use crate::plan::tree::Rank;
use crate::queueing::aqm::manage::Lost;
use crate::queueing::aqm::managed::Managed;
use crate::queueing::discipline::Discipline;
use crate::queueing::scheduler::node::{Front, InnerId, LeafId, NodeId};
use crate::queueing::scheduler::Scheduler;
use crate::time::Time;
use crate::winner_tree::WinnerTree;

impl<P> Scheduler<P> {
    /// Returns the packet that a node would send.
    #[inline]
    pub(super) fn head(&self, mut node: NodeId) -> Option<&Descriptor> {
        loop {
            match node {
                NodeId::Leaf(leaf) => return self.leaves[leaf.0].queue.head(),
                NodeId::Inner(inner) => node = self.inners[inner.0].next()?,
            }
        }
    }

    /// Updates the shapers of a node and above it to `now`. Call before anything changes there.
    #[inline(always)]
    pub(super) fn touch(&mut self, from: NodeId, now: Time) {
        if self.member(from).touch_at <= now {
            self.touch_shapers(from, now);
        }
    }

    #[inline(never)]
    fn touch_shapers(&mut self, from: NodeId, now: Time) {
        let mut touch_at = Time(u64::MAX);
        let mut node = from;
        loop {
            if self.member(node).shaper.as_ref().is_some_and(|shaper| shaper.is_due(now)) {
                let head = self.head(node).map(|head| head.counted_len);
                if let Some(shaper) = &mut self.member_mut(node).shaper {
                    shaper.advance(now, head);
                }
            }
            let member = self.member(node);
            if let Some(shaper) = &member.shaper {
                touch_at = touch_at.min(shaper.next_due());
            }
            if node == NodeId::ROOT {
                break;
            }
            node = NodeId::Inner(member.parent);
        }
        match from {
            NodeId::Leaf(leaf) if self.leaves[leaf.0].managed => {}
            _ => self.member_mut(from).touch_at = touch_at,
        }
    }

    /// Updates a queue from which a packet is about to leave to `now`, with the shapers above it. Active queue
    /// management then selects the packet.
    #[inline(always)]
    pub(super) fn touch_departing(&mut self, id: LeafId, now: Time) {
        if self.leaves[id.0].member.touch_at <= now {
            self.prepare_departure(id, now);
        }
    }

    #[inline(never)]
    fn prepare_departure(&mut self, id: LeafId, now: Time) {
        self.touch_shapers(NodeId::Leaf(id), now);
        if self.leaves[id.0].managed {
            self.manage(id, now, |queue, lost| queue.stage(now, lost));
        }
    }

    /// Calls the active queue management of a queue; the packets that it drops are stored as refused.
    pub(super) fn manage<R>(
        &mut self,
        id: LeafId,
        now: Time,
        ask: impl FnOnce(&mut Managed<P>, &mut Vec<Lost<P>>) -> R,
    ) -> Option<R> {
        let mut lost = std::mem::take(&mut self.lost);
        let answer = self.leaves[id.0].queue.managed_mut().map(|queue| ask(queue, &mut lost));
        for (reason, item) in lost.drain(..) {
            self.lose(id, &item);
            self.refused.push((now, reason, item));
        }
        self.lost = lost;
        answer
    }

    /// Decides whether a node may send, and updates its parent or sets its timer.
    #[inline]
    pub(super) fn contend(&mut self, node: NodeId) {
        match node {
            NodeId::Leaf(leaf) => self.contend_leaf(leaf),
            NodeId::Inner(inner) => self.contend_inner(inner),
        }
    }

    #[inline]
    fn contend_leaf(&mut self, id: LeafId) {
        let leaf = &mut self.leaves[id.0];
        let front = leaf.queue.head().map(Front::of);
        let ready = leaf.member.may_send(front, &mut self.timers);
        let parent = &mut self.inners[leaf.member.parent.0];
        match leaf.member.plan.rank {
            Rank::Priority(level) => parent.priority_ready[level] = ready,
            Rank::Released(_) => {}
            Rank::Weight(_) | Rank::AccountedWeight(..) | Rank::Factor(_) | Rank::Strict(_) | Rank::Turn(_) => {
                if let Some(propagated) = &mut parent.propagated {
                    propagated.set(leaf.member.child, None);
                }
                let key = match front.filter(|_| ready) {
                    Some(_) if leaf.numbered && !leaf.member.only => leaf.queue.lowest().map(u128::from),
                    front => front.map(|front| leaf.member.key(parent, front)),
                };
                leaf.member.enter(parent, key, self.clock);
                if let Some(minimums) = &parent.minimums {
                    self.minimum_timers.set(minimums.number, minimums.next());
                }
            }
        }
    }

    fn contend_inner(&mut self, id: InnerId) {
        // It has no competitors and no shaper.
        if id == InnerId::ROOT {
            return;
        }
        let front = self.head(NodeId::Inner(id)).map(Front::of);
        // A parent comes before its children.
        let (above, from) = self.inners.split_at_mut(id.0);
        let this = &mut from[0];
        let ready = this.member.may_send(front, &mut self.timers);
        let Some(parent) = above.get_mut(this.member.parent.0) else { return };
        match this.member.plan.rank {
            Rank::Priority(level) => parent.priority_ready[level] = ready,
            Rank::Released(_) => {}
            Rank::Weight(_) | Rank::AccountedWeight(..) | Rank::Factor(_) | Rank::Strict(_) | Rank::Turn(_) => {
                if let Some(propagated) = &mut parent.propagated {
                    let urgent = if ready { this.urgent().map(|(level, _)| level) } else { None };
                    propagated.set(this.member.child, urgent);
                }
                let key = front.filter(|_| ready).map(|front| this.member.key(parent, front));
                this.member.enter(parent, key, self.clock);
                if let Some(minimums) = &parent.minimums {
                    self.minimum_timers.set(minimums.number, minimums.next());
                }
            }
        }
    }

    /// Updates a node and those above it after a change below it.
    pub(super) fn settle(&mut self, from: NodeId) {
        let mut node = from;
        loop {
            self.contend(node);
            if node == NodeId::ROOT {
                return;
            }
            node = NodeId::Inner(self.member(node).parent);
        }
    }

    /// Stores the state of a leaf's conversations.
    #[inline]
    pub(super) fn recount(&mut self, id: LeafId) {
        let leaf = &mut self.leaves[id.0];
        let active = leaf.conversations();
        if active != leaf.active {
            self.active = self.active + active - leaf.active;
            self.max_active = self.max_active.max(self.active);
            leaf.active = active;
        }
        if leaf.numbered && self.hold.is_some() {
            self.record_tail_drop(id);
        }
    }

    /// Stores the highest sequence number of a leaf.
    fn record_tail_drop(&mut self, id: LeafId) {
        let highest = self.leaves[id.0].queue.highest();
        let key = highest.map_or(WinnerTree::<u64>::NONE, |number| WinnerTree::<u64>::NONE - 1 - number);
        self.tails.set(id.0, key);
    }
}
