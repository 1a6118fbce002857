//! Handling of the SACK blocks of an acknowledgement (RFC 2018, RFC 2883).

use super::loss::Blocks;
use super::news::News;
use super::scoreboard::{EVER_RETRANSMITTED, SACKED};
use super::Sender;
use crate::tcp::segment::{SackBlock, Segment};
use qos_core::time::Time;

impl Sender {
    /// Takes the SACK blocks of an acknowledgement.
    pub(super) fn take_sacks(&mut self, now: Time, segment: &Segment, prior_una: u64, news: &mut News) {
        let blocks = segment.sack.as_slice();
        let duplicate = duplicate_block(segment.ack, blocks);
        if let Some(block) = duplicate {
            self.take_duplicate(block, prior_una, news);
        }
        let before = self.loss.reported();
        let mut known = Blocks::default();
        let from = usize::from(duplicate.is_some());
        for (i, block) in blocks.iter().enumerate().skip(from) {
            if block.start >= block.end || block.end > self.stream.next() || block.end <= self.stream.una() {
                continue;
            }
            known[i - from] = *block;
            self.take_block(now, block, &before, news);
        }
        self.loss.report(known);
        if news.reordered < u64::MAX && (!self.episode.is_in_loss_phase() || self.undo.is_possible()) {
            self.note_reordering(news.reordered);
        }
    }

    fn take_duplicate(&mut self, block: SackBlock, prior_una: u64, news: &mut News) {
        let len = block.end.saturating_sub(block.start);
        if len == 0 {
            return;
        }
        let segments = len.div_ceil(u64::from(self.agreed.mss));
        if segments == 1 && self.probe.is_duplicated_by(block.end) {
            news.probe_duplicate = true;
        }
        if !self.loss.record_duplicates(segments, self.counts.retransmitted) {
            return;
        }
        if !news.probe_duplicate {
            self.loss.too_early();
        }
        news.duplicate = true;
        self.board.note_delivered(segments);
        if block.end <= prior_una {
            self.undo.record_duplicates(block.end, segments as u32);
        }
        if block.end > self.stream.una() {
            self.take_duplicate_in_flight(block, news);
        }
    }

    /// Handles a duplicate of SACKed data that is not acknowledged yet.
    fn take_duplicate_in_flight(&mut self, block: SackBlock, news: &mut News) {
        for id in self.board.ending_after(block.start.max(self.stream.una()))..self.board.ids().end {
            let sent = *self.board.get(id);
            if sent.end > block.end {
                break;
            }
            if !sent.is(EVER_RETRANSMITTED) {
                continue;
            }
            self.undo.record_duplicates(sent.end, 1);
            if sent.is(SACKED) {
                news.reordered = news.reordered.min(sent.seq);
            }
            self.board.clear_retransmission(id);
        }
    }

    /// Takes the parts of a block that the last acknowledgement did not report.
    fn take_block(&mut self, now: Time, block: &SackBlock, before: &Blocks, news: &mut News) {
        let mut start = block.start.max(self.stream.una());
        while start < block.end {
            // The known block that covers `start`, or else begins next after it.
            let mut end = block.end;
            let mut skip_to = None;
            for known in before.iter().filter(|known| known.end > start && known.start < block.end) {
                if known.start <= start {
                    skip_to = Some(known.end);
                    break;
                }
                end = end.min(known.start);
            }
            if let Some(to) = skip_to {
                start = to;
                continue;
            }
            self.mark_range(now, start, end, news);
            start = end;
        }
    }

    fn mark_range(&mut self, now: Time, start: u64, end: u64, news: &mut News) {
        for id in self.board.ending_after(start)..self.board.ids().end {
            let sent = *self.board.get(id);
            if sent.end > end {
                break;
            }
            // A partly reported segment stays: the receiver here keeps whole segments.
            if sent.seq < start || sent.is(SACKED) {
                continue;
            }
            self.loss.record_delivered(now, &sent, self.rtt.least());
            news.note_delivery(&sent);
            if !sent.is(EVER_RETRANSMITTED) {
                if self.board.highest_sacked().is_some_and(|highest| sent.seq < highest) {
                    news.reordered = news.reordered.min(sent.seq);
                }
                news.original_delivered |= sent.end <= self.episode.high();
                news.first_sacked.get_or_insert(sent.at);
                news.last_sacked = Some(sent.at);
            }
            self.board.mark_sacked(id);
            news.sacked = true;
        }
    }

    /// Records that data at `low` was delivered after the data that follows it.
    pub(super) fn note_reordering(&mut self, low: u64) {
        let highest = self.board.highest_sacked().unwrap_or(self.stream.una());
        if low < highest {
            self.loss.record_reordering((highest - low).div_ceil(u64::from(self.agreed.mss)));
        }
    }
}

/// Returns the first block, if it reports a duplicate: bytes acknowledged, or within the second block.
fn duplicate_block(ack: u64, blocks: &[SackBlock]) -> Option<SackBlock> {
    let first = *blocks.first()?;
    let within = blocks.get(1).is_some_and(|second| first.end <= second.end && first.start >= second.start);
    (first.start < ack || within).then_some(first)
}
