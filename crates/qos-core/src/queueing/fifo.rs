//! First in, first out, with tail drop.

use std::collections::VecDeque;

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::queueing::discipline::{Discipline, Inserted, Item, Place};

/// A FIFO of at most `limit` packets.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    items: VecDeque<Item<P>>,
    limit: usize,
}

impl<P> Fifo<P> {
    pub fn new(limit: u32) -> Fifo<P> {
        let limit = if mistaken!(QueueLimitHalf) { limit / 2 } else { limit };
        Fifo { items: VecDeque::new(), limit: limit as usize }
    }
}

impl<P> Discipline<P> for Fifo<P> {
    #[inline]
    fn place(&self, _: &Descriptor) -> Result<Place, DropReason> {
        if self.items.len() < self.limit {
            Ok(Place::default())
        } else {
            Err(DropReason::Tail)
        }
    }

    #[inline]
    fn insert(&mut self, _: Place, item: Item<P>) -> Inserted<P> {
        self.items.push_back(item);
        Inserted::BEHIND
    }

    #[inline]
    fn head(&self) -> Option<&Descriptor> {
        self.items.front().map(|item| &item.descriptor)
    }

    #[inline]
    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        self.items.pop_front().map(take)
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.items.iter())
    }
}
