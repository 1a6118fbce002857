//! The transmit ring: packets that the hardware holds beside the one on the wire. Their order is settled.

use std::collections::VecDeque;

use crate::queueing::discipline::Item;
use crate::time::Time;

/// A ring of at most `limit` packets, at least one.
#[derive(Debug)]
pub(crate) struct TxRing<P> {
    entries: VecDeque<(Time, Item<P>)>,
    limit: usize,
}

impl<P> TxRing<P> {
    pub fn new(limit: u32) -> TxRing<P> {
        TxRing { entries: VecDeque::new(), limit: limit as usize }
    }

    /// A ring that holds more than a new limit empties by itself.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit as usize;
    }

    pub fn has_room(&self) -> bool {
        self.entries.len() < self.limit
    }

    pub fn push(&mut self, now: Time, item: Item<P>) {
        self.entries.push_back((now, item));
    }

    /// The first packet and when it came into the ring.
    pub fn head(&self) -> Option<(Time, &Item<P>)> {
        self.entries.front().map(|(entered, item)| (*entered, item))
    }

    pub fn pop(&mut self) -> Option<Item<P>> {
        self.entries.pop_front().map(|(_, item)| item)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Item<P>> {
        self.entries.iter().map(|(_, item)| item)
    }

    /// The classes are those of a policy that is no more.
    pub fn forget_classes(&mut self) {
        self.entries.iter_mut().for_each(|(_, item)| item.class = None);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
