//! What a change below a node means for its contest with its siblings, and so on up to the root.

use crate::plan::tree::{Rank, ROOT};
use crate::queueing::queue::Queue;
use crate::queueing::scheduler::node::Body;
use crate::queueing::scheduler::Scheduler;
use crate::queueing::winner_tree::WinnerTree;
use crate::queueing::{turns, weighted_fair};
use crate::time::Time;

impl<P> Scheduler<P> {
    /// Brings the shapers of a node and above it up to `now`. Call before anything changes there.
    pub(super) fn touch(&mut self, from: usize, now: Time) {
        if self.shaped.is_empty() {
            return;
        }
        let mut at = Some(from);
        while let Some(node) = at {
            if self.nodes[node].shaper.is_some() {
                let head = self.head(node).map(|head| head.counted_len);
                if let Some(shaper) = &mut self.nodes[node].shaper {
                    shaper.advance(now, head);
                }
            }
            at = self.parent(node);
        }
    }

    /// Decides whether a node may send, and tells its parent or sets its timer.
    pub(super) fn contend(&mut self, node: usize) {
        if node == ROOT && self.nodes[ROOT].shaper.is_none() {
            return;
        }
        let head = self.head(node).map(|head| (head.counted_len, weighted_fair::weight(head)));
        let this = &self.nodes[node];
        let mut ready = head;
        if let (Some((bytes, _)), Some(shaper)) = (head, &this.shaper) {
            let release = shaper.release(bytes);
            let timer = this.timer;
            if release.is_some() {
                ready = None;
            }
            // What may go now to a queue behind the shaper does so at once: `expire`.
            let now = matches!(this.plan.rank, Rank::Released(_)).then_some(Time(0));
            let release = release.or(now);
            self.timers.set(timer, release.map_or(WinnerTree::<u64>::NONE, |time| time.0.min(u64::MAX - 1)));
        } else if this.shaper.is_some() {
            let timer = this.timer;
            self.timers.set(timer, WinnerTree::<u64>::NONE);
        }
        if node == ROOT {
            return;
        }
        let this = &self.nodes[node];
        let (parent, child) = (this.plan.parent, this.child);
        match this.plan.rank {
            Rank::Priority(level) => {
                self.inner(parent).priority_ready[level] = ready.is_some();
                return;
            }
            Rank::Released(_) => return,
            Rank::Weight(_) | Rank::AccountedWeight(..) | Rank::Factor(_) | Rank::Strict(_) | Rank::Turn(_) => {}
        }
        if self.propagates {
            self.propagate(node, ready.is_some());
        }
        let this = &self.nodes[node];
        let key = match ready {
            None => None,
            Some(_) if this.numbered => match &this.body {
                Body::Leaf { queue, .. } => queue.lowest().map(u128::from),
                Body::Inner(_) => None,
            },
            Some((bytes, by_precedence)) => Some(match (this.key, this.plan.rank) {
                (Some(key), _) => key,
                (None, Rank::Factor(factor)) => {
                    let (finish, factor) = (this.finish, factor.unwrap_or(by_precedence));
                    finish.max(self.inner(parent).virtual_time) + u128::from(bytes) * u128::from(factor)
                }
                (None, Rank::Strict(number)) => turns::strict(number),
                (None, Rank::Turn(turn)) => turns::joins(turn, self.virtual_time(parent), this.finish),
                (None, _) => this.finish.max(self.virtual_time(parent)),
            }),
        };
        self.nodes[node].key = key;
        self.inner(parent).contest.set(child, key.unwrap_or(WinnerTree::<u128>::NONE));
    }

    /// Tells the parent of the priority that a node's next packet has, if it may send.
    pub(super) fn propagate(&mut self, node: usize, ready: bool) {
        let this = &self.nodes[node];
        let (parent, child) = (this.plan.parent, this.child);
        let urgent = match &this.body {
            Body::Inner(inner) if ready => inner.urgent().map(|(level, _)| level),
            _ => None,
        };
        if let Some(propagated) = &mut self.inner(parent).propagated {
            propagated.set(child, urgent);
        }
    }

    /// Brings a node and those above it up to date with a change below it.
    pub(super) fn settle(&mut self, from: usize) {
        let mut at = Some(from);
        while let Some(node) = at {
            self.contend(node);
            at = self.parent(node);
        }
    }

    /// Keeps what is known of a leaf's conversations; `before` of them had packets.
    pub(super) fn recount(&mut self, leaf: usize, before: u32) {
        let node = &self.nodes[leaf];
        self.active = self.active + node.active() - before;
        self.max_active = self.max_active.max(self.active);
        if node.numbered && self.hold.is_some() {
            let highest = node.queue().and_then(Queue::highest);
            let key = highest.map_or(WinnerTree::<u64>::NONE, |number| WinnerTree::<u64>::NONE - 1 - number);
            self.tails.set(leaf, key);
        }
    }
}
