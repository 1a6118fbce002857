//! Framings: which bytes of a packet are counted, and which take time on the line.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// How packets are framed on a link: which bytes are counted and which take line time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Framing {
    /// Ethernet II.
    Ethernet,
    /// PPP over a synchronous serial line.
    Ppp,
    /// Cisco HDLC over a synchronous serial line.
    Hdlc,
}

/// Layer-2 header that is counted with the IP packet, bytes.
pub const fn counted_header(framing: Framing) -> u32 {
    match framing {
        Framing::Ethernet => 14,
        // Address, control and protocol. Unconfirmed for HDLC.
        Framing::Ppp | Framing::Hdlc => 4,
    }
}

/// Shortest Ethernet frame, frame check sequence excluded.
const ETHERNET_MIN_FRAME: u32 = 60;

/// Frame check sequence 4, preamble with delimiter 8, gap between frames 12.
const ETHERNET_LINE_OVERHEAD: u32 = 24;

/// PPP and HDLC on the wire: header 4, frame check sequence 2, one flag shared with the next frame.
const SERIAL_LINE_OVERHEAD: u32 = 7;

/// Counted bytes and line bytes of a packet of `network_len` bytes behind `tags` VLAN tags.
pub(crate) fn framed(network_len: u32, tags: usize, framing: Framing) -> (u32, u32) {
    let network_len = network_len.min(u32::MAX / 2);
    match framing {
        Framing::Ethernet => {
            let frame = network_len + counted_header(framing) + 4 * tags as u32;
            (frame, frame.max(ETHERNET_MIN_FRAME) + ETHERNET_LINE_OVERHEAD)
        }
        Framing::Ppp | Framing::Hdlc => (network_len + counted_header(framing), network_len + SERIAL_LINE_OVERHEAD),
    }
}
