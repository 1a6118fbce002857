//! Frames in transit, by arrival time.

use std::collections::VecDeque;

use crate::frame::descriptor::Descriptor;
use crate::time::Time;

/// A frame in transit.
#[derive(Debug)]
pub(crate) struct InFlight<P> {
    pub arrives: Time,
    /// The frame is lost: at that time it is returned instead of arriving.
    pub lost: bool,
    pub descriptor: Descriptor,
    pub payload: P,
}

/// The frames in transit on a cable, as many as its rate and delay allow.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    /// Frames in the order of arrival; at equal times the first that entered comes first.
    frames: VecDeque<InFlight<P>>,
    /// Departure of the last frame; no frame arrives before it from now on.
    left: Time,
}

impl<P> DelayLine<P> {
    pub fn new(start: Time) -> DelayLine<P> {
        DelayLine { frames: VecDeque::new(), left: start }
    }

    /// Adds a frame. It usually arrives last, so the search for its position begins at the end.
    #[inline]
    pub fn push(&mut self, mut frame: InFlight<P>) {
        frame.arrives = frame.arrives.max(self.left);
        if self.frames.back().is_none_or(|last| last.arrives <= frame.arrives) {
            return self.frames.push_back(frame);
        }
        self.insert(frame);
    }

    /// Inserts a frame that overtakes others.
    #[cold]
    fn insert(&mut self, frame: InFlight<P>) {
        let later = self.frames.iter().rev().take_while(|other| other.arrives > frame.arrives).count();
        self.frames.insert(self.frames.len() - later, frame);
    }

    /// Returns the next frame, if it has arrived by `now`.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<InFlight<P>> {
        let arrives = self.next().filter(|arrives| *arrives <= now)?;
        self.left = arrives;
        self.frames.pop_front()
    }

    /// Returns the arrival time of the next frame.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(arrives: u64, payload: &'static str) -> InFlight<&'static str> {
        InFlight { arrives: Time(arrives), lost: false, descriptor: Descriptor::UNKNOWN, payload }
    }

    fn popped(line: &mut DelayLine<&'static str>, now: u64) -> Vec<(u64, &'static str)> {
        std::iter::from_fn(|| line.pop(Time(now))).map(|frame| (frame.arrives.0, frame.payload)).collect()
    }

    #[test]
    fn delay_line_orders_frames_by_arrival_then_entry() {
        let mut line = DelayLine::new(Time(0));
        for (arrives, payload) in [(10, "a"), (20, "b"), (15, "c"), (15, "d"), (20, "e"), (5, "f"), (10, "g")] {
            line.push(frame(arrives, payload));
        }
        assert_eq!((line.len(), line.next()), (7, Some(Time(5))));
        assert_eq!(popped(&mut line, 14), [(5, "f"), (10, "a"), (10, "g")]);
        assert_eq!(popped(&mut line, 20), [(15, "c"), (15, "d"), (20, "b"), (20, "e")]);
        assert_eq!((line.len(), line.next()), (0, None));
        // Nothing arrives before earlier departures.
        line.push(frame(12, "h"));
        assert_eq!(popped(&mut line, 20), [(20, "h")]);
    }
}
