//! How packets join the queues, and which go to make room.

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::tree::ROOT;
use crate::queueing::discipline::{Discipline, Enqueued, Item};
use crate::queueing::queue::Queue;
use crate::queueing::scheduler::node::Body;
use crate::queueing::scheduler::Scheduler;
use crate::queueing::weighted_fair::Place;
use crate::time::Time;

impl<P> Scheduler<P> {
    /// Whether a packet of `bytes` could leave a queue at `now` if the ring had room: no shaper holds it.
    pub fn passes(&mut self, now: Time, leaf: usize, bytes: u32) -> bool {
        if !self.nodes[leaf].shaped {
            return true;
        }
        self.touch(leaf, now);
        self.line(leaf).all(|node| self.nodes[node].shaper.as_ref().is_none_or(|shaper| shaper.allows(bytes)))
    }

    /// What random early detection says of a packet; none where it may join. A packet that goes `straight` to the
    /// transmit ring never meets the software queue of the classic generation, nor its early detection; the later
    /// generation asks early detection before anything else.
    pub(super) fn detect(
        &mut self,
        now: Time,
        leaf: usize,
        descriptor: &mut Descriptor,
        straight: bool,
    ) -> Option<DropReason> {
        let depth = self.nodes[leaf].depth;
        let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body else { return None };
        if depth.packets == 0 {
            red.age(now);
        }
        if straight && self.classic {
            return None;
        }
        red.arrive(depth, descriptor)
    }

    /// A packet joins a queue; `straight`: it does so only to go on to the transmit ring at once.
    pub fn enqueue(&mut self, now: Time, leaf: usize, mut item: Item<P>, straight: bool) -> Enqueued<P> {
        self.touch(leaf, now);
        let bytes = item.bytes();
        if let Some(reason) = self.detect(now, leaf, &mut item.descriptor, straight) {
            self.nodes[leaf].drops.add(bytes);
            return Enqueued::Refused(item, reason);
        }
        // A shaper with packets waiting is active, and every packet waits.
        if self.nodes[leaf].shaped {
            for node in self.line(leaf) {
                let node = &self.nodes[node];
                if node.shaper.as_ref().is_some_and(|shaper| node.depth.packets > 0 || !shaper.allows(bytes)) {
                    item.delayed |= 1 << node.level;
                }
            }
        }
        // Spelt out, since a packet that is handed from function to function is copied each time.
        let node = &mut self.nodes[leaf];
        let numbered = node.numbered;
        let first = node.depth.packets == 0;
        let leads;
        let enqueued = if numbered {
            match self.make_room(leaf, &item.descriptor) {
                Err(reason) => return self.refused(leaf, item, reason),
                Ok((place, displaced)) => {
                    let queue = self.weighted(leaf);
                    queue.insert(place, item);
                    leads = queue.leads() || displaced.is_some();
                    displaced.map_or(Enqueued::Queued, |other| Enqueued::Displaced(other, DropReason::Tail))
                }
            }
        } else {
            let Body::Leaf { queue, .. } = &mut node.body else { unreachable!("packets join leaves") };
            match queue.enqueue(item) {
                Enqueued::Refused(item, reason) => return self.refused(leaf, item, reason),
                Enqueued::Queued => {
                    leads = queue.leads();
                    Enqueued::Queued
                }
                Enqueued::Displaced(other, reason) => {
                    leads = true;
                    self.lose(leaf, &other);
                    Enqueued::Displaced(other, reason)
                }
            }
        };
        self.joined(leaf, bytes);
        // Behind others it changes nothing for those above.
        if first || leads {
            self.settle(leaf);
        }
        if self.releases_apart() {
            self.expire(now);
        }
        enqueued
    }

    /// Counts a packet that has joined a queue.
    pub(super) fn joined(&mut self, leaf: usize, bytes: u32) {
        let mut at = leaf;
        loop {
            let node = &mut self.nodes[at];
            node.depth.add(bytes);
            if at == ROOT {
                break;
            }
            at = node.plan.parent;
        }
        self.held += u64::from(self.nodes[leaf].numbered);
        self.recount(leaf);
    }

    pub(super) fn refused(&mut self, leaf: usize, item: Item<P>, reason: DropReason) -> Enqueued<P> {
        self.nodes[leaf].drops.add(item.bytes());
        if let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body {
            red.overflowed(&item.descriptor);
        }
        Enqueued::Refused(item, reason)
    }

    /// Asks the congestive discard where the last packet served in the space of numbers is told. Where the hold-queue
    /// is full: removes the packet with the highest sequence number of all, unless it is the new one.
    pub(super) fn make_room(
        &mut self,
        leaf: usize,
        descriptor: &Descriptor,
    ) -> Result<(Place, Option<Item<P>>), DropReason> {
        let served = self.virtual_time(self.nodes[leaf].plan.parent) as u64;
        let queue = self.weighted(leaf);
        queue.set_served(served);
        let place = queue.place(descriptor)?;
        if self.hold.is_none_or(|hold| self.held < hold) {
            return Ok((place, None));
        }
        self.make_room_in_hold(leaf, descriptor, place)
    }

    #[cold]
    fn make_room_in_hold(
        &mut self,
        leaf: usize,
        descriptor: &Descriptor,
        mut place: Place,
    ) -> Result<(Place, Option<Item<P>>), DropReason> {
        let Some(last) = self.tails.least() else { return Err(DropReason::Tail) };
        if self.nodes[last].queue().and_then(Queue::highest) <= Some(place.number) {
            return Err(DropReason::Tail);
        }
        let Some(other) = self.queue(last).discard() else { return Err(DropReason::Tail) };
        self.lose(last, &other);
        if last == leaf {
            // It may have been of the same conversation.
            place = self.weighted(leaf).next(descriptor);
        } else {
            self.recount(last);
            self.settle(last);
        }
        Ok((place, Some(other)))
    }

    /// A packet that waited in a queue was removed to make room.
    pub(super) fn lose(&mut self, leaf: usize, item: &Item<P>) {
        self.nodes[leaf].drops.add(item.bytes());
        if let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body {
            red.overflowed(&item.descriptor);
        }
        self.uncount(leaf, item.bytes());
    }

    pub(super) fn uncount(&mut self, leaf: usize, bytes: u32) {
        self.held -= u64::from(self.nodes[leaf].numbered);
        let mut at = Some(leaf);
        while let Some(node) = at {
            let depth = &mut self.nodes[node].depth;
            depth.packets -= 1;
            depth.bytes -= u64::from(bytes);
            at = self.parent(node);
        }
    }
}
