//! Propagation delay: frames on their way, in order.

use std::collections::VecDeque;

use crate::packet::Descriptor;
use crate::time::{Duration, Time};

/// A frame on its way.
#[derive(Debug)]
pub(crate) struct InFlight<P> {
    pub arrives: Time,
    pub descriptor: Descriptor,
    pub payload: P,
}

/// A length of cable.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    delay: Duration,
    frames: VecDeque<InFlight<P>>,
}

impl<P> DelayLine<P> {
    pub fn new(delay: Duration) -> DelayLine<P> {
        DelayLine { delay, frames: VecDeque::new() }
    }

    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// A frame enters at `now`; frames enter in order.
    pub fn push(&mut self, now: Time, descriptor: Descriptor, payload: P) {
        self.frames.push_back(InFlight { arrives: now + self.delay, descriptor, payload });
    }

    /// The next frame, if it has arrived by `now`.
    pub fn pop(&mut self, now: Time) -> Option<InFlight<P>> {
        if self.next()? > now {
            return None;
        }
        self.frames.pop_front()
    }

    /// When the next frame arrives.
    pub fn next(&self) -> Option<Time> {
        self.frames.front().map(|frame| frame.arrives)
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &InFlight<P>> {
        self.frames.iter()
    }
}
