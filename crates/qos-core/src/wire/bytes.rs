//! Numbers in frames.

/// Returns the 16 bits at an offset, in network byte order; `None` beyond the end.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}
