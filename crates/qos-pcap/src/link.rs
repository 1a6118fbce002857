//! Headers before the network layer's packet, by link type (<https://www.tcpdump.org/linktypes.html>).

use qos_core::wire::bytes::u16_at;
use qos_core::wire::ethernet::{ethertype, Layout};

const PPPOE_SESSION: u16 = 0x8864;
/// Bytes of a PPPoE header (RFC 2516).
const PPPOE_HEADER: usize = 6;
/// First bytes of a PPP frame in HDLC-like framing (RFC 1662): all stations, unnumbered information.
const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];
/// Bytes of the header of a cooked capture's second version.
const COOKED2_HEADER: usize = 20;
/// Unicast and broadcast addresses of Cisco's HDLC.
const CISCO_ADDRESSES: [u8; 2] = [0x0f, 0x8f];

/// Link type of an interface's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, with or without VLAN tags and PPPoE.
    Ethernet,
    /// PPP, with or without address and control field; or Cisco HDLC, recognised by its address.
    Ppp,
    /// Cisco's HDLC.
    Hdlc,
    /// No header: IP begins at once.
    Ip,
    /// Cooked captures of Linux, from the interface `any`, in both versions.
    Cooked,
    /// Version 2.
    Cooked2,
}

impl Link {
    /// Returns the link type of this number.
    ///
    /// # Errors
    /// The found and the expected contents.
    pub fn of(number: u16) -> Result<Link, String> {
        match number {
            1 => Ok(Link::Ethernet),
            9 | 50 => Ok(Link::Ppp),
            104 => Ok(Link::Hdlc),
            12 | 14 | 101 | 228 | 229 => Ok(Link::Ip),
            113 => Ok(Link::Cooked),
            276 => Ok(Link::Cooked2),
            _ => Err(format!(
                "found packets of link type {number}, expected 1 (Ethernet), 9 or 50 (PPP), 104 (HDLC), 101 (IP), 113 \
                 or 276 (Linux cooked)"
            )),
        }
    }

    /// Returns the interface index in a frame of a cooked capture; `None` for other link types.
    pub(crate) fn interface(self, frame: &[u8]) -> Option<u32> {
        let index = frame.get(4..8)?.first_chunk().copied()?;
        (self == Link::Cooked2).then(|| u32::from_be_bytes(index))
    }

    /// Returns the EtherType and offset of a frame's payload; none if it is truncated before.
    pub(crate) fn network(self, frame: &[u8]) -> Option<(u16, usize)> {
        match self {
            Link::Ethernet => {
                let found = Layout::of(frame)?;
                if found.ethertype != PPPOE_SESSION {
                    return Some((found.ethertype, found.network));
                }
                let at = found.network + PPPOE_HEADER;
                Some((of_ppp(u16_at(frame, at)?), at + 2))
            }
            Link::Ppp => {
                if frame.first().is_some_and(|first| CISCO_ADDRESSES.contains(first)) {
                    return Link::Hdlc.network(frame);
                }
                let at = if frame.starts_with(&ADDRESS_AND_CONTROL) { 2 } else { 0 };
                // A compressed protocol field is one odd byte.
                match *frame.get(at)? {
                    short if short & 1 == 1 => Some((of_ppp(short.into()), at + 1)),
                    _ => Some((of_ppp(u16_at(frame, at)?), at + 2)),
                }
            }
            Link::Hdlc => Some((u16_at(frame, 2)?, 4)),
            Link::Ip => {
                let version = frame.first()? >> 4;
                Some((if version == 6 { ethertype::IPV6 } else { ethertype::IPV4 }, 0))
            }
            Link::Cooked => Some((u16_at(frame, 14)?, 16)),
            // Only here the protocol comes first: a frame may be truncated between it and the end of the header.
            Link::Cooked2 => (frame.len() >= COOKED2_HEADER).then_some((u16_at(frame, 0)?, COOKED2_HEADER)),
        }
    }
}

/// Returns the EtherType of a PPP protocol; 0 if it is not IP.
fn of_ppp(protocol: u16) -> u16 {
    match protocol {
        0x0021 => ethertype::IPV4,
        0x0057 => ethertype::IPV6,
        _ => 0,
    }
}
