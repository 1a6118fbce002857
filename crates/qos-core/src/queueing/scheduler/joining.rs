//! Admission of packets to the queues, and removal of others to make room.

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::queueing::discipline::{Discipline, Inserted, Item, Place};
use crate::queueing::scheduler::node::{InnerId, LeafId, Member, NodeId};
use crate::queueing::scheduler::Scheduler;
use crate::time::Time;

/// The room that a packet was given in a queue.
#[derive(Debug)]
pub(crate) struct Room<P> {
    leaf: LeafId,
    place: Place,
    /// Bit n set: the packet has to wait for the shaper at level n of the hierarchy; the packet records this.
    pub delayed: u8,
    /// Packet that was dropped to make room for it.
    displaced: Option<Box<Item<P>>>,
}

/// Place of a packet, and the packets lost for it.
type MadeRoom<P> = (Place, Option<Box<Item<P>>>);

impl<P> Scheduler<P> {
    /// Returns whether a packet of `bytes` could leave the queue of a node at `now` if the ring had room: no shaper
    /// delays it or another packet, which would leave first or need the credit.
    #[inline]
    pub fn passes(&mut self, now: Time, node: usize, bytes: u32) -> bool {
        let leaf = self.joins[node];
        if !self.leaves[leaf.0].member.shaped {
            return true;
        }
        self.touch(NodeId::Leaf(leaf), now);
        let mut nodes = self.line(NodeId::Leaf(leaf));
        nodes.all(|node| {
            let Some(shaper) = &self.member(node).shaper else { return true };
            shaper.allows(bytes) && self.head(node).is_none()
        })
    }

    /// Decides by random early detection whether a packet may join. A packet that goes `straight` to the transmit ring
    /// never enters the software queue of the classic generation, nor its early detection; the later generation
    /// consults early detection first.
    fn detect(&mut self, now: Time, id: LeafId, descriptor: &mut Descriptor, straight: bool) -> Result<(), DropReason> {
        let leaf = &mut self.leaves[id.0];
        let depth = leaf.member.depth;
        let Some(red) = &mut leaf.random_detect else { return Ok(()) };
        if depth.packets == 0 {
            red.age(now);
        }
        let early = if straight && self.classic { None } else { red.arrive(depth, descriptor) };
        if early.is_some() {
            leaf.drops.add(descriptor.counted_len);
        }
        early.map_or(Ok(()), Err)
    }

    /// Finds room for a packet in the queue of a node, or returns the drop reason; `straight`: the packet goes on to
    /// the transmit ring at once. [`join`](Self::join) must then use the room.
    #[inline]
    pub fn admit(
        &mut self,
        now: Time,
        node: usize,
        descriptor: &mut Descriptor,
        straight: bool,
    ) -> Result<Room<P>, DropReason> {
        let id = self.joins[node];
        let leaf = &mut self.leaves[id.0];
        if !leaf.plain {
            return self.admit_by_all(now, id, descriptor, straight);
        }
        match leaf.queue.place(descriptor) {
            Ok(place) => Ok(Room { leaf: id, place, delayed: 0, displaced: None }),
            Err(reason) => {
                leaf.drops.add(descriptor.counted_len);
                Err(reason)
            }
        }
    }

    /// Finds room like [`admit`](Self::admit), for a queue with more than its discipline.
    fn admit_by_all(
        &mut self,
        now: Time,
        id: LeafId,
        descriptor: &mut Descriptor,
        straight: bool,
    ) -> Result<Room<P>, DropReason> {
        self.touch(NodeId::Leaf(id), now);
        if self.leaves[id.0].managed {
            return self.admit_managed(now, id, descriptor);
        }
        self.detect(now, id, descriptor, straight)?;
        let leaf = &self.leaves[id.0];
        let delayed = if leaf.member.shaped { self.delayed(id, descriptor.counted_len) } else { 0 };
        let room = match leaf.numbered {
            true => self.make_room(id, descriptor),
            false => leaf.queue.place(descriptor).map(|place| (place, None)),
        };
        match room {
            Ok((place, displaced)) => Ok(Room { leaf: id, place, delayed, displaced }),
            Err(reason) => {
                self.leaves[id.0].refuse(descriptor);
                Err(reason)
            }
        }
    }

    /// Finds room like [`admit`](Self::admit), for a queue with active queue management, which may drop other packets.
    fn admit_managed(&mut self, now: Time, id: LeafId, descriptor: &mut Descriptor) -> Result<Room<P>, DropReason> {
        let leaf = &self.leaves[id.0];
        let delayed = if leaf.member.shaped { self.delayed(id, descriptor.counted_len) } else { 0 };
        let waited = leaf.member.depth.packets;
        let place = self.manage(id, now, |queue, lost| queue.admit(now, descriptor, lost));
        if self.leaves[id.0].member.depth.packets != waited {
            self.recount(id);
            self.settle(NodeId::Leaf(id));
        }
        match place.unwrap_or(Err(DropReason::Tail)) {
            Ok(place) => Ok(Room { leaf: id, place, delayed, displaced: None }),
            Err(reason) => {
                self.leaves[id.0].refuse(descriptor);
                Err(reason)
            }
        }
    }

    /// Returns the shapers for which a packet has to wait, by level. Every packet waits for a shaper that delays
    /// others.
    fn delayed(&self, id: LeafId, bytes: u32) -> u8 {
        let waits = |member: &Member| {
            let shaper = member.shaper.as_ref();
            match shaper.is_some_and(|shaper| member.depth.packets > 0 || !shaper.allows(bytes)) {
                true => 1 << member.level,
                false => 0,
            }
        };
        let mut member = &self.leaves[id.0].member;
        let mut levels = waits(member);
        // The root's level is 0, and its parent is itself. Not an iterator, because this runs for each packet.
        while member.level > 0 {
            member = &self.inners[member.parent.0].member;
            levels |= waits(member);
        }
        levels
    }

    /// Adds a packet to the room that it was given. Returns the packet dropped for it.
    #[inline]
    pub fn join(&mut self, now: Time, room: Room<P>, item: Item<P>) -> Option<Box<Item<P>>> {
        let Room { leaf: id, place, displaced, .. } = room;
        self.clock = now;
        let Inserted { leads, displaced: own } = self.insert(id, place, item);
        // Behind other packets it changes nothing for the nodes above.
        if leads || displaced.is_some() {
            self.settle(NodeId::Leaf(id));
        }
        if self.releases_apart() {
            self.expire(now);
        }
        displaced.or(own)
    }

    /// Inserts a packet into a queue and counts it. In an empty queue it leaves next.
    #[inline]
    pub(super) fn insert(&mut self, id: LeafId, place: Place, item: Item<P>) -> Inserted<P> {
        let bytes = item.bytes();
        let leaf = &mut self.leaves[id.0];
        let first = leaf.member.depth.packets == 0;
        let recount = first || leaf.flows;
        let Inserted { leads, displaced } = leaf.queue.insert(place, item);
        leaf.member.depth.add(bytes);
        self.held += u64::from(leaf.numbered);
        let mut at = leaf.member.parent;
        loop {
            let inner = &mut self.inners[at.0].member;
            inner.depth.add(bytes);
            if at == inner.parent {
                break;
            }
            at = inner.parent;
        }
        if let Some(other) = &displaced {
            self.lose(id, other);
        }
        if recount {
            self.recount(id);
        }
        Inserted { leads: first || leads || displaced.is_some(), displaced }
    }

    /// Applies the congestive discard with the sequence number of the last served packet. If the hold-queue is full,
    /// removes the packet with the highest sequence number, unless it is the new one.
    pub(super) fn make_room(&mut self, id: LeafId, descriptor: &Descriptor) -> Result<MadeRoom<P>, DropReason> {
        let leaf = &mut self.leaves[id.0];
        // A queue that is alone in the sequence space knows its last served packet.
        if !leaf.member.only {
            leaf.queue.set_served(self.inners[leaf.member.parent.0].virtual_time as u64);
        }
        let place = leaf.queue.place(descriptor)?;
        if self.hold.is_none_or(|hold| self.held < hold) {
            return Ok((place, None));
        }
        self.make_room_in_hold(id, descriptor, place)
    }

    #[cold]
    fn make_room_in_hold(
        &mut self,
        id: LeafId,
        descriptor: &Descriptor,
        mut place: Place,
    ) -> Result<MadeRoom<P>, DropReason> {
        let Some(last) = self.tails.least().map(LeafId) else { return Err(DropReason::Tail) };
        let queue = &mut self.leaves[last.0].queue;
        if queue.highest() <= Some(place.number) {
            return Err(DropReason::Tail);
        }
        let Some(other) = queue.discard() else { return Err(DropReason::Tail) };
        self.lose(last, &other);
        if last == id {
            // It may belong to the same conversation.
            place = self.leaves[id.0].queue.next(descriptor);
        } else {
            self.recount(last);
            self.settle(NodeId::Leaf(last));
        }
        Ok((place, Some(Box::new(other))))
    }

    /// Counts a waiting packet that was removed to make room.
    pub(super) fn lose(&mut self, id: LeafId, item: &Item<P>) {
        let leaf = &mut self.leaves[id.0];
        leaf.drops.add(item.bytes());
        if let Some(red) = &mut leaf.random_detect {
            red.record_overflow(&item.descriptor);
        }
        self.uncount(id, item.bytes());
    }

    pub(super) fn uncount(&mut self, id: LeafId, bytes: u32) {
        let leaf = &mut self.leaves[id.0];
        self.held -= u64::from(leaf.numbered);
        leaf.member.depth.remove(bytes);
        let parent = leaf.member.parent;
        self.remove(parent, bytes);
    }

    /// Subtracts a packet that is no longer below a node.
    #[inline]
    pub(super) fn remove(&mut self, mut at: InnerId, bytes: u32) {
        loop {
            let inner = &mut self.inners[at.0].member;
            inner.depth.remove(bytes);
            if at == inner.parent {
                break;
            }
            at = inner.parent;
        }
    }
}
