//! Framings: the counted bytes of a packet, and its bytes on the line.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::wire::ethernet;

/// Framing of packets on a link: the counted bytes and the line time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "kebab-case"))]
pub enum Framing {
    /// Ethernet II.
    Ethernet,
    /// PPP over a synchronous serial line.
    Ppp,
    /// Cisco HDLC over a synchronous serial line.
    Hdlc,
    /// PPP over Ethernet II (RFC 2516).
    Pppoe,
    /// Cells: AAL5 with LLC/SNAP, routed (RFC 2684, `encapsulation aal5snap`).
    Aal5snap,
    /// Cells: AAL5 with the protocol given by the circuit, routed (RFC 2684, `encapsulation aal5mux ip`).
    Aal5mux,
    /// Cells: PPP over AAL5 with LLC (RFC 2364).
    PppoaSnap,
    /// Cells: PPP over AAL5, given by the circuit (RFC 2364, `encapsulation aal5mux ppp`).
    PppoaMux,
    /// Cells: PPP over bridged Ethernet with LLC/SNAP and without the FCS (RFC 2684, RFC 2516).
    PppoeoaSnap,
}

/// Hardware of a framing, which decides the possible configuration of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    Ethernet,
    Serial,
    Atm,
}

impl Framing {
    /// Returns whether packets of an interface with this encapsulation are understood on a link with another framing.
    /// LLC/SNAP identifies the content of each packet.
    pub(crate) fn carries_encapsulation(self, link: Framing) -> bool {
        match (self.medium(), link) {
            (Medium::Atm, Framing::PppoaSnap | Framing::PppoeoaSnap) => self == link || self == Framing::Aal5snap,
            (Medium::Atm, _) => self == link,
            (medium, _) => medium == link.medium(),
        }
    }

    pub(crate) const fn medium(self) -> Medium {
        match self {
            Framing::Ethernet | Framing::Pppoe => Medium::Ethernet,
            Framing::Ppp | Framing::Hdlc => Medium::Serial,
            Framing::Aal5snap | Framing::Aal5mux | Framing::PppoaSnap | Framing::PppoaMux | Framing::PppoeoaSnap => {
                Medium::Atm
            }
        }
    }
}

/// Bytes that IOS counts for a packet on a virtual circuit in addition to IP and encapsulation: its internal header,
/// "internal virtual circuit encapsulation bytes" in Cisco's document 10420, where 60 bytes of IP with LLC/SNAP count
/// 72. With other encapsulations \[I\].
pub const ATM_CORE_HEADER: u32 = 4;

/// PPP's protocol field.
const PPP: u32 = 2;
/// Bytes of PPPoE's header and PPP's protocol field.
const PPPOE: u32 = 6 + PPP;
/// LLC and SNAP of a routed protocol: `aa-aa-03`, an organisation, an EtherType.
const SNAP: u32 = 8;
/// LLC of PPP: `fe-fe-03-cf`.
const LLC_PPP: u32 = 4;
/// The pad between SNAP, or the beginning, and a bridged Ethernet header.
const BRIDGED_PAD: u32 = 2;
/// An Ethernet II header.
const ETHERNET: u32 = ethernet::HEADER as u32;

/// Returns the layer-2 header that is counted with the IP packet, bytes. On ATM it is the encapsulation and the
/// router's own header; AAL5's padding and trailer and the cell headers, which the hardware adds, are not counted.
pub const fn counted_header(framing: Framing) -> u32 {
    match framing {
        Framing::Ethernet => ETHERNET,
        // Address, control and protocol. Unconfirmed for HDLC.
        Framing::Ppp | Framing::Hdlc => 4,
        Framing::Pppoe => ETHERNET + PPPOE,
        Framing::Aal5snap => SNAP + ATM_CORE_HEADER,
        Framing::Aal5mux => ATM_CORE_HEADER,
        Framing::PppoaSnap => LLC_PPP + PPP + ATM_CORE_HEADER,
        Framing::PppoaMux => PPP + ATM_CORE_HEADER,
        Framing::PppoeoaSnap => SNAP + BRIDGED_PAD + ETHERNET + PPPOE + ATM_CORE_HEADER,
    }
}

/// Shortest Ethernet frame, without the FCS.
const ETHERNET_MIN_FRAME: u32 = 60;

/// FCS 4, preamble with delimiter 8, interframe gap 12.
const ETHERNET_LINE_OVERHEAD: u32 = 24;

/// PPP and HDLC on the wire: header 4, FCS 2, one flag shared with the next frame.
const SERIAL_LINE_OVERHEAD: u32 = 7;

/// AAL5's trailer (ITU-T I.363.5), which ends the last cell.
const AAL5_TRAILER: u32 = 8;

/// A cell (ITU-T I.361), and its payload.
pub(crate) const CELL: u32 = 53;
pub(crate) const CELL_PAYLOAD: u32 = 48;

/// Returns the number of bytes of the AAL5 cells that contain this many bytes.
fn cells(bytes: u32) -> u32 {
    if mistaken!(CellsRoundedDown) {
        return (bytes + AAL5_TRAILER) / CELL_PAYLOAD * CELL;
    }
    (bytes + AAL5_TRAILER).div_ceil(CELL_PAYLOAD) * CELL
}

/// Returns the counted bytes and line bytes of a packet of `network_len` bytes with `tags` VLAN tags.
#[inline]
pub(crate) fn framed(network_len: u32, tags: usize, framing: Framing) -> (u32, u32) {
    let network_len = network_len.min(u32::MAX / 2);
    match framing {
        // The case of most frames, so that callers in other crates inline only this.
        Framing::Ethernet => ethernet_frame(network_len + ETHERNET, tags),
        _ => framed_otherwise(network_len, tags, framing),
    }
}

/// Returns the counted bytes and line bytes with any other framing.
#[inline(never)]
fn framed_otherwise(network_len: u32, tags: usize, framing: Framing) -> (u32, u32) {
    match framing {
        Framing::Ppp | Framing::Hdlc => {
            let overhead = match SERIAL_LINE_OVERHEAD {
                _ if mistaken!(SerialOverheadShort) => 4,
                _ if mistaken!(SerialOverheadLong) => 9,
                overhead => overhead,
            };
            (network_len + counted_header(framing), network_len + overhead)
        }
        Framing::Pppoe => ethernet_frame(network_len + ETHERNET + PPPOE, tags),
        _ => {
            let counted = network_len + counted_header(framing);
            (counted, cells(counted - ATM_CORE_HEADER))
        }
    }
}

#[inline]
fn ethernet_frame(untagged: u32, tags: usize) -> (u32, u32) {
    let tags = if tags > 0 && mistaken!(TagUncounted) { 0 } else { tags };
    let frame = untagged + 4 * tags as u32;
    let overhead = if mistaken!(EthernetOverheadShort) { 4 } else { ETHERNET_LINE_OVERHEAD };
    (frame, frame.max(ETHERNET_MIN_FRAME) + overhead)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP acknowledgement of 40 bytes, a packet of 1500 bytes, and the longest packet of a cell more or less.
    #[test]
    fn packets_take_whole_cells() {
        for (framing, header, len, line_cells) in [
            // 40 + 8 + 8 = 56.
            (Framing::Aal5snap, 12, 40, 2),
            // 40 + 8 = 48.
            (Framing::Aal5mux, 4, 40, 1),
            (Framing::Aal5mux, 4, 41, 2),
            (Framing::PppoaMux, 6, 40, 2),
            (Framing::PppoaSnap, 10, 40, 2),
            // 40 + 32 + 8 = 80.
            (Framing::PppoeoaSnap, 36, 40, 2),
            // 1500 + 8 + 8 = 1516, of 1536; 1500 + 2 + 8 = 1510.
            (Framing::Aal5snap, 12, 1500, 32),
            (Framing::PppoaMux, 6, 1500, 32),
            // 1492 + 32 + 8 = 1532.
            (Framing::PppoeoaSnap, 36, 1492, 32),
            (Framing::PppoeoaSnap, 36, 1497, 33),
        ] {
            assert_eq!(framed(len, 0, framing), (len + header, 53 * line_cells), "{framing:?} {len}");
        }
    }

    #[test]
    fn frames_with_a_session_count_eight_bytes_more() {
        assert_eq!(framed(1492, 0, Framing::Pppoe), (1514, 1538));
        assert_eq!(framed(40, 0, Framing::Pppoe), (62, 86));
        assert_eq!(framed(1492, 1, Framing::Pppoe), (1518, 1542));
    }

    /// With LLC/SNAP a packet carries its type: that encapsulation understands PPP and bridged frames behind it.
    #[test]
    fn encapsulations_accept_their_own_medium_and_snap() {
        let all = [
            Framing::Aal5snap,
            Framing::Aal5mux,
            Framing::PppoaSnap,
            Framing::PppoaMux,
            Framing::PppoeoaSnap,
            Framing::Ethernet,
            Framing::Ppp,
        ];
        for own in all {
            for link in all {
                let behind = matches!(link, Framing::PppoaSnap | Framing::PppoeoaSnap) && own == Framing::Aal5snap;
                assert_eq!(own.carries_encapsulation(link), own == link || behind, "{own:?} {link:?}");
            }
        }
        assert!(
            Framing::Ppp.carries_encapsulation(Framing::Hdlc)
                && Framing::Ethernet.carries_encapsulation(Framing::Pppoe)
        );
    }
}
