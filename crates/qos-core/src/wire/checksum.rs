//! The Internet checksum.

/// Returns the checksum of bytes in which a 16-bit word has changed (RFC 1624, equation 3).
pub(crate) fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}
