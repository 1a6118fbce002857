//! First in, first out, with a limit in bytes or by a field of the packet.

use std::collections::VecDeque;

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::queue::LimitsPlan;
use crate::queueing::discipline::{Discipline, Inserted, Item, Place};

/// A FIFO that accepts a packet while its depth is below that packet's limit.
#[derive(Debug)]
pub(crate) struct LimitedFifo<P> {
    items: VecDeque<Item<P>>,
    limits: LimitsPlan,
    bytes: u64,
}

impl<P> LimitedFifo<P> {
    pub fn new(limits: LimitsPlan) -> LimitedFifo<P> {
        LimitedFifo { items: VecDeque::new(), limits, bytes: 0 }
    }
}

impl<P> Discipline<P> for LimitedFifo<P> {
    fn place(&self, descriptor: &Descriptor) -> Result<Place, DropReason> {
        let own = if self.limits.whole { u64::from(descriptor.counted_len.saturating_sub(1)) } else { 0 };
        let held = if self.limits.in_bytes { self.bytes + own } else { self.items.len() as u64 };
        if held < self.limits.of(descriptor) {
            Ok(Place::default())
        } else {
            Err(DropReason::Tail)
        }
    }

    fn insert(&mut self, _: Place, item: Item<P>) -> Inserted<P> {
        self.bytes += u64::from(item.bytes());
        self.items.push_back(item);
        Inserted::BEHIND
    }

    fn head(&self) -> Option<&Descriptor> {
        self.items.front().map(|item| &item.descriptor)
    }

    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        let item = self.items.pop_front()?;
        self.bytes -= u64::from(item.bytes());
        Some(take(item))
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.items.iter())
    }
}
