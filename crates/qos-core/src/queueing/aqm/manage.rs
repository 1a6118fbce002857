//! Interface of disciplines with active queue management, and their common counters.

use crate::counters::aqm::ManagedCounters;
use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::queueing::discipline::{Item, Place};
use crate::time::Time;
use crate::wire::ip::ecn;

/// A packet that waited and is dropped.
pub(crate) type Lost<P> = (DropReason, Item<P>);

/// Bytes of a full Ethernet frame without its FCS: the kernel's `psched_mtu`.
pub(crate) const FULL_FRAME: u32 = 1_514;

/// Returns the number of bytes of a packet's memory in Linux: `struct sk_buff`, and a buffer for headroom, packet and
/// `skb_shared_info` in the sizes of `kmalloc`.
pub(crate) fn memory_of(bytes: u32) -> u64 {
    const SK_BUFF: u64 = 256;
    const AROUND_PACKET: u64 = 384;
    SK_BUFF + (u64::from(bytes) + AROUND_PACKET).next_power_of_two()
}

/// Marks a packet of an ECN-capable transport (RFC 3168, section 5). Returns whether it is one.
pub(crate) fn mark(descriptor: &mut Descriptor) -> bool {
    let capable = descriptor.ecn != ecn::NOT_ECT;
    if capable {
        descriptor.ecn = ecn::CE;
    }
    capable
}

/// Operations of a discipline under active queue management. The scheduler tracks time and depth for all of them.
pub(crate) trait Manage<P> {
    /// Decides on an arriving packet; packets removed to make room are put in `lost`.
    fn admit(&mut self, now: Time, descriptor: &mut Descriptor, lost: &mut Vec<Lost<P>>) -> Result<Place, DropReason>;
    /// Adds an admitted packet.
    fn join(&mut self, place: Place, item: Item<P>);
    /// Removes the packet that leaves at `now`; packets dropped before it are put in `lost`. Returns a packet if the
    /// queue has any.
    fn leave(&mut self, now: Time, lost: &mut Vec<Lost<P>>) -> Option<Item<P>>;
    /// Removes any packet, regardless of the management.
    fn remove(&mut self) -> Option<Item<P>>;
    /// Returns the approximate length of the packet that leaves next, in counted bytes; `None` if the queue is empty.
    fn next_bytes(&self) -> Option<u32>;
    /// Returns all waiting packets.
    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a;
    /// Returns the flow queues: with packets, and at most.
    fn flows(&self) -> Option<(u32, u32)> {
        None
    }
    /// Returns the counters of the discipline.
    fn counters(&self) -> ManagedCounters;
    /// Zeroes the counters.
    fn clear(&mut self);
}

/// Counters of every discipline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decisions {
    /// Dropped because the queue was full.
    pub overlimit: Count,
    /// Dropped by the control law.
    pub early: Count,
    /// Marked instead of dropped.
    pub marked: Count,
    /// Marked because the delay exceeded `ce_threshold`.
    pub over_threshold: Count,
    /// Wait of the packet that left last, ns.
    pub sojourn_ns: Option<u64>,
}

impl Decisions {
    pub fn of(&self) -> ManagedCounters {
        ManagedCounters {
            overlimit: self.overlimit,
            early: self.early,
            marked: self.marked,
            marked_over_threshold: self.over_threshold,
            sojourn_ns: self.sojourn_ns,
            ..ManagedCounters::default()
        }
    }

    /// Zeroes the counts.
    pub fn clear(&mut self) {
        *self = Decisions { sojourn_ns: self.sojourn_ns, ..Decisions::default() };
    }
}
