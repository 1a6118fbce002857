//! Bytes as the decisions of a test; when they are used up all is 0.

/// Returns the remaining bytes.
#[derive(Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Returns whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// Returns the next two.
    pub fn word(&mut self) -> u16 {
        (u16::from(self.byte()) << 8) | u16::from(self.byte())
    }

    /// Returns the next `count`, or as many as there are.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(count.min(self.0.len()));
        self.0 = left;
        taken
    }
}
