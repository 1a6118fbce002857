//! Frames on their way, by when they arrive.

use std::collections::VecDeque;

use crate::frame::descriptor::Descriptor;
use crate::time::Time;

/// A frame on its way.
#[derive(Debug)]
pub(crate) struct InFlight<P> {
    pub arrives: Time,
    /// It will not arrive: at that time it is given back instead.
    pub lost: bool,
    pub descriptor: Descriptor,
    pub payload: P,
}

/// A length of cable. It holds whatever is on its way: as many frames as its rate and delay make.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    /// In the order of arrival; of equal ones the first that entered comes first.
    frames: VecDeque<InFlight<P>>,
    /// When the last frame left; nothing arrives before that any more.
    left: Time,
}

impl<P> DelayLine<P> {
    pub fn new(start: Time) -> DelayLine<P> {
        DelayLine { frames: VecDeque::new(), left: start }
    }

    /// A frame enters. Mostly it is the last to arrive, and if not, the search begins at the end.
    #[inline]
    pub fn push(&mut self, mut frame: InFlight<P>) {
        frame.arrives = frame.arrives.max(self.left);
        if self.frames.back().is_none_or(|last| last.arrives <= frame.arrives) {
            return self.frames.push_back(frame);
        }
        self.insert(frame);
    }

    /// A frame that overtakes others.
    #[cold]
    fn insert(&mut self, frame: InFlight<P>) {
        let later = self.frames.iter().rev().take_while(|other| other.arrives > frame.arrives).count();
        self.frames.insert(self.frames.len() - later, frame);
    }

    /// The next frame, if it has arrived by `now`.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<InFlight<P>> {
        let arrives = self.next().filter(|arrives| *arrives <= now)?;
        self.left = arrives;
        self.frames.pop_front()
    }

    /// When the next frame arrives.
    #[inline]
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
