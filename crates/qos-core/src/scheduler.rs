//! The interface's queueing: the queues in front of the transmit ring, and which of them is served next.
//!
//! Queue 0 is the interface's own (and that of classes without a queue); each queueing class has one more. Queues that may send share
//! the link by start-time fair queueing (Goyal, Vin and Cheng, 1996) over counted bytes, with equal weights for now: classes without
//! `bandwidth` share equally. The weight is the seam for `bandwidth`; a strict priority queue would come before it.

use crate::counters::Count;
use crate::packet::Descriptor;
use crate::queue::{Discipline, Enqueued, Item, Queue, QueuePlan};
use crate::shaper::{ShapePlan, Shaper};
use crate::time::Time;

/// A queue of the interface, to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotPlan {
    pub queue: QueuePlan,
    pub shape: Option<ShapePlan>,
}

/// A queue of the interface.
#[derive(Debug)]
pub(crate) struct Slot<P> {
    pub plan: SlotPlan,
    pub queue: Queue<P>,
    pub shaper: Option<Shaper>,
    /// What left.
    pub output: Count,
    /// What of that had waited for the shaper.
    pub delayed: Count,
    /// Virtual time at which the last packet served from here ended.
    finish: u64,
}

impl<P> Slot<P> {
    fn may_send(&self) -> bool {
        match (self.queue.head(), &self.shaper) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(head), Some(shaper)) => shaper.allows(head.counted_len),
        }
    }

    fn advance(&mut self, now: Time) {
        if let Some(shaper) = &mut self.shaper {
            shaper.advance(now, self.queue.head().map(|head| head.counted_len));
        }
    }
}

/// All queues of an interface.
#[derive(Debug)]
pub(crate) struct Scheduler<P> {
    slots: Vec<Slot<P>>,
    /// Start time of the packet served last.
    virtual_time: u64,
    packets: u64,
}

impl<P> Scheduler<P> {
    pub fn new(plans: &[SlotPlan], seed: u64, now: Time) -> Scheduler<P> {
        let slots = plans
            .iter()
            .map(|plan| Slot {
                plan: *plan,
                queue: plan.queue.build(seed),
                shaper: plan.shape.map(|shape| Shaper::new(shape, now)),
                output: Count::default(),
                delayed: Count::default(),
                finish: 0,
            })
            .collect();
        Scheduler { slots, virtual_time: 0, packets: 0 }
    }

    pub fn slots(&self) -> &[Slot<P>] {
        &self.slots
    }

    pub fn len(&self) -> u64 {
        self.packets
    }

    /// A packet joins a queue.
    pub fn enqueue(&mut self, now: Time, slot: usize, mut item: Item<P>) -> Enqueued<P> {
        let slot = &mut self.slots[slot];
        slot.advance(now);
        // A shaper with packets waiting is active, and every packet waits.
        item.delayed =
            slot.shaper.as_ref().is_some_and(|shaper| slot.queue.head().is_some() || !shaper.allows(item.bytes()));
        let enqueued = slot.queue.enqueue(item);
        if let Enqueued::Queued = enqueued {
            self.packets += 1;
        }
        enqueued
    }

    /// The next packet that may leave at `now`, if any.
    pub fn dequeue(&mut self, now: Time) -> Option<Item<P>> {
        if self.packets == 0 {
            return None;
        }
        let virtual_time = self.virtual_time;
        let mut best: Option<(u64, usize)> = None;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.advance(now);
            if slot.may_send() {
                let start = slot.finish.max(virtual_time);
                if best.is_none_or(|(least, _)| start < least) {
                    best = Some((start, index));
                }
            }
        }
        let (start, index) = best?;
        let slot = &mut self.slots[index];
        let item = slot.queue.dequeue()?;
        self.packets -= 1;
        self.virtual_time = start;
        slot.finish = start + u64::from(item.bytes());
        if let Some(shaper) = &mut slot.shaper {
            shaper.take(item.bytes(), slot.queue.head().is_none());
        }
        slot.output.add(item.bytes());
        if item.delayed {
            slot.delayed.add(item.bytes());
        }
        Some(item)
    }

    /// When a shaper will next let a packet go, and which. Meaningful after a `dequeue` that gave nothing.
    pub fn next_release(&self) -> Option<(Time, &Descriptor)> {
        self.slots
            .iter()
            .filter_map(|slot| {
                let head = slot.queue.head()?;
                Some((slot.shaper.as_ref()?.release(head.counted_len)?, head))
            })
            .min_by_key(|(time, _)| *time)
    }

    /// Removes a packet from any queue, whatever its shaper says; queue by queue, in order.
    pub fn drain(&mut self) -> Option<Item<P>> {
        let item = self.slots.iter_mut().find_map(|slot| slot.queue.dequeue())?;
        self.packets -= 1;
        Some(item)
    }

    pub fn clear_counters(&mut self) {
        for slot in &mut self.slots {
            slot.output = Count::default();
            slot.delayed = Count::default();
        }
    }
}
