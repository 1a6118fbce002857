//! What the SACK blocks of an acknowledgement say (RFC 2018, RFC 2883).

use super::acknowledge::News;
use super::scoreboard::{EVER_RETRANSMITTED, SACKED};
use super::{Phase, Sender};
use crate::tcp::segment::{SackBlock, Segment};
use qos_core::time::Time;

/// Most segments that reordering may be thought to span (sysctl tcp_max_reordering).
const MOST_REORDERING: u32 = 300;

impl Sender {
    /// Takes the SACK blocks of an acknowledgement.
    pub fn take_sacks(&mut self, now: Time, segment: &Segment, prior_una: u64, news: &mut News) {
        let blocks = segment.sack.as_slice();
        let duplicate = self.duplicate_block(segment.ack, blocks);
        if let Some(block) = duplicate {
            self.take_duplicate(block, prior_una, news);
        }
        let before = self.last_sacks;
        let mut known = [SackBlock::default(); 4];
        let from = usize::from(duplicate.is_some());
        for (i, block) in blocks.iter().enumerate().skip(from) {
            if block.start >= block.end || block.end > self.next || block.end <= self.una {
                continue;
            }
            known[i - from] = *block;
            self.take_block(now, block, &before, news);
        }
        self.last_sacks = known;
        if news.reordered < u64::MAX && (self.phase != Phase::Loss || self.undo.is_some()) {
            self.note_reordering(news.reordered);
        }
    }

    /// The first block, if it reports a duplicate: bytes acknowledged, or within the second block.
    fn duplicate_block(&self, ack: u64, blocks: &[SackBlock]) -> Option<SackBlock> {
        let first = *blocks.first()?;
        let within = blocks.get(1).is_some_and(|second| first.end <= second.end && first.start >= second.start);
        (first.start < ack || within).then_some(first)
    }

    fn take_duplicate(&mut self, block: SackBlock, prior_una: u64, news: &mut News) {
        let len = block.end.saturating_sub(block.start);
        if len == 0 {
            return;
        }
        let segments = len.div_ceil(u64::from(self.mss));
        if segments == 1 && self.probe.is_some_and(|probe| probe.high == block.end) {
            news.probe_duplicate = true;
        }
        self.duplicates_seen += segments;
        if self.duplicates_seen > self.counts.retransmitted {
            // The network, not this sender, made the duplicates.
            return;
        }
        if self.reordering_seen && !news.probe_duplicate {
            self.rack.duplicate_seen = true;
        }
        news.duplicate = true;
        self.delivered += segments;
        if let (Some(undo), Some(left)) = (self.undo, self.undo_left) {
            if block.end <= prior_una && block.end > undo {
                self.undo_left = Some(left.saturating_sub(segments as u32));
            }
        }
        if block.end > self.una {
            self.take_duplicate_in_flight(block, news);
        }
    }

    /// A duplicate of something SACKed that is not acknowledged yet.
    fn take_duplicate_in_flight(&mut self, block: SackBlock, news: &mut News) {
        for id in self.board.ending_after(block.start.max(self.una))..self.board.ids().end {
            let sent = *self.board.get(id);
            if sent.end > block.end {
                break;
            }
            if !sent.is(EVER_RETRANSMITTED) {
                continue;
            }
            if let (Some(undo), Some(left)) = (self.undo, self.undo_left) {
                if sent.end > undo {
                    self.undo_left = Some(left.saturating_sub(1));
                }
            }
            if sent.is(SACKED) {
                news.reordered = news.reordered.min(sent.seq);
            }
            self.board.clear_retransmission(id);
        }
    }

    /// Takes the parts of a block that the last acknowledgement did not report.
    fn take_block(&mut self, now: Time, block: &SackBlock, before: &[SackBlock; 4], news: &mut News) {
        let mut start = block.start.max(self.una);
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
            // A segment of which a part only is reported stays: the receiver here keeps whole ones.
            if sent.seq < start || sent.is(SACKED) {
                continue;
            }
            self.rack.delivered(now, &sent, self.least_rtt.get());
            news.note_delivery(&sent);
            if !sent.is(EVER_RETRANSMITTED) {
                if self.board.highest_sacked().is_some_and(|highest| sent.seq < highest) {
                    news.reordered = news.reordered.min(sent.seq);
                }
                news.original_delivered |= sent.end <= self.high;
                news.first_sacked.get_or_insert(sent.at);
                news.last_sacked = Some(sent.at);
            }
            self.board.mark_sacked(id);
            self.delivered += 1;
            news.sacked = true;
        }
    }

    /// Something at `low` was delivered after what follows it: as many segments may be out of order without a loss.
    pub fn note_reordering(&mut self, low: u64) {
        let highest = self.board.highest_sacked().unwrap_or(self.una);
        if low >= highest {
            return;
        }
        let span = (highest - low).div_ceil(u64::from(self.mss));
        if span > u64::from(self.reordering) {
            self.reordering = span.min(u64::from(MOST_REORDERING)) as u32;
        }
        self.reordering_seen = true;
    }
}
