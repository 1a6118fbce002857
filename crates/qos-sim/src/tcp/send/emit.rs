//! Output of segments, with the information of the receiving half in each of them.

use crate::tcp::segment::Segment;
use qos_core::time::Time;
use qos_core::wire::ip::ecn;

/// Common fields of all segments that one end sends at one time: acknowledgement, window, timestamps. It has no room
/// for options, which most segments lack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub ack: u64,
    pub window: u64,
    pub ece: bool,
    pub ecn: u8,
    pub timestamps: Option<(u64, u64)>,
}

impl Header {
    /// Returns a segment without payload.
    pub fn segment(self) -> Segment {
        let Header { ack, window, ece, ecn, timestamps } = self;
        Segment { ack, window, has_ack: true, ece, ecn, timestamps, ..Segment::default() }
    }
}

/// Output of segments at one time.
pub(crate) struct Emit<'a> {
    now: Time,
    out: &'a mut Vec<Segment>,
    header: Header,
    used: bool,
}

impl Emit<'_> {
    pub fn new(now: Time, out: &mut Vec<Segment>, header: Header) -> Emit<'_> {
        Emit { now, out, header, used: false }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns whether a segment carried the acknowledgement.
    pub fn is_used(&self) -> bool {
        self.used
    }

    pub(super) fn send(&mut self, seq: u64, len: u32, fin: bool, push: bool, retransmission: bool) {
        self.used = true;
        // Only new data is sent as ECN-capable (RFC 3168 section 6.1.5).
        let ecn = if len > 0 && !retransmission { self.header.ecn } else { ecn::NOT_ECT };
        self.out.push(Segment { seq, len, fin, push, retransmission, ecn, ..self.header.segment() });
    }

    /// Returns whether the last segment reports that the window has been reduced.
    pub(super) fn signals_reduction(&mut self) {
        if let Some(last) = self.out.last_mut() {
            last.cwr = true;
        }
    }
}
