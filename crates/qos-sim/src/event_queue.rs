//! Event queue of the simulation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use qos_core::winner_tree::WinnerTree;
use qos_core::Time;

/// Future event. Timers are not cancelled: an event that finds nothing to do at its time does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// An engine has work to do.
    Engine(u32),
    /// A source of datagrams sends the next one.
    Datagram(u32),
    /// A TCP stream connects. This and the following numbers are those among TCP streams.
    Connect(u32),
    /// A TCP sender's application writes.
    Write(u32),
    /// A TCP sender's time is over.
    Stop(u32),
    /// A TCP sender's statistics are recorded.
    Note(u32),
    /// The time of a stream's receiver is over.
    Received(u32),
    /// The timer of one end of a connection: twice the stream's number, plus 1 for the receiver.
    Timer(u32),
    /// The run stops waiting for a stream, by its number among all streams.
    GiveUp(u32),
    /// A node's operations or responder have work to do.
    Agent(u32),
    /// A message leaves its source node after process level.
    Leave(u32),
    /// A message arrives at its destination.
    Taken(u32),
    /// A probe begins.
    ProbeBegins(u32),
    /// A probe is read.
    ProbeRead(u32),
    /// The routers' counters are read, and will be again after the time between two samples.
    Sample,
    /// The routers' counters are read at an additional time.
    Look,
    /// The packet of a question arrives.
    Question,
    /// The traffic has ended: from now on the run ends as soon as nothing is in transit.
    Drain,
    /// The run ends.
    End,
}

/// A time, and a number that orders events of the same time: the smaller one is first.
type Deadline = u128;

/// Comes after all others.
const NEVER: Deadline = WinnerTree::<Deadline>::NONE;

fn deadline(time: Time, number: u64) -> Deadline {
    (u128::from(time.0) << 64) | u128::from(number)
}

fn time(deadline: Deadline) -> Time {
    Time((deadline >> 64) as u64)
}

/// Events by time, in the order of insertion at equal times.
///
/// An engine has one event, which may be moved to an earlier time. Most events are of engines, so they are stored
/// separately.
#[derive(Debug)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Deadline, Event)>>,
    engines: WinnerTree<Deadline>,
    /// Engine of the latest event, until its next event. Its key then changes once instead of twice.
    running: Option<usize>,
    /// Outstanding earlier due time of each engine that has become due sooner.
    superseded: Vec<Vec<Deadline>>,
    number: u64,
    /// The last removed event.
    last: Deadline,
    taken: u64,
}

impl EventQueue {
    /// Creates an empty queue for a number of engines.
    pub fn new(engines: usize) -> EventQueue {
        EventQueue {
            heap: BinaryHeap::new(),
            engines: WinnerTree::new(engines),
            running: None,
            superseded: vec![Vec::new(); engines],
            number: 0,
            last: 0,
            taken: 0,
        }
    }

    /// Adds an event.
    pub fn put(&mut self, time: Time, event: Event) {
        self.number += 1;
        self.heap.push(Reverse((deadline(time, self.number), event)));
    }

    /// Sets the due time of an engine, if it is earlier than the present one. Among the events of one time, an engine
    /// keeps the position that it had when it was first due at that time.
    pub fn put_engine(&mut self, station: usize, due: Time) {
        let running = self.running == Some(station);
        let before = if running { NEVER } else { self.engines.key(station) };
        if due >= time(before) {
            return;
        }
        let superseded = &mut self.superseded[station];
        self.number += 1;
        let mut this = deadline(due, self.number);
        if !superseded.is_empty() {
            let (last, count) = (self.last, superseded.len());
            superseded.retain(|deadline| *deadline > last);
            self.taken += (count - superseded.len()) as u64;
            if let Some(again) = superseded.iter_mut().filter(|known| time(**known) == due).min() {
                std::mem::swap(again, &mut this);
            }
        }
        if before != NEVER {
            superseded.push(before);
        }
        if running {
            self.running = None;
        }
        self.engines.set(station, this);
    }

    /// Returns the number of processed events, and of superseded events of engines.
    pub fn taken(&self) -> u64 {
        let passed = self.superseded.iter().flatten().filter(|deadline| **deadline <= self.last).count();
        self.taken + passed as u64
    }

    pub fn take(&mut self) -> Option<(Time, Event)> {
        if let Some(station) = self.running.take() {
            self.engines.set(station, NEVER);
        }
        let due = self.engines.least_key();
        let event = match self.heap.peek() {
            Some(Reverse((deadline, _))) if *deadline < due => {
                let Reverse((deadline, event)) = self.heap.pop()?;
                self.last = deadline;
                event
            }
            _ => {
                let station = self.engines.least()?;
                self.running = Some(station);
                self.last = due;
                Event::Engine(station as u32)
            }
        };
        self.taken += 1;
        Some((time(self.last), event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn simultaneous_events_keep_their_order() {
        let mut queue = EventQueue::new(3);
        queue.put(Time(2), Event::Sample);
        queue.put_engine(2, Time(1));
        queue.put(Time(1), Event::Drain);
        queue.put_engine(1, Time(1));
        queue.put(Time(0), Event::End);
        let taken: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
        let expected =
            [(0, Event::End), (1, Event::Engine(2)), (1, Event::Drain), (1, Event::Engine(1)), (2, Event::Sample)];
        assert_eq!(taken, expected.map(|(time, event)| (Time(time), event)));
    }

    /// All events in one heap, those of engines too: an outdated event does nothing when its time comes.
    #[derive(Default)]
    struct Plain {
        heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
        due: [Option<Time>; 3],
        number: u64,
        taken: u64,
    }

    impl Plain {
        fn put(&mut self, time: Time, event: Event) {
            self.number += 1;
            self.heap.push(Reverse((time, self.number, event)));
        }

        fn put_engine(&mut self, station: usize, time: Time) {
            if self.due[station].is_none_or(|due| time < due) {
                self.due[station] = Some(time);
                self.put(time, Event::Engine(station as u32));
            }
        }

        fn take(&mut self) -> Option<(Time, Event)> {
            loop {
                let Reverse((time, _, event)) = self.heap.pop()?;
                self.taken += 1;
                if let Event::Engine(station) = event {
                    if self.due[station as usize] != Some(time) {
                        continue;
                    }
                    self.due[station as usize] = None;
                }
                return Some((time, event));
            }
        }
    }

    proptest! {
        #[test]
        fn engine_events_come_in_the_order_of_all_events(
            steps in prop::collection::vec((0usize..6, 0u64..5), 1..300)
        ) {
            let (mut queue, mut plain) = (EventQueue::new(3), Plain::default());
            // As in a run, the last event is known from the start.
            let end = Time(1 << 20);
            queue.put(end, Event::End);
            plain.put(end, Event::End);
            let mut now = Time(0);
            for (what, after) in steps {
                let time = Time(now.0 + after);
                match what {
                    0..3 => {
                        queue.put_engine(what, time);
                        plain.put_engine(what, time);
                    }
                    3 => {
                        queue.put(time, Event::Note(after as u32));
                        plain.put(time, Event::Note(after as u32));
                    }
                    _ => {
                        let taken = queue.take();
                        prop_assert_eq!(taken, plain.take());
                        prop_assert_eq!(queue.taken(), plain.taken);
                        now = taken.map_or(now, |(time, _)| time);
                        if now == end {
                            break;
                        }
                    }
                }
            }
        }
    }
}
