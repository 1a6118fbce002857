//! Frames of a source, such as the pictures of a video: each is a burst of datagrams. Pure: no clock, no IO.

use crate::datagram::SHORTEST_STAMP;

/// Maximum number of bytes of a frame.
pub const LARGEST_FRAME: u32 = 10_000_000;

/// A cycle of frames for each of several streams.
#[derive(Debug, Clone)]
pub struct Frames {
    sizes: Vec<u32>,
    largest: u32,
    streams: u64,
}

impl Frames {
    /// Returns the frames with these payload bytes, repeated in a cycle, in datagrams of at most `largest` bytes of
    /// payload. `None` without frames, or if a frame or a datagram is too small for a stamp.
    pub fn new(sizes: Vec<u32>, largest: u32, streams: u16) -> Option<Self> {
        let room = |bytes: u32| bytes >= SHORTEST_STAMP;
        let fits = !sizes.is_empty() && sizes.iter().all(|bytes| room(*bytes)) && largest >= 2 * SHORTEST_STAMP;
        fits.then_some(Self { sizes, largest, streams: u64::from(streams) })
    }

    /// Returns the payload bytes of the datagrams of frame `number`, counted over all streams, which take turns.
    /// Streams start at different places of the cycle, so that their large frames do not coincide.
    pub fn datagrams(&self, number: u64) -> impl Iterator<Item = u32> {
        let cycle = self.sizes.len() as u64;
        let (turn, stream) = (number / self.streams, number % self.streams);
        let size = self.sizes[((turn + stream * cycle / self.streams) % cycle) as usize];
        let count = size.div_ceil(self.largest);
        let last = size - (count - 1) * self.largest;
        // The last datagram takes bytes of the one before it if it has no room for a stamp.
        let lacking = if count > 1 { SHORTEST_STAMP.saturating_sub(last) } else { 0 };
        let largest = self.largest;
        (1..=count).map(move |part| match count - part {
            0 => last + lacking,
            1 => largest - lacking,
            _ => largest,
        })
    }

    /// Returns the maximum number of datagrams of a frame.
    pub fn longest(&self) -> u32 {
        self.sizes.iter().map(|size| size.div_ceil(self.largest)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn datagrams(frames: &Frames, number: u64) -> Vec<u32> {
        frames.datagrams(number).collect()
    }

    #[test]
    fn a_frame_is_split_and_streams_are_at_different_places_of_the_cycle() {
        let frames = Frames::new(vec![3000, 100, 1203, 200], 1200, 2).unwrap();
        assert_eq!(datagrams(&frames, 0), [1200, 1200, 600]);
        // The second stream begins half a cycle later.
        assert_eq!(datagrams(&frames, 1), [1191, 12]);
        assert_eq!(datagrams(&frames, 2), [100]);
        assert_eq!(datagrams(&frames, 8), [1200, 1200, 600]);
        assert_eq!(frames.longest(), 3);
    }

    #[test]
    fn frames_without_room_for_a_stamp_are_refused() {
        assert!(Frames::new(vec![], 1200, 1).is_none());
        assert!(Frames::new(vec![11], 1200, 1).is_none());
        assert!(Frames::new(vec![12], 23, 1).is_none());
    }

    proptest! {
        #[test]
        fn datagrams_have_the_bytes_of_their_frame(
            sizes in prop::collection::vec(12u32..20_000, 1..8), largest in 24u32..1500, streams in 1u16..5, number: u64
        ) {
            let frames = Frames::new(sizes.clone(), largest, streams).unwrap();
            let parts = datagrams(&frames, number);
            prop_assert!(sizes.contains(&parts.iter().sum()));
            prop_assert!(parts.iter().all(|part| (SHORTEST_STAMP..=largest).contains(part)));
            prop_assert!(parts.len() as u32 <= frames.longest());
        }
    }
}
