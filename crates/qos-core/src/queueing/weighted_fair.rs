//! Classic weighted fair queueing: the interface's `fair-queue`, and the queue under a classic shaper.
//!
//! A packet gets a sequence number: that of its conversation's last packet or of the packet served last, whichever is
//! greater, plus its bytes times the conversation's weight 32384/(precedence + 1). The packet with the lowest number
//! leaves first, so small packets and high precedences gain.
//!
//! The congestive discard threshold counts the packets of all conversations together. From there on a packet that
//! would be the last of all, with the highest number, is dropped, and every other one is taken; so a router with a
//! flood and a session whose window is 7 packets shows `Output queue: 64/1000/64`, 57 and 7 of them. At the hold-queue
//! the packet with the highest number goes for one with a lower number, but that is hardly ever reached.
//!
//! With a queueing policy the class-default's conversations and those of the classes share one space of numbers, which
//! the scheduler keeps: a class is a single conversation with a weight and, in its queue limit, its own threshold.

use std::collections::VecDeque;

use crate::config::defaults::WEIGHT_NUMERATOR;
use crate::counters::count::Count;
use crate::frame::descriptor::{mix, Descriptor};
use crate::frame::drop_reason::DropReason;
use crate::queueing::discipline::{flow_index, Discipline, Inserted, Item, Place};
use crate::winner_tree::WinnerTree;

#[derive(Debug)]
struct Conversation<P> {
    items: VecDeque<(u64, Item<P>)>,
    /// Sequence number of the last packet.
    last: u64,
    /// Packets that it lost.
    drops: u64,
}

/// A conversation with packets.
#[derive(Debug)]
pub(crate) struct Waiting<'a, P> {
    /// Number in the queue.
    pub flow: usize,
    pub packets: u64,
    /// Sequence number of the first packet.
    pub weight: u64,
    /// Packets that it lost.
    pub drops: u64,
    pub head: &'a Item<P>,
}

/// Weighted fair queueing over hashed conversations.
#[derive(Debug)]
pub(crate) struct WeightedFair<P> {
    conversations: Vec<Conversation<P>>,
    /// Conversations by the head's sequence number: the lowest leaves next.
    heads: WinnerTree,
    /// Conversations by the tail's sequence number, negated: the lowest is the first to be discarded.
    tails: WinnerTree,
    /// The only conversation with packets, if there has been no other since the queue was empty; it is in neither tree.
    lone: Option<usize>,
    /// Sequence number of the packet served last.
    served: u64,
    active: u32,
    /// Number of packets in all conversations above which a packet that would leave last is dropped.
    threshold: u64,
    /// Maximum number of packets in all conversations, if this queue limits them.
    total: Option<u64>,
    /// The weight of every packet; if none, the precedence decides.
    weight: Option<u64>,
    seed: u64,
    depth: Count,
}

impl<P> WeightedFair<P> {
    /// Creates an empty queue; `flows` is a power of two.
    pub fn new(flows: u32, threshold: u32, total: Option<u32>, weight: Option<u64>, seed: u64) -> WeightedFair<P> {
        WeightedFair {
            conversations: (0..flows).map(|_| Conversation { items: VecDeque::new(), last: 0, drops: 0 }).collect(),
            heads: WinnerTree::new(flows as usize),
            tails: WinnerTree::new(flows as usize),
            lone: None,
            served: 0,
            active: 0,
            threshold: u64::from(threshold),
            total: total.map(u64::from),
            weight,
            seed,
            depth: Count::default(),
        }
    }

    /// Returns the conversation of a packet. In this generation, the type of service is part of the key.
    fn conversation(&self, descriptor: &Descriptor) -> usize {
        match self.total {
            Some(_) if mistaken!(ShaperQueueFifo) => return 0,
            None if mistaken!(InterfaceQueueFifo) => return 0,
            _ => {}
        }
        let key = descriptor.flow ^ mix(u64::from(descriptor.dscp) + 1);
        flow_index(key, self.seed, self.conversations.len() as u32)
    }

    fn update(&mut self, index: usize) {
        let items = &self.conversations[index].items;
        self.heads.set(index, items.front().map_or(WinnerTree::NONE, |(number, _)| *number));
        self.tails.set(index, items.back().map_or(WinnerTree::NONE, |(number, _)| u64::MAX - 1 - number));
    }

    fn count_out(&mut self, index: usize, bytes: u32) {
        self.depth.remove(bytes);
        let emptied = self.conversations[index].items.is_empty();
        self.active -= u32::from(emptied);
        if self.lone.is_none() {
            self.update(index);
        } else if emptied {
            self.lone = None;
        }
    }

    /// Returns the conversation whose first packet leaves next.
    fn first(&self) -> Option<usize> {
        self.lone.or_else(|| self.heads.least())
    }

    /// Returns the conversation whose last packet `discard` would remove.
    fn last(&self) -> Option<usize> {
        self.lone.or_else(|| self.tails.least())
    }

    /// Sets the number of the packet served last, anywhere in the number space that this queue shares.
    pub fn set_served(&mut self, number: u64) {
        self.served = number;
    }

    /// Returns the number of the next packet.
    pub fn lowest(&self) -> Option<u64> {
        self.conversations[self.first()?].items.front().map(|(number, _)| *number)
    }

    /// Returns the number of the packet that `discard` would remove.
    pub fn highest(&self) -> Option<u64> {
        self.conversations[self.last()?].items.back().map(|(number, _)| *number)
    }

    /// Returns the conversation of a packet and its number there.
    pub fn next(&self, descriptor: &Descriptor) -> Place {
        let index = self.conversation(descriptor);
        let cost = u64::from(descriptor.counted_len).max(1) * self.weight_of(descriptor);
        Place { flow: index, number: self.conversations[index].last.max(self.served).saturating_add(cost) }
    }

    fn weight_of(&self, descriptor: &Descriptor) -> u64 {
        self.weight.unwrap_or_else(|| weight(descriptor.precedence()))
    }

    /// Returns the conversations with packets.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting<'_, P>> {
        self.conversations.iter().enumerate().filter_map(|(flow, each)| {
            let (_, head) = each.items.front()?;
            let weight = self.weight_of(&head.descriptor);
            Some(Waiting { flow, packets: each.items.len() as u64, weight, drops: each.drops, head })
        })
    }

    /// Counts a packet that was not admitted.
    pub fn count_refused(&mut self, descriptor: &Descriptor) {
        let index = self.conversation(descriptor);
        self.conversations[index].drops += 1;
    }

    /// Restarts the drop counters.
    pub fn clear_drops(&mut self) {
        self.conversations.iter_mut().for_each(|each| each.drops = 0);
    }

    /// Returns whether a packet can join only by replacing another one.
    fn is_full(&self) -> bool {
        self.total.is_some_and(|total| self.depth.packets >= total)
    }

    /// Removes the packet with the highest sequence number.
    pub fn discard(&mut self) -> Option<Item<P>> {
        let index = self.last()?;
        let conversation = &mut self.conversations[index];
        let (_, item) = conversation.items.pop_back()?;
        conversation.drops += 1;
        // The conversation is not charged for packets that were not sent.
        conversation.last = conversation.items.back().map_or(self.served, |(number, _)| *number);
        self.count_out(index, item.bytes());
        Some(item)
    }
}

/// Returns the weight of a packet by its precedence.
pub(crate) fn weight(precedence: u8) -> u64 {
    let parts = match precedence {
        1.. if mistaken!(WeightsFlat) => precedence,
        1.. if mistaken!(WeightsSteep) => precedence + 2,
        _ => precedence + 1,
    };
    WEIGHT_NUMERATOR / u64::from(parts)
}

impl<P> Discipline<P> for WeightedFair<P> {
    /// Returns the place of a packet, after the congestive discard and the queue's own limit.
    fn place(&self, descriptor: &Descriptor) -> Result<Place, DropReason> {
        let place = self.next(descriptor);
        let behind_all = || self.highest().is_none_or(|highest| place.number >= highest);
        let full = self.depth.packets >= self.threshold && !mistaken!(DiscardThresholdIgnored);
        if (full || self.is_full()) && behind_all() {
            return Err(DropReason::Tail);
        }
        Ok(place)
    }

    fn insert(&mut self, mut place: Place, item: Item<P>) -> Inserted<P> {
        let mut displaced = None;
        if self.is_full() {
            displaced = self.discard().map(Box::new);
            // The packet that left may belong to the same conversation.
            place = self.next(&item.descriptor);
        }
        let Place { flow: index, number } = place;
        if self.active == 0 {
            self.lone = Some(index);
        } else if let Some(lone) = self.lone.filter(|lone| *lone != index) {
            self.lone = None;
            self.update(lone);
        }
        self.depth.add(item.bytes());
        let conversation = &mut self.conversations[index];
        let starts = conversation.items.is_empty();
        self.active += u32::from(starts);
        conversation.last = number;
        conversation.items.push_back((number, item));
        if self.lone.is_none() {
            self.update(index);
        }
        Inserted { leads: starts && self.first() == Some(index), displaced }
    }

    fn head(&self) -> Option<&Descriptor> {
        let index = self.first()?;
        self.conversations[index].items.front().map(|(_, item)| &item.descriptor)
    }

    fn dequeue<R>(&mut self, take: impl FnOnce(Item<P>) -> R) -> Option<R> {
        let index = self.first()?;
        let (number, item) = self.conversations[index].items.pop_front()?;
        let bytes = item.bytes();
        let taken = take(item);
        self.served = number;
        self.count_out(index, bytes);
        Some(taken)
    }

    fn items<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Item<P>> + 'a>
    where
        P: 'a,
    {
        Box::new(self.conversations.iter().flat_map(|conversation| conversation.items.iter().map(|(_, item)| item)))
    }

    fn flows(&self) -> Option<(u32, u32)> {
        Some((self.active, self.conversations.len() as u32))
    }
}
