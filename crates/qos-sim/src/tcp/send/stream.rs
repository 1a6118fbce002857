//! Outgoing stream of bytes: acknowledged, sent and offered data, and the data that may be sent next.

/// Maximum number of offered bytes: practically endless, and sums still fit.
const ENDLESS: u64 = u64::MAX / 2;

/// State of the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The application may offer more.
    Unwanted,
    /// The FIN will be sent after the offered data.
    Waiting,
    Sent,
}

/// Part of the stream for one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub len: u32,
    pub fin: bool,
    /// Whether this is the end of the offered data.
    pub last: bool,
    /// Whether the segment is partial, for Minshall's rule.
    short: bool,
}

/// Sequence numbers of the stream.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// First byte not acknowledged.
    una: u64,
    /// Next byte to send.
    next: u64,
    /// End of the data offered by the application.
    offered: u64,
    /// Right edge of the other end's window.
    edge: u64,
    fin: Fin,
    /// End of the last segment sent that was not full (Minshall's variant of Nagle's rule).
    short_end: u64,
    /// Maximum number of sent and unacknowledged bytes.
    buffer: u64,
}

impl Outgoing {
    /// Returns a stream with `first` as its first byte and a closed window.
    pub fn new(first: u64, buffer: u64) -> Outgoing {
        Outgoing { una: first, next: first, offered: first, edge: first, fin: Fin::Unwanted, short_end: first, buffer }
    }

    /// Returns this unsent stream with a window that ends before `edge`.
    pub fn open(self, edge: u64) -> Outgoing {
        Outgoing { edge, ..self }
    }

    /// Returns the first unacknowledged byte.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Returns the next byte to send.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Offers further bytes of the application.
    pub fn offer(&mut self, bytes: u64) {
        assert!(!self.is_closing(), "offered {bytes} bytes after close");
        self.offered = self.offered.saturating_add(bytes).min(ENDLESS);
    }

    /// Withdraws offered data that has not been sent yet.
    pub fn drop_unsent(&mut self) {
        self.offered = self.next.min(self.offered);
    }

    /// Requests a FIN after the offered data.
    pub fn close(&mut self) {
        self.fin = Fin::Waiting;
    }

    /// Returns whether the application has closed the stream.
    pub fn is_closing(&self) -> bool {
        self.fin != Fin::Unwanted
    }

    /// Returns whether the other end has acknowledged everything, including the FIN.
    pub fn is_finished(&self) -> bool {
        self.fin == Fin::Sent && self.una == self.end()
    }

    /// Returns the sequence number after all offered data and the FIN.
    pub(super) fn end(&self) -> u64 {
        self.offered + u64::from(self.is_closing())
    }

    /// Returns whether data waits to be sent.
    pub(super) fn waits(&self) -> bool {
        self.next < self.end()
    }

    /// Returns the remaining bytes of the other end's window.
    pub(super) fn room(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// Returns whether the window is open beyond the sent data.
    pub(super) fn has_room(&self) -> bool {
        self.edge > self.next
    }

    /// Returns whether there is room for the waiting data, up to a full segment.
    pub(super) fn fits(&self, mss: u32) -> bool {
        self.room() >= (self.end() - self.next).min(u64::from(mss))
    }

    /// Returns whether a sent segment is beyond the window, which may have shrunk. The first segment is sent anyway.
    pub(super) fn is_outside(&self, seq: u64, end: u64) -> bool {
        end > self.edge && seq != self.una
    }

    /// Returns the next segment, if window, send buffer and Nagle's rule allow it; the rule does not apply to a
    /// `probe`.
    pub(super) fn piece(&self, mss: u32, probe: bool) -> Option<Piece> {
        let left = self.offered - self.next;
        let len = left.min(u64::from(mss));
        let last = len == left;
        let fin = last && self.is_closing();
        // The FIN is sent even into a full window, as the receiver needs no room for it.
        if self.next + len > self.edge || (len > 0 && self.next - self.una >= self.buffer) {
            return None;
        }
        let full = len == u64::from(mss);
        if !full && !fin && !probe && self.short_end > self.una {
            return None;
        }
        Some(Piece { len: len as u32, fin, last, short: !full && len > 0 })
    }

    /// Returns the data that fits into the small room of a window that was closed.
    pub(super) fn piece_for_window(&self, mss: u32) -> Piece {
        let len = self.room().min(self.offered - self.next).min(u64::from(mss)) as u32;
        Piece { len, fin: false, last: true, short: false }
    }

    /// Records the transmission of a piece; returns its start and end.
    pub(super) fn record_sent(&mut self, piece: &Piece) -> (u64, u64) {
        let start = self.next;
        self.next += u64::from(piece.len) + u64::from(piece.fin);
        if piece.fin {
            self.fin = Fin::Sent;
        }
        if piece.short {
            self.short_end = self.next;
        }
        (start, self.next)
    }

    /// Returns whether a window of `window` bytes after `ack` ends after the present one.
    pub(super) fn is_widened_by(&self, ack: u64, window: u64) -> bool {
        ack + window > self.edge
    }

    /// Applies an acknowledgement that is not old. Only one that advances may shrink the window.
    pub(super) fn acknowledge(&mut self, ack: u64, window: u64) {
        self.edge = if ack > self.una { ack + window } else { self.edge.max(ack + window) };
        self.una = ack;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nagle_delays_a_short_segment_but_not_the_fin() {
        let mut stream = Outgoing::new(1, 10_000).open(1 + 10_000);
        stream.offer(100);
        let first = stream.piece(1000, false).expect("nothing short is out");
        assert_eq!(stream.record_sent(&first), (1, 101));
        stream.offer(100);
        assert_eq!(stream.piece(1000, false), None);
        assert!(stream.piece(1000, true).is_some(), "a probe does not wait");
        stream.close();
        let fin = stream.piece(1000, false).expect("a FIN goes out at once");
        assert_eq!(stream.record_sent(&fin), (101, 202));
        assert!(!stream.waits() && !stream.is_finished());
        stream.acknowledge(202, 10_000);
        assert!(stream.is_finished());
    }

    #[test]
    fn a_duplicate_does_not_shrink_the_window() {
        let mut stream = Outgoing::new(1, 10_000).open(1001);
        stream.acknowledge(1, 500);
        assert_eq!(stream.room(), 1000);
        stream.acknowledge(1, 2000);
        assert_eq!(stream.room(), 2000);
    }
}
