//! First in, first out, with tail drop.

use std::collections::VecDeque;

use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::queueing::discipline::{Discipline, Enqueued, Item};

/// A FIFO of at most `limit` packets.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    items: VecDeque<Item<P>>,
    limit: usize,
    bytes: u64,
}

impl<P> Fifo<P> {
    pub fn new(limit: u32) -> Fifo<P> {
        let limit = if mistaken!(QueueLimitHalf) { limit / 2 } else { limit };
        Fifo { items: VecDeque::new(), limit: limit as usize, bytes: 0 }
    }
}

impl<P> Discipline<P> for Fifo<P> {
    fn enqueue(&mut self, item: Item<P>) -> Enqueued<P> {
        if self.items.len() >= self.limit {
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
