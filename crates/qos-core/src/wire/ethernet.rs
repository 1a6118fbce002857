//! Ethernet II and the VLAN tags of IEEE 802.1Q.

use crate::wire::bytes::u16_at;

/// Bytes of an Ethernet II header without tags.
pub const HEADER: usize = 14;
/// Bytes of the two addresses, which are followed by tags or the EtherType.
pub const ADDRESSES: usize = 12;
/// Bytes of a VLAN tag.
pub const TAG: usize = 4;
/// Maximum number of parsed tags.
const MAX_TAGS: usize = 2;

/// EtherTypes.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// An IEEE 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// A service tag (IEEE 802.1ad).
    pub const SERVICE_VLAN: u16 = 0x88a8;
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Class of service, 0 to 7.
    pub cos: u8,
    /// VLAN, 0 to 4095.
    pub vlan: u16,
}

impl Tag {
    /// Returns the tag of a frame with the 802.1Q EtherType.
    pub fn of(frame: &[u8]) -> Option<Tag> {
        (u16_at(frame, ADDRESSES)? == ethertype::VLAN).then_some(())?;
        let control = u16_at(frame, ADDRESSES + 2)?;
        Some(Tag { cos: (control >> 13) as u8, vlan: control & 0x0fff })
    }

    /// Returns the tag's bytes, EtherType included.
    pub fn bytes(self) -> [u8; TAG] {
        let [a, b] = ethertype::VLAN.to_be_bytes();
        let [c, d] = ((u16::from(self.cos) << 13) | self.vlan).to_be_bytes();
        [a, b, c, d]
    }
}

/// Positions of the parts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The EtherType behind the tags.
    pub ethertype: u16,
    /// Offset of the packet.
    pub network: usize,
    /// Number of tags, at most two; `ethertype` may then be that of a further tag.
    pub tags: usize,
}

impl Layout {
    /// Parses any bytes; none if a header is truncated.
    pub fn of(frame: &[u8]) -> Option<Layout> {
        let mut at = ADDRESSES;
        for tags in 0..=MAX_TAGS {
            let found = u16_at(frame, at)?;
            if tags == MAX_TAGS || (found != ethertype::VLAN && found != ethertype::SERVICE_VLAN) {
                return Some(Layout { ethertype: found, network: at + 2, tags });
            }
            at += TAG;
        }
        None
    }
}

/// Writes a class of service into the outermost tag of a frame. Returns whether the frame changed: only one with a tag
/// does.
pub fn rewrite_cos(frame: &mut [u8], cos: u8) -> bool {
    match Layout::of(frame) {
        Some(found) if found.tags > 0 => {
            let byte = frame[HEADER] & 0x1f | ((cos & 0x07) << 5);
            let changed = byte != frame[HEADER];
            frame[HEADER] = byte;
            changed
        }
        _ => false,
    }
}
