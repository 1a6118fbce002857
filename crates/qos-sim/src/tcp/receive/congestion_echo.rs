//! Receiving half of explicit congestion notification (RFC 3168 section 6.1.3): the echo in every acknowledgement.

use crate::tcp::segment::Segment;
use qos_core::wire::ip::ecn;

/// Congestion information in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The segment requires no immediate acknowledgement.
    Nothing,
    /// A mark arrived, the first since the window was reduced; or a segment seems to be a retransmission.
    Congestion,
    /// The other end has reduced its window.
    Reduced,
}

/// State of the congestion echo.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CongestionEcho {
    echoes: bool,
    /// Whether an ECN-capable segment has arrived: later segments that are not ECN-capable are retransmissions (Linux).
    seen: bool,
}

impl CongestionEcho {
    /// Returns whether acknowledgements carry ECN-Echo: until the other end reports that it has reduced its window.
    pub fn echoes(&self) -> bool {
        self.echoes
    }

    /// Handles the flags of a segment with payload.
    pub fn receive_mark(&mut self, segment: &Segment) -> Heard {
        if segment.len == 0 {
            return Heard::Nothing;
        }
        if segment.cwr {
            self.echoes = false;
        }
        let first = segment.ecn == ecn::CE && !self.echoes;
        let hurried = first || (segment.ecn == ecn::NOT_ECT && self.seen);
        self.echoes |= segment.ecn == ecn::CE;
        self.seen |= segment.ecn != ecn::NOT_ECT;
        match (segment.cwr, hurried) {
            (true, _) => Heard::Reduced,
            (false, true) => Heard::Congestion,
            (false, false) => Heard::Nothing,
        }
    }
}
