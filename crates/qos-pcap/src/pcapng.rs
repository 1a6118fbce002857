//! The newer capture format (draft-ietf-opsawg-pcapng): blocks, some of which are packets.

use crate::input::Input;
use crate::link::Link;
use crate::record::{nanoseconds, Order, Record, MOST};

/// First bytes of a section, read in either byte order.
pub const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE: u32 = 1;
const OBSOLETE: u32 = 2;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;
/// Length of a block's head and tail: type and length before, length after.
const HEAD: usize = 8;
const TAIL: usize = 4;
const PACKET: usize = HEAD + 20;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
/// Maximum ticks per second: powers of ten and of two below 2⁶².
const MOST_DECIMALS: u8 = 18;
const MOST_BITS: u8 = 61;

/// An interface in a file.
#[derive(Debug)]
struct Interface {
    /// Link type, or the reason why its packets cannot be read.
    link: Result<Link, String>,
    name: String,
    at: u64,
    ticks: u64,
    later_s: i64,
}

/// A file of this format.
#[derive(Debug)]
pub struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    /// Interfaces of all sections so far.
    names: Vec<String>,
    /// Names or numbers of the interfaces that matter; all of them if empty.
    wanted: Vec<String>,
}

impl Pcapng {
    pub fn new(wanted: &[String]) -> Pcapng {
        let wanted = wanted.to_vec();
        Pcapng { order: Order { big: false }, interfaces: Vec::new(), names: Vec::new(), wanted }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn next(&mut self, input: &mut Input<'_>) -> Result<Option<Record>, String> {
        loop {
            let at = input.offset();
            let broken = || format!("the block at byte {at} is malformed or truncated");
            let head = input.peek(HEAD + TAIL);
            if head.is_empty() {
                return Ok(None);
            }
            if head.len() < HEAD + TAIL {
                return Err(format!("{} bytes at the end do not form a block", head.len()));
            }
            if head.starts_with(&SECTION) {
                self.interfaces.clear();
                self.order = match head[8..12] {
                    [0x4d, 0x3c, 0x2b, 0x1a] => Order { big: false },
                    [0x1a, 0x2b, 0x3c, 0x4d] => Order { big: true },
                    _ => return Err(broken()),
                };
            }
            let order = self.order;
            let (kind, length) = (order.u32(head, 0), order.u32(head, 4) as usize);
            if length < HEAD + TAIL || length % 4 != 0 || length > MOST {
                return Err(broken());
            }
            let block = input.peek(length);
            if block.len() < length {
                return Err(broken());
            }
            match kind {
                INTERFACE => {
                    let found =
                        interface(order, block, at).map_err(|why| format!("the interface at byte {at}: {why}"))?;
                    self.names.push(found.name.clone());
                    self.interfaces.push(found);
                }
                ENHANCED | OBSOLETE => {
                    if let Some(found) = self.packet(block, kind, at)? {
                        return Ok(Some(found));
                    }
                }
                SIMPLE => return Err(format!("the packet at byte {at} has no timestamp (a simple packet block)")),
                _ => {}
            }
            input.pass(length);
        }
    }

    /// Returns the packet of a block; `None` if its link type is unknown and its interface is not selected.
    fn packet(&self, block: &[u8], kind: u32, at: u64) -> Result<Option<Record>, String> {
        let order = self.order;
        if block.len() < PACKET + TAIL {
            return Err(format!("the packet at byte {at} is malformed"));
        }
        let number = if kind == OBSOLETE { u32::from(order.u16(block, 8)) } else { order.u32(block, 8) };
        let Some(interface) = self.interfaces.get(number as usize) else {
            return Err(format!("the packet at byte {at} has interface {number}, which the file does not describe"));
        };
        let stamp = (u64::from(order.u32(block, 12)) << 32) | u64::from(order.u32(block, 16));
        let (kept, length) = (order.u32(block, 20) as usize, order.u32(block, 24));
        if kept > block.len() - PACKET - TAIL {
            return Err(format!("the packet at byte {at} is longer than its block"));
        }
        let time_ns = nanoseconds(stamp, interface.ticks, interface.later_s)
            .ok_or_else(|| format!("the packet at byte {at} has an impossible timestamp"))?;
        let before = self.names.len() - self.interfaces.len();
        let place = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(number);
        let link = match &interface.link {
            Ok(link) => *link,
            Err(_) if !self.matters(&interface.name, place) => return Ok(None),
            Err(why) => {
                let name = if interface.name.is_empty() { String::new() } else { format!("{:?} ", interface.name) };
                return Err(format!("the interface {name}at byte {}: {why}", interface.at));
            }
        };
        Ok(Some(Record { time_ns, length, link, interface: place, start: PACKET, kept, block: block.len() }))
    }

    fn matters(&self, name: &str, number: u32) -> bool {
        let (number, full) = (number.to_string(), format!("{name}#{number}"));
        self.wanted.is_empty() || self.wanted.iter().any(|each| *each == name || *each == number || *each == full)
    }
}

fn interface(order: Order, block: &[u8], at: u64) -> Result<Interface, String> {
    if block.len() < 20 {
        return Err("it is malformed".to_owned());
    }
    let link = Link::of(order.u16(block, 8));
    let mut found = Interface { link, name: String::new(), at, ticks: 1_000_000, later_s: 0 };
    let mut rest = &block[16..block.len() - TAIL];
    while rest.len() >= 4 {
        let (code, size) = (order.u16(rest, 0), usize::from(order.u16(rest, 2)));
        let Some(value) = rest.get(4..4 + size) else { break };
        match (code, value) {
            (0, _) => break,
            (NAME, _) => found.name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            (RESOLUTION, &[resolution]) => found.ticks = ticks(resolution)?,
            (OFFSET, _) if size == 8 => found.later_s = order.i64(value, 0),
            _ => {}
        }
        rest = rest.get(4 + size.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(found)
}

fn ticks(resolution: u8) -> Result<u64, String> {
    let exponent = resolution & 0x7f;
    match resolution & 0x80 {
        0 if exponent <= MOST_DECIMALS => Ok(10_u64.pow(exponent.into())),
        0x80 if exponent <= MOST_BITS => Ok(1 << exponent),
        _ => Err(format!("found timestamps of resolution {resolution:#04x}, expected at most 18 decimals or 61 bits")),
    }
}
