//! The older capture format (draft-ietf-opsawg-pcap): a header, then packets.

use crate::input::Input;
use crate::link::Link;
use crate::record::{nanoseconds, Order, Record, MOST};

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// A file of this format, after its header.
#[derive(Debug)]
pub struct Pcap {
    order: Order,
    ticks: u64,
    link: Link,
}

impl Pcap {
    /// Returns byte order and ticks per second if the file starts like a pcap file.
    pub fn recognise(first: &[u8]) -> Option<(Order, u64)> {
        match first {
            [0xd4, 0xc3, 0xb2, 0xa1, ..] => Some((Order { big: false }, 1_000_000)),
            [0xa1, 0xb2, 0xc3, 0xd4, ..] => Some((Order { big: true }, 1_000_000)),
            [0x4d, 0x3c, 0xb2, 0xa1, ..] => Some((Order { big: false }, 1_000_000_000)),
            [0xa1, 0xb2, 0x3c, 0x4d, ..] => Some((Order { big: true }, 1_000_000_000)),
            _ => None,
        }
    }

    pub fn new(input: &mut Input<'_>, order: Order, ticks: u64) -> Result<Pcap, String> {
        let header = input.peek(FILE_HEADER);
        if header.len() < FILE_HEADER {
            return Err(format!("found {} bytes, expected a pcap file", header.len()));
        }
        // The upper bits describe the FCS that frames may have.
        let link = Link::of((order.u32(header, 20) & 0xffff) as u16)?;
        input.pass(FILE_HEADER);
        Ok(Pcap { order, ticks, link })
    }

    pub fn next(&mut self, input: &mut Input<'_>) -> Result<Option<Record>, String> {
        let at = input.offset();
        let broken = || format!("the packet at byte {at} is malformed or truncated");
        let header = input.peek(PACKET_HEADER);
        if header.is_empty() {
            return Ok(None);
        }
        if header.len() < PACKET_HEADER {
            return Err(format!("{} bytes at the end do not form a packet", header.len()));
        }
        let [seconds, fraction, kept, length] = [0, 4, 8, 12].map(|place| self.order.u32(header, place));
        let kept = kept as usize;
        if kept > MOST {
            return Err(broken());
        }
        let block = PACKET_HEADER + kept;
        if input.peek(block).len() < block {
            return Err(broken());
        }
        let stamp = u64::from(seconds) * self.ticks + u64::from(fraction);
        let time_ns = nanoseconds(stamp, self.ticks, 0).ok_or_else(broken)?;
        Ok(Some(Record { time_ns, length, link: self.link, interface: 0, start: PACKET_HEADER, kept, block }))
    }
}
