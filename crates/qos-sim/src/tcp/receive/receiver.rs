//! Receiving half: reassembly, SACK blocks, and the window.

use crate::tcp::agreed::Agreed;
use crate::tcp::segment::{SackBlock, SackBlocks, Segment};
use crate::tcp::settings::Settings;
use qos_core::time::{Duration, Time};
use std::collections::VecDeque;

/// Minimum segment size that increases the window (Linux).
const LEAST_GROWING: u64 = 128;

/// Size of the initial window in segments (Linux TCP_INIT_CWND).
const INITIAL_SEGMENTS: u64 = 10;

/// Effect of a segment on the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The segment has no sequence number.
    Empty,
    /// The next in order.
    InOrder {
        /// Whether the segment filled the last gap.
        filled: bool,
    },
    /// After a gap.
    OutOfOrder,
    /// Had before, whole.
    Duplicate,
    /// Beyond the window, dropped.
    BeyondWindow,
}

/// Data received from the other end.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    next: u64,
    /// Ranges of bytes after gaps, in ascending order and not adjacent.
    gaps: VecDeque<SackBlock>,
    /// Blocks by the time of their last arrival, latest first: the order in which they are reported (RFC 2018).
    recent: [SackBlock; 4],
    recent_used: usize,
    duplicate: Option<SackBlock>,
    /// Sequence number after the FIN, if it has arrived.
    fin: Option<u64>,
    /// Right edge of the window that was last offered; it never moves back.
    edge: u64,
    window: ReceiveWindow,
    sack: bool,
    dsack: bool,
    timestamps: bool,
}

impl Receiver {
    /// Creates a receiver with `first` as its first byte of payload.
    pub(crate) fn new(settings: &Settings, first: u64, agreed: &Agreed) -> Receiver {
        Receiver {
            next: first,
            gaps: VecDeque::new(),
            recent: [SackBlock::default(); 4],
            recent_used: 0,
            duplicate: None,
            fin: None,
            edge: first + settings.offered_at_first(),
            window: ReceiveWindow::new(settings, first),
            sack: agreed.sack,
            dsack: settings.dsack && agreed.sack,
            timestamps: agreed.timestamps,
        }
    }

    /// Returns the next byte expected.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether there is data after a gap.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Returns whether the other end has closed and everything has arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next >= fin)
    }

    /// Returns the number of payload bytes that the application has; `first` is the number of the first.
    pub(crate) fn payload_since(&self, first: u64) -> u64 {
        self.next - first - u64::from(self.is_finished())
    }

    /// Handles a segment.
    pub(crate) fn accept(&mut self, now: Time, segment: &Segment) -> Arrival {
        let (start, end) = (segment.seq, segment.end());
        if start == end {
            return Arrival::Empty;
        }
        if end <= self.next {
            self.report_duplicate(start, end);
            return Arrival::Duplicate;
        }
        if start + u64::from(segment.len) > self.edge {
            return Arrival::BeyondWindow;
        }
        if segment.fin {
            self.fin = Some(end);
        }
        if let Some((_, echo)) = segment.timestamps.filter(|_| self.timestamps) {
            self.window.take_echo(now, Time(echo));
        }
        if start > self.next {
            if !self.keep(start, end) {
                return Arrival::Duplicate;
            }
            if self.sack {
                // The window stays without SACK, so that duplicate acknowledgements do not look like window updates.
                self.window.grow(u64::from(segment.len));
            }
            return Arrival::OutOfOrder;
        }
        if start < self.next {
            self.report_duplicate(start, self.next);
        }
        let had_gaps = self.has_gaps();
        self.next = end;
        while let Some(block) = self.gaps.front().filter(|block| block.start <= self.next).copied() {
            if block.start < self.next {
                self.report_duplicate(block.start, block.end.min(self.next));
            }
            self.next = self.next.max(block.end);
            self.gaps.pop_front();
        }
        if had_gaps {
            self.forget_delivered();
        }
        let beyond = self.gaps.back().map_or(0, |block| block.end - self.next);
        self.window.take_delivered(now, self.next, u64::from(segment.len), beyond);
        Arrival::InOrder { filled: had_gaps && self.gaps.is_empty() }
    }

    /// Stores bytes after a gap. Returns false if all of them were present.
    fn keep(&mut self, start: u64, end: u64) -> bool {
        // Blocks that end before this one begins stay unchanged.
        let first = self.gaps.partition_point(|block| block.end < start);
        let mut merged = SackBlock { start, end };
        let mut last = first;
        while let Some(block) = self.gaps.get(last).filter(|block| block.start <= end).copied() {
            let common = SackBlock { start: block.start.max(start), end: block.end.min(end) };
            if common.start < common.end {
                self.report_duplicate(common.start, common.end);
            }
            if block.start <= start && block.end >= end {
                self.note_recent(block);
                return false;
            }
            merged.start = merged.start.min(block.start);
            merged.end = merged.end.max(block.end);
            last += 1;
        }
        if last == first {
            self.gaps.insert(first, merged);
        } else {
            self.gaps[first] = merged;
            self.gaps.drain(first + 1..last);
        }
        self.note_recent(merged);
        true
    }

    fn note_recent(&mut self, block: SackBlock) {
        let mut kept = [SackBlock::default(); 4];
        kept[0] = block;
        let mut used = 1;
        for old in &self.recent[..self.recent_used] {
            let covered = old.start >= block.start && old.end <= block.end;
            if !covered && used < kept.len() {
                kept[used] = *old;
                used += 1;
            }
        }
        self.recent = kept;
        self.recent_used = used;
    }

    fn forget_delivered(&mut self) {
        let mut used = 0;
        for i in 0..self.recent_used {
            if self.recent[i].start >= self.next {
                self.recent[used] = self.recent[i];
                used += 1;
            }
        }
        self.recent_used = used;
    }

    fn report_duplicate(&mut self, start: u64, end: u64) {
        if self.dsack && start < end {
            self.duplicate = Some(SackBlock { start, end });
        }
    }

    /// Returns the SACK option of the next acknowledgement, which reports each duplicate once.
    pub(crate) fn sack_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(duplicate) = self.duplicate.take() {
            blocks.push(duplicate, self.timestamps);
        }
        if self.sack {
            for block in &self.recent[..self.recent_used] {
                blocks.push(*block, self.timestamps);
            }
        }
        blocks
    }

    /// Returns the window to offer now, from the next expected byte.
    pub(crate) fn offer_window(&mut self) -> u64 {
        self.edge = self.edge.max(self.next + self.window.bytes());
        self.edge - self.next
    }

    /// Returns whether the window has grown since the last call.
    pub(crate) fn window_grew(&mut self) -> bool {
        std::mem::take(&mut self.window.grew)
    }

    /// Returns the receiver's smoothed round trip, which limits the delay of SACKs.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.window.round_trip
    }
}

/// The window: it begins small and grows with the arriving data, at most to twice the data of a round trip and to the
/// buffer.
///
/// The application reads everything at once. The receiver measures the round trip by the echo of a timestamp, otherwise
/// by the minimum time in which a whole window arrived, as in Linux.
#[derive(Clone, Debug)]
struct ReceiveWindow {
    /// Window that may be offered at present (Linux rcv_ssthresh).
    allowed: u64,
    /// Limit for the growth of `allowed` (Linux window_clamp).
    clamp: u64,
    /// `allowed` grew.
    grew: bool,
    buffer: u64,
    mss: u64,
    /// Maximum number of bytes in a round trip so far.
    most_in_round: u64,
    round_start: Option<Time>,
    round_first: u64,
    round_trip: Option<Duration>,
    measured_from: Option<(Time, u64)>,
    last_echo: Time,
}

impl ReceiveWindow {
    fn new(settings: &Settings, first: u64) -> ReceiveWindow {
        let initial = settings.offered_at_first();
        ReceiveWindow {
            allowed: initial,
            clamp: initial.max(settings.initial_receive_clamp.min(settings.receive_buffer)),
            grew: false,
            buffer: settings.receive_buffer,
            mss: u64::from(settings.mss),
            most_in_round: initial.min(INITIAL_SEGMENTS * u64::from(settings.mss)),
            round_start: None,
            round_first: first,
            round_trip: None,
            measured_from: None,
            last_echo: Time(0),
        }
    }

    fn bytes(&self) -> u64 {
        self.allowed
    }

    /// Handles payload in order, up to `next` (exclusive); `beyond` bytes from there on end the data after gaps.
    fn take_delivered(&mut self, now: Time, next: u64, len: u64, beyond: u64) {
        self.measure(now, next);
        self.grow(len);
        let Some(round_trip) = self.round_trip else { return };
        let start = *self.round_start.get_or_insert(now);
        if now.since(start) < round_trip {
            return;
        }
        let copied = next - self.round_first;
        if copied > self.most_in_round {
            // Twice as much, because this is a round trip late, and twice the gain of a sender in slow start per round
            // trip.
            let twice = u128::from(2 * copied);
            let gain = twice * u128::from(copied - self.most_in_round) / u128::from(self.most_in_round.max(1));
            let window = u64::try_from(twice + 2 * gain).unwrap_or(u64::MAX).saturating_add(beyond);
            self.clamp = self.clamp.max(window).min(self.buffer);
            self.most_in_round = copied;
        }
        self.round_start = Some(now);
        self.round_first = next;
    }

    fn grow(&mut self, len: u64) {
        if len >= LEAST_GROWING && self.allowed < self.clamp {
            self.allowed = (self.allowed + 2 * self.mss).min(self.clamp);
            self.grew = true;
        }
    }

    /// Measures the round trip by a new echo of a time stamp.
    fn take_echo(&mut self, now: Time, echo: Time) {
        if echo > self.last_echo {
            self.last_echo = echo;
            let sample = now.since(echo).0;
            // A shorter one counts at once (Linux since 6.16), a longer one by an eighth.
            let smoothed = self.round_trip.map_or(sample, |known| sample.min(known.0 - known.0 / 8 + sample / 8));
            self.round_trip = Some(Duration(smoothed));
        }
    }

    /// Measures the round trip by the time in which a whole window arrived, which is an upper limit; the minimum
    /// counts.
    fn measure(&mut self, now: Time, next: u64) {
        if self.last_echo > Time(0) {
            return;
        }
        match self.measured_from {
            Some((_, until)) if next < until => {}
            Some((start, _)) => {
                let took = now.since(start);
                self.round_trip = Some(self.round_trip.map_or(took, |known| known.min(took)));
                self.measured_from = Some((now, next + self.allowed));
            }
            None => self.measured_from = Some((now, next + self.allowed)),
        }
    }
}
