//! Buffers for the frames that the engine holds.

use crate::frame::LONGEST;

/// A frame in the pool.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    buffer: u32,
    length: u16,
}

/// Buffers of one size, created when needed and reused. Its growth is bounded by the limits of the engine's queues.
#[derive(Debug, Default)]
pub struct FramePool {
    #[expect(clippy::vec_box, reason = "growing must not copy all frames: that would stall the data plane")]
    buffers: Vec<Box<[u8; LONGEST]>>,
    free: Vec<u32>,
}

impl FramePool {
    /// Copies a frame to the pool.
    ///
    /// # Panics
    /// If it is longer than [`LONGEST`].
    pub fn put(&mut self, bytes: &[u8]) -> Frame {
        let buffer = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Box::new([0; LONGEST]));
            (self.buffers.len() - 1) as u32
        });
        self.buffers[buffer as usize][..bytes.len()].copy_from_slice(bytes);
        Frame { buffer, length: bytes.len() as u16 }
    }

    /// Returns a frame's bytes.
    pub fn get(&self, frame: &Frame) -> &[u8] {
        &self.buffers[frame.buffer as usize][..usize::from(frame.length)]
    }

    /// Returns a frame's bytes mutably.
    pub fn get_mut(&mut self, frame: &Frame) -> &mut [u8] {
        &mut self.buffers[frame.buffer as usize][..usize::from(frame.length)]
    }

    /// Shortens a frame to this length.
    pub fn truncate(&self, frame: &mut Frame, length: usize) {
        debug_assert!(length <= usize::from(frame.length));
        frame.length = length as u16;
    }

    /// Returns a frame's buffer to the pool.
    pub fn free(&mut self, frame: Frame) {
        self.free.push(frame.buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_buffers_are_reused() {
        let mut pool = FramePool::default();
        let (a, b) = (pool.put(b"first"), pool.put(b"second"));
        assert_eq!((pool.get(&a), pool.get(&b)), (&b"first"[..], &b"second"[..]));
        pool.free(a);
        let c = pool.put(b"3");
        assert_eq!(
            (pool.get(&c), pool.get(&b), pool.free.len(), pool.buffers.len()),
            (&b"3"[..], &b"second"[..], 0, 2)
        );
    }
}
