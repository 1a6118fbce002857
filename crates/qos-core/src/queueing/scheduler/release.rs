//! Release of packets by shapers.

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::tree::Rank;
use crate::queueing::discipline::{Inserted, Item};
use crate::queueing::scheduler::node::{LeafId, NodeId};
use crate::queueing::scheduler::Scheduler;
use crate::time::Time;
use crate::winner_tree::WinnerTree;

impl<P> Scheduler<P> {
    /// Lets nodes compete again after the waits of their shapers have ended, and moves packets to the queues behind the
    /// shapers.
    pub fn expire(&mut self, now: Time) {
        self.clock = now;
        while self.timers.least_key() <= now.0 {
            let Some(timer) = self.timers.least() else { return };
            let node = self.shaped[timer];
            self.touch(node, now);
            if let Rank::Released(queue) = self.member(node).plan.rank {
                self.release(now, node, self.joins[queue]);
            }
            self.settle(node);
        }
    }

    /// Updates the choices to `now` in which a child may use its minimum rate again.
    pub(super) fn advance_minimums(&mut self, now: Time) {
        while self.minimum_timers.least_key() <= now.0 {
            let Some(number) = self.minimum_timers.least() else { return };
            let id = self.with_minimums[number];
            let Some(minimums) = &mut self.inners[id.0].minimums else { return };
            minimums.advance(now);
            self.minimum_timers.set(number, minimums.next());
            // Another packet may be in front now.
            self.settle(NodeId::Inner(id));
        }
    }

    /// Releases the packets that a shaper has credit for. They join the queue behind the shaper; refused ones are
    /// stored for [`take_refused`](Self::take_refused).
    fn release(&mut self, now: Time, node: NodeId, queue: LeafId) {
        while let Some(bytes) = self.head(node).map(|head| head.counted_len) {
            if !self.member(node).shaper.as_ref().is_some_and(|shaper| shaper.allows(bytes)) {
                break;
            }
            let Some(item) = self.leave_queue(now, node, |item| item) else { break };
            match self.make_room(queue, &item.descriptor) {
                Ok((place, displaced)) => {
                    let Inserted { leads, displaced: own } = self.insert(queue, place, item);
                    if leads || displaced.is_some() {
                        self.settle(NodeId::Leaf(queue));
                    }
                    self.refused.extend(displaced.or(own).map(|item| (now, DropReason::Tail, *item)));
                }
                Err(_) => {
                    self.leaves[queue.0].drops.add(bytes);
                    self.refused.push((now, DropReason::Tail, item));
                }
            }
        }
    }

    /// Returns a packet that a shaper released and the next queue refused, or that active queue management dropped,
    /// with time and reason. Call it after each step that advances the time.
    pub fn take_refused(&mut self) -> Option<(Time, DropReason, Item<P>)> {
        self.refused.pop()
    }

    /// Returns whether any node has a shaper.
    #[inline]
    pub fn shapes(&self) -> bool {
        !self.shaped.is_empty()
    }

    /// Returns the time of [`next_release`](Self::next_release).
    #[inline]
    pub fn next_release_time(&self) -> Option<Time> {
        debug_assert!(self.timers.least().is_none_or(|timer| self.head(self.shaped[timer]).is_some()));
        let time = self.timers.least_key();
        (time != WinnerTree::<u64>::NONE).then_some(Time(time))
    }

    /// Returns the time and shaper of the next release. Meaningful after a `dequeue` that returned nothing.
    pub fn next_release(&self) -> Option<(Time, &Descriptor)> {
        let timer = self.timers.least()?;
        Some((Time(self.timers.key(timer)), self.head(self.shaped[timer])?))
    }
}
