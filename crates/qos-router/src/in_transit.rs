//! Frames in transit through the kernel: retains the event time of a frame while the kernel forwards it.
//!
//! A frame that the input side hands to the kernel returns from another port's inside interface a little later, with a
//! newer time stamp that includes the delays of the daemon and the kernel. This table stores the frame's state under a
//! key of the fields that forwarding does not change ([`crate::frame::TransitKeys`]). Equal keys (identical packets)
//! are matched first in, first out. Unused entries (packets to the router itself, or dropped ones) expire, and the
//! oldest is removed if the table is full; a frame without an entry has the kernel's time stamp.

use qos_core::{Descriptor, Label, PortId, Time};

/// Stored state of a frame in transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transit {
    /// Event time at which the frame left the input side.
    pub event: Time,
    /// Input port of the frame.
    pub input: PortId,
    /// QoS group that an input policy has set.
    pub qos_group: u16,
    /// Discard class that an input policy has set.
    pub discard_class: u8,
    /// Label from the ingress side of a switch.
    pub label: Option<Label>,
}

impl Transit {
    /// Adds the properties that are not in the frame's bytes to its descriptor.
    pub fn restore(&self, descriptor: &mut Descriptor) {
        descriptor.input_port = Some(self.input);
        descriptor.qos_group = self.qos_group;
        descriptor.discard_class = self.discard_class;
        descriptor.label = self.label;
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    /// Real time of the creation of the entry, for its expiry.
    made: u64,
    transit: Transit,
    /// Sequence number of the next younger entry in the bucket, or `NONE`.
    next: u64,
    taken: bool,
}

const NONE: u64 = u64::MAX;

/// A bounded multi-map from key to [`Transit`], oldest first.
///
/// Entries are in a ring in the order of creation and are chained by bucket, so that inserting, taking and expiring
/// need no allocation.
#[derive(Debug)]
pub struct InTransit {
    entries: Vec<Entry>,
    /// Oldest and youngest entry of each bucket, as sequence numbers.
    buckets: Vec<(u64, u64)>,
    /// Sequence numbers of the entries in the ring: `oldest..next`.
    oldest: u64,
    next: u64,
    life_ns: u64,
}

impl InTransit {
    /// Returns a table for `capacity` frames (a power of two) that forgets them after `life_ns`.
    pub fn new(capacity: usize, life_ns: u64) -> Self {
        assert!(capacity.is_power_of_two(), "the ring is indexed by mask");
        Self {
            entries: Vec::with_capacity(capacity),
            buckets: vec![(NONE, NONE); capacity],
            oldest: 0,
            next: 0,
            life_ns,
        }
    }

    fn mask(&self) -> u64 {
        self.buckets.len() as u64 - 1
    }

    fn slot(&self, sequence: u64) -> usize {
        (sequence & self.mask()) as usize
    }

    /// Remembers a frame that is handed to the kernel at real time `now`.
    pub fn insert(&mut self, now: u64, key: u64, transit: Transit) {
        self.expire(now);
        if self.next - self.oldest == self.buckets.len() as u64 {
            self.drop_oldest();
        }
        let entry = Entry { key, made: now, transit, next: NONE, taken: false };
        let (sequence, slot) = (self.next, self.slot(self.next));
        if slot == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[slot] = entry;
        }
        self.next += 1;
        let bucket = self.slot(key);
        let (first, last) = self.buckets[bucket];
        if first == NONE {
            self.buckets[bucket] = (sequence, sequence);
        } else {
            let last = self.slot(last);
            self.entries[last].next = sequence;
            self.buckets[bucket].1 = sequence;
        }
    }

    /// Removes the oldest frame with this key.
    pub fn take(&mut self, now: u64, key: u64) -> Option<Transit> {
        self.expire(now);
        let bucket = self.slot(key);
        let mut before = NONE;
        let mut at = self.buckets[bucket].0;
        while at != NONE {
            let slot = self.slot(at);
            if self.entries[slot].key == key {
                self.unlink(bucket, before, at);
                return Some(self.entries[slot].transit);
            }
            before = at;
            at = self.entries[slot].next;
        }
        None
    }

    fn unlink(&mut self, bucket: usize, before: u64, at: u64) {
        let slot = self.slot(at);
        let after = self.entries[slot].next;
        self.entries[slot].taken = true;
        if before == NONE {
            self.buckets[bucket].0 = after;
        } else {
            let before = self.slot(before);
            self.entries[before].next = after;
        }
        if after == NONE {
            self.buckets[bucket].1 = before;
        }
    }

    fn expire(&mut self, now: u64) {
        while self.oldest < self.next {
            let entry = &self.entries[self.slot(self.oldest)];
            if !entry.taken && now.saturating_sub(entry.made) < self.life_ns {
                break;
            }
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let entry = self.entries[self.slot(self.oldest)];
        if !entry.taken {
            // The oldest of all is the oldest of its bucket, because chains are in order of creation.
            let bucket = self.slot(entry.key);
            self.unlink(bucket, NONE, self.oldest);
        }
        self.oldest += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn transit(event: u64) -> Transit {
        Transit { event: Time(event), input: PortId(0), qos_group: 0, discard_class: 0, label: None }
    }

    fn count(table: &InTransit) -> usize {
        (table.oldest..table.next).filter(|&s| !table.entries[table.slot(s)].taken).count()
    }

    #[test]
    fn identical_packets_come_back_in_order() {
        let mut table = InTransit::new(8, 1000);
        for event in 0..3 {
            table.insert(event, 42, transit(event));
        }
        let events: Vec<_> = (0..4).map(|_| table.take(3, 42).map(|t| t.event.0)).collect();
        assert_eq!(events, [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn entries_expire() {
        let mut table = InTransit::new(8, 1000);
        table.insert(0, 42, transit(0));
        assert_eq!(table.take(1000, 42), None);
        assert_eq!(count(&table), 0);
    }

    proptest! {
        /// The table behaves like a plain list.
        #[test]
        fn agrees_with_a_linear_list(steps in prop::collection::vec((0u64..300, 0u64..6, any::<bool>()), 1..400)) {
            const CAPACITY: usize = 16;
            const LIFE: u64 = 1000;
            let mut table = InTransit::new(CAPACITY, LIFE);
            // Places of removed entries stay in the list until they are the oldest, as in the ring.
            let mut list: VecDeque<(u64, u64, Transit, bool)> = VecDeque::new();
            let mut now = 0;
            for (step, key, insert) in steps {
                now += step;
                while list.front().is_some_and(|e| e.3 || now - e.0 >= LIFE) {
                    list.pop_front();
                }
                // Keys that share a bucket but differ.
                let key = key % 3 + (key / 3) * CAPACITY as u64;
                if insert {
                    if list.len() == CAPACITY {
                        list.pop_front();
                    }
                    list.push_back((now, key, transit(now), false));
                    table.insert(now, key, transit(now));
                } else {
                    let expected = list.iter_mut().find(|e| e.1 == key && !e.3).map(|e| {
                        e.3 = true;
                        e.2
                    });
                    prop_assert_eq!(table.take(now, key), expected);
                }
                prop_assert_eq!(count(&table), list.iter().filter(|e| !e.3).count());
            }
        }
    }
}
