//! The event queue of the simulation: what is to happen when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use qos_core::Time;

/// Something that is to happen. Timers are not taken back: what finds nothing to do when its time comes does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// An engine has something to do.
    Engine(u32),
    /// A source of datagrams sends the next one.
    Datagram(u32),
    /// A TCP stream connects.
    Connect(u32),
    /// A TCP sender's application writes.
    Write(u32),
    /// A TCP sender's time is over.
    Stop(u32),
    /// A TCP sender's figures are noted.
    Note(u32),
    /// A TCP receiver's time is over.
    Received(u32),
    /// The timer of one end of a connection: twice the stream's number, plus 1 for the receiver.
    Timer(u32),
    /// A stream is not waited for any longer.
    GiveUp(u32),
    /// A node's operations or its responder have something to do.
    Agent(u32),
    /// A message leaves the node that it comes from: process level is done with it.
    Leave(u32),
    /// A message is there for the node that it goes to, likewise.
    Taken(u32),
    /// A probe begins.
    ProbeBegins(u32),
    /// A probe is read.
    ProbeRead(u32),
    /// The routers' counters are read.
    Sample,
    /// The traffic has ended: from now on the run ends as soon as nothing is under way.
    Drain,
    /// The run ends.
    End,
}

/// Events by time; of those of one moment the first that was put in comes first.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
    number: u64,
    taken: u64,
}

impl EventQueue {
    /// Lets something happen at a time.
    pub fn put(&mut self, time: Time, event: Event) {
        self.number += 1;
        self.heap.push(Reverse((time, self.number, event)));
    }

    /// Events that were taken out.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    pub fn take(&mut self) -> Option<(Time, Event)> {
        let Reverse((time, _, event)) = self.heap.pop()?;
        self.taken += 1;
        Some((time, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let mut queue = EventQueue::default();
        for (time, event) in [(2, Event::Sample), (1, Event::Engine(2)), (1, Event::Engine(1)), (0, Event::End)] {
            queue.put(Time(time), event);
        }
        let taken: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
        let expected = [(0, Event::End), (1, Event::Engine(2)), (1, Event::Engine(1)), (2, Event::Sample)];
        assert_eq!(taken, expected.map(|(time, event)| (Time(time), event)));
    }
}
