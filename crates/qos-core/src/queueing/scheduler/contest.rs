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
    #[inline(always)]
    pub(super) fn touch(&mut self, from: usize, now: Time) {
        if self.nodes[from].shaped && self.touched != (from, now) {
            self.touch_shapers(from, now);
        }
    }

    #[inline(never)]
    fn touch_shapers(&mut self, from: usize, now: Time) {
        self.touched = (from, now);
        let mut node = from;
        loop {
            let this = &self.nodes[node];
            let parent = this.plan.parent;
            if this.shaper.as_ref().is_some_and(|shaper| shaper.due(now)) {
                let head = self.head(node).map(|head| head.counted_len);
                if let Some(shaper) = &mut self.nodes[node].shaper {
                    shaper.advance(now, head);
                }
            }
            if node == ROOT {
                return;
            }
            node = parent;
        }
    }

    /// Sets the timer of a node's shaper, in front of which there is a `head` of so many bytes; whether that may go.
    fn shape(&mut self, node: usize, head: Option<u32>) -> bool {
        let this = &self.nodes[node];
        let Some(shaper) = &this.shaper else { return head.is_some() };
        let release = head.and_then(|bytes| shaper.release(bytes));
        let ready = head.is_some() && release.is_none();
        // What may go now to a queue behind the shaper does so at once: `expire`.
        let now = (ready && matches!(this.plan.rank, Rank::Released(_))).then_some(Time(0));
        let timer = release.or(now).map_or(WinnerTree::<u64>::NONE, |time| time.0.min(u64::MAX - 1));
        self.timers.set(this.timer, timer);
        ready
    }

    /// Decides whether a node may send, and tells its parent or sets its timer.
    pub(super) fn contend(&mut self, node: usize) {
        let shaped = self.nodes[node].shaper.is_some();
        if node == ROOT && !shaped {
            return;
        }
        let head = self.head(node).map(|head| (head.counted_len, head.precedence()));
        let ready = if shaped { self.shape(node, head.map(|(bytes, _)| bytes)) } else { head.is_some() };
        if node == ROOT {
            return;
        }
        let rank = self.nodes[node].plan.rank;
        match rank {
            Rank::Priority(level) => {
                let parent = self.nodes[node].plan.parent;
                self.inner(parent).priority_ready[level] = ready;
                return;
            }
            Rank::Released(_) => return,
            Rank::Weight(_) | Rank::AccountedWeight(..) | Rank::Factor(_) | Rank::Strict(_) | Rank::Turn(_) => {}
        }
        if self.propagates {
            self.propagate(node, ready);
        }
        // A parent comes before its children.
        let (above, from) = self.nodes.split_at_mut(node);
        let this = &mut from[0];
        let Body::Inner(parent) = &mut above[this.plan.parent].body else {
            unreachable!("a parent is an inner node");
        };
        let key = match head.filter(|_| ready) {
            None => None,
            Some(_) if this.numbered => match &this.body {
                Body::Leaf { queue, .. } => queue.lowest().map(u128::from),
                Body::Inner(_) => None,
            },
            Some((bytes, precedence)) => Some(match (this.key, rank) {
                (Some(key), _) => key,
                (None, Rank::Factor(factor)) => {
                    let factor = factor.unwrap_or_else(|| weighted_fair::weight(precedence));
                    this.finish.max(parent.virtual_time) + u128::from(bytes) * u128::from(factor)
                }
                (None, Rank::Strict(number)) => turns::strict(number),
                (None, Rank::Turn(turn)) => turns::joins(turn, parent.virtual_time, this.finish),
                (None, _) => this.finish.max(parent.virtual_time),
            }),
        };
        this.key = key;
        parent.contest.set(this.child, key.unwrap_or(WinnerTree::<u128>::NONE));
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
        let mut node = from;
        loop {
            self.contend(node);
            if node == ROOT {
                return;
            }
            node = self.nodes[node].plan.parent;
        }
    }

    /// Keeps what is known of a leaf's conversations.
    pub(super) fn recount(&mut self, leaf: usize) {
        let node = &mut self.nodes[leaf];
        let active = node.conversations();
        if active != node.active {
            self.active = self.active + active - node.active;
            self.max_active = self.max_active.max(self.active);
            node.active = active;
        }
        if node.numbered && self.hold.is_some() {
            let highest = node.queue().and_then(Queue::highest);
            let key = highest.map_or(WinnerTree::<u64>::NONE, |number| WinnerTree::<u64>::NONE - 1 - number);
            self.tails.set(leaf, key);
        }
    }
}
