//! Common record of a packet in both file formats.

use crate::link::Link;

/// Maximum length of a block or packet, as in Wireshark.
pub const MOST: usize = 1 << 24;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// A packet in the form of the file.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Since 1970.
    pub time_ns: i64,
    /// Bytes of the frame on the wire, even if fewer were captured.
    pub length: u32,
    /// Link type of the frame.
    pub link: Link,
    /// The interface of the capture, numbered across all sections of the file.
    pub interface: u32,
    /// Offset of the captured bytes in the block that the reader has seen.
    pub start: usize,
    /// Number of captured bytes.
    pub kept: usize,
    /// Bytes of the block.
    pub block: usize,
}

/// The byte order of a file.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub big: bool,
}

impl Order {
    pub fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let value = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        if self.big {
            u16::from_be_bytes(value)
        } else {
            u16::from_le_bytes(value)
        }
    }

    pub fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let value = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        if self.big {
            u32::from_be_bytes(value)
        } else {
            u32::from_le_bytes(value)
        }
    }

    pub fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let value = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        if self.big {
            i64::from_be_bytes(value)
        } else {
            i64::from_le_bytes(value)
        }
    }
}

/// Returns the nanoseconds of a stamp in units of `ticks` per second, with an offset in seconds; none beyond 64 bits.
pub fn nanoseconds(stamp: u64, ticks: u64, later_s: i64) -> Option<i64> {
    let fraction = u128::from(stamp % ticks) * u128::from(SECOND) / u128::from(ticks);
    let seconds = i64::try_from(stamp / ticks).ok()?.checked_add(later_s)?;
    seconds.checked_mul(SECOND as i64)?.checked_add(i64::try_from(fraction).ok()?)
}
