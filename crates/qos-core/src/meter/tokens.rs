//! Tokens, and the colours that they give to packets.

use crate::time::NANOS_PER_SECOND;

/// 10⁻⁹ bits in a byte: 512 000 000 bytes, the largest burst, fit in 64 bits.
pub(crate) const UNITS_PER_BYTE: u64 = 8 * NANOS_PER_SECOND;

/// The colour of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Within the committed rate and burst.
    Conform,
    /// Beyond it, within the excess.
    Exceed,
    /// Beyond both.
    Violate,
}

pub(crate) fn at_most(units: u128, limit: u64) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX).min(limit)
}
