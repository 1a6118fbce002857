//! First in, first out, with a limit in bytes or by a field of the packet.

use std::collections::VecDeque;

use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::queue::LimitsPlan;
use crate::queueing::discipline::{Discipline, Enqueued, Item};

/// A FIFO that takes a packet while it holds less than that packet's limit.
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
    fn enqueue(&mut self, item: Item<P>) -> Enqueued<P> {
        let held = if self.limits.in_bytes { self.bytes } else { self.items.len() as u64 };
        if held >= self.limits.of(&item.descriptor) {
            return Enqueued::Refused(item, DropReason::Tail);
        }
        self.bytes += u64::from(item.bytes());
        self.items.push_back(item);
        Enqueued::Queued
    }

    fn head(&self) -> Option<&Descriptor> {
        self.items.front().map(|item| &item.descriptor)
    }

    fn dequeue(&mut self) -> Option<Item<P>> {
        let item = self.items.pop_front()?;
        self.bytes -= u64::from(item.bytes());
        Some(item)
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.items.iter())
    }

    fn depth(&self) -> Count {
        Count { packets: self.items.len() as u64, bytes: self.bytes }
    }
}
