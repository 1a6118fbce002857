//! Changes of TCP options.

use crate::wire::bytes::u16_at;
use crate::wire::checksum;
use crate::wire::ethernet::{ethertype, Layout};
use crate::wire::ip::{protocol, Ipv4};

/// Bytes of a TCP header without options.
const HEADER: usize = 20;
const SYN: u8 = 0x02;
const CHECKSUM: usize = 16;

const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;

/// Lowers the maximum segment size (RFC 9293, 3.7.1) in a SYN over IPv4 to at most `most` bytes, and updates the
/// checksum. Returns whether the frame changed: a frame without such a SYN, without the option or without a greater
/// size is not changed.
pub fn lower_mss(frame: &mut [u8], most: u16) -> bool {
    let Some((start, end)) = syn(frame) else { return false };
    let segment = &mut frame[start..end];
    let Some(at) = mss(segment) else { return false };
    let Some(asked) = u16_at(segment, at).filter(|asked| *asked > most) else { return false };
    segment[at..at + 2].copy_from_slice(&most.to_be_bytes());
    // At an odd offset its two bytes belong to different words of the sum, each to the other half.
    let (old, new) = if at % 2 == 0 { (asked, most) } else { (asked.swap_bytes(), most.swap_bytes()) };
    let sum = checksum::updated(u16::from_be_bytes([segment[CHECKSUM], segment[CHECKSUM + 1]]), old, new);
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Returns the start and end of the header of a SYN over IPv4 in a frame.
fn syn(frame: &[u8]) -> Option<(usize, usize)> {
    let found = Layout::of(frame)?;
    let packet = frame.get(found.network..).filter(|_| found.ethertype == ethertype::IPV4)?;
    let header = Ipv4::of(packet)?;
    if header.protocol() != protocol::TCP || header.later_fragment() {
        return None;
    }
    let segment = packet.get(header.len..header.total_len().min(packet.len()))?;
    let len = usize::from(segment.get(12)? >> 4) * 4;
    let whole = len >= HEADER && len <= segment.len() && segment[13] & SYN != 0;
    let start = found.network + header.len;
    whole.then_some((start, start + len))
}

/// Returns the offset of the maximum segment size in the header of a segment.
fn mss(segment: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    loop {
        match *segment.get(at)? {
            END_OF_OPTIONS => return None,
            NO_OPERATION => at += 1,
            kind => {
                let len = usize::from(*segment.get(at + 1)?);
                if len < 2 || at + len > segment.len() {
                    return None;
                }
                if kind == MAXIMUM_SEGMENT_SIZE && len == 4 {
                    return Some(at + 2);
                }
                at += len;
            }
        }
    }
}
