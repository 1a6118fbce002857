//! Interface of queueing disciplines: [`Discipline`], and the packets in them.

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::time::Time;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Item<P> {
    pub descriptor: Descriptor,
    pub payload: P,
    /// The class that counts it, by its number in the policy.
    pub class: Option<usize>,
    /// Arrival time at the interface.
    pub arrival: Time,
    /// Bit n set: the packet had to wait for the shaper at level n of the hierarchy.
    pub delayed: u8,
}

impl<P> Item<P> {
    pub fn bytes(&self) -> u32 {
        self.descriptor.counted_len
    }
}

/// Place of a packet in a queue, as far as the discipline distinguishes packets: the flow queue and the sequence
/// number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub flow: usize,
    pub number: u64,
}

/// Change of the queue that a packet has joined.
#[derive(Debug)]
pub(crate) struct Inserted<P> {
    /// Whether the packet leaves before the packets that were there.
    pub leads: bool,
    /// The packet that was removed for it. It is rare, and boxed so that its size is not moved.
    pub displaced: Option<Box<Item<P>>>,
}

impl<P> Inserted<P> {
    /// Result for a packet behind all others.
    pub const BEHIND: Inserted<P> = Inserted { leads: false, displaced: None };
}

/// A queueing discipline: an order and a limit. Cost per packet must not grow with the number of flows.
pub(crate) trait Discipline<P> {
    /// Returns the place of a packet, or the reason for refusing it.
    fn place(&self, descriptor: &Descriptor) -> Result<Place, DropReason>;
    /// Inserts a packet at its place.
    fn insert(&mut self, place: Place, item: Item<P>) -> Inserted<P>;
    /// Returns the description of the packet that `dequeue` would return.
    fn head(&self) -> Option<&Descriptor>;
    /// Removes the next packet and passes it to `take`, because returning it would need another copy.
    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R>;
    /// Returns all waiting packets, in no particular order.
    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a;
    /// Returns the flow queues: in use, and at most.
    fn flows(&self) -> Option<(u32, u32)> {
        None
    }
}

impl<P, D: Discipline<P>> Discipline<P> for Box<D> {
    fn place(&self, descriptor: &Descriptor) -> Result<Place, DropReason> {
        (**self).place(descriptor)
    }

    fn insert(&mut self, place: Place, item: Item<P>) -> Inserted<P> {
        (**self).insert(place, item)
    }

    fn head(&self) -> Option<&Descriptor> {
        (**self).head()
    }

    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        (**self).dequeue(take)
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        (**self).items()
    }

    fn flows(&self) -> Option<(u32, u32)> {
        (**self).flows()
    }
}

/// Returns the flow queue of a packet: `flows` is a power of two.
pub(crate) fn flow_index(key: u64, seed: u64, flows: u32) -> usize {
    (crate::frame::descriptor::mix(key ^ seed) & u64::from(flows - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows use all queues with any seed, and different queues with another seed.
    #[test]
    fn flows_are_spread_by_any_seed() {
        let places = |seed: u64| (0..200).map(|key| flow_index(key, seed, 16)).collect::<Vec<_>>();
        for seed in [0, 1, u64::MAX] {
            let mut found = places(seed);
            assert_ne!(found, places(seed ^ 0x5a5a));
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), 16, "{seed}");
        }
    }
}
