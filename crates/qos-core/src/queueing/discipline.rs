//! The seam of queueing disciplines: [`Discipline`], and the packets that they hold.

use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::time::Time;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Item<P> {
    pub descriptor: Descriptor,
    pub payload: P,
    /// The class that it counts for, by its number in the policy.
    pub class: Option<usize>,
    /// When it came to the interface.
    pub arrival: Time,
    /// Bit n set: it had to wait for the shaper at level n of the hierarchy.
    pub delayed: u8,
}

impl<P> Item<P> {
    pub fn bytes(&self) -> u32 {
        self.descriptor.counted_len
    }
}

/// What became of a packet that was given to a queue.
#[derive(Debug)]
pub(crate) enum Enqueued<P> {
    /// It waits.
    Queued,
    /// It was not taken.
    Refused(Item<P>, DropReason),
    /// It waits, and another one was removed.
    Displaced(Item<P>, DropReason),
}

/// A queueing discipline: an order and a limit. Cost per packet must not grow with the number of flows.
pub(crate) trait Discipline<P> {
    /// Takes a packet or not.
    fn enqueue(&mut self, item: Item<P>) -> Enqueued<P>;
    /// Counted bytes of the packet that `dequeue` would give.
    fn head(&self) -> Option<&Descriptor>;
    /// Removes the next packet.
    fn dequeue(&mut self) -> Option<Item<P>>;
    /// Packets and counted bytes that wait.
    fn depth(&self) -> Count;
    /// Everything that waits, in no particular order.
    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a;
    /// Flow queues: in use, and at most.
    fn flows(&self) -> Option<(u32, u32)> {
        None
    }
}

/// The flow queue of a packet: `flows` is a power of two.
pub(crate) fn flow_index(key: u64, seed: u64, flows: u32) -> usize {
    (crate::frame::descriptor::mix(key ^ seed) & u64::from(flows - 1)) as usize
}
