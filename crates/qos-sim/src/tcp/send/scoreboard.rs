//! Unacknowledged segments, and the counts of their presumed states (RFC 6675's pipe).
//!
//! Segments are found by a number that grows with each; those in flight are also chained in the order of their last
//! transmission, which is the order in which RACK judges them. Every operation costs the segments that it changes,
//! besides a search of the window.

use qos_core::time::Time;
use std::collections::{BTreeSet, VecDeque};

/// End of the chain: no segment.
const NOBODY: u64 = u64::MAX;

/// The segment was reported as received.
pub(crate) const SACKED: u8 = 1;
/// The segment is considered lost.
pub(crate) const LOST: u8 = 2;
/// A retransmission of the segment is in flight.
pub(crate) const RETRANSMITTED: u8 = 4;
/// The segment was retransmitted at some time.
pub(crate) const EVER_RETRANSMITTED: u8 = 8;
/// The segment carries the FIN.
pub(crate) const FIN: u8 = 16;
/// The segment is in the chain.
const CHAINED: u8 = 32;

/// One segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub seq: u64,
    pub end: u64,
    /// Last transmission.
    pub at: Time,
    /// Segments delivered when it was last transmitted.
    pub delivered: u64,
    older: u64,
    newer: u64,
    pub flags: u8,
}

impl Sent {
    pub fn is(&self, flag: u8) -> bool {
        (self.flags & flag) != 0
    }

    /// Returns the number of bytes of payload.
    pub fn len(&self) -> u32 {
        (self.end - self.seq) as u32 - u32::from(self.is(FIN))
    }
}

/// The segments in flight and their counts.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Number of the first segment.
    first: u64,
    oldest: u64,
    newest: u64,
    /// Lost segments that are not yet retransmitted.
    waiting: BTreeSet<u64>,
    /// SACKed segments; without SACK, duplicate acknowledgements.
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Number of segments ever marked as lost.
    lost_total: u64,
    /// Segments ever delivered.
    delivered: u64,
    /// The byte after the highest SACKed segment.
    highest_sacked: Option<u64>,
    /// Segments before this one were already judged by the number of SACKed segments above them (RFC 6675).
    judged: u64,
    /// Number of SACKed segments among the judged ones.
    judged_sacked: u32,
}

impl Scoreboard {
    pub fn new() -> Scoreboard {
        Scoreboard {
            segments: VecDeque::new(),
            first: 0,
            oldest: NOBODY,
            newest: NOBODY,
            waiting: BTreeSet::new(),
            sacked: 0,
            lost: 0,
            retransmitted: 0,
            lost_total: 0,
            delivered: 0,
            highest_sacked: None,
            judged: 0,
            judged_sacked: 0,
        }
    }

    /// Returns the number of segments between the first unacknowledged byte and the next to send.
    pub fn out(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Returns RFC 6675's pipe, in segments: those in flight, minus those that have left the network, plus
    /// retransmissions.
    pub fn pipe(&self) -> u32 {
        self.out() + self.retransmitted - (self.sacked + self.lost)
    }

    /// Returns the SACKed segments; without SACK, the duplicate acknowledgements, each of which stands for a received
    /// segment.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of segments that are considered lost.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns the retransmissions in flight.
    pub fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// Returns the number of segments ever marked lost.
    pub fn lost_total(&self) -> u64 {
        self.lost_total
    }

    /// Returns the number of segments ever delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Records further delivered segments, without a SACK.
    pub fn note_delivered(&mut self, segments: u64) {
        self.delivered += segments;
    }

    pub fn get(&self, id: u64) -> &Sent {
        &self.segments[(id - self.first) as usize]
    }

    fn at(&mut self, id: u64) -> &mut Sent {
        &mut self.segments[(id - self.first) as usize]
    }

    /// Returns the number of the first segment.
    pub fn head(&self) -> Option<u64> {
        (!self.segments.is_empty()).then_some(self.first)
    }

    /// Returns the number of the last segment.
    pub fn tail(&self) -> Option<u64> {
        (!self.segments.is_empty()).then(|| self.first + self.segments.len() as u64 - 1)
    }

    /// Numbers of all segments.
    pub fn ids(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.segments.len() as u64
    }

    /// Returns the first segment that ends after `seq`.
    pub fn ending_after(&self, seq: u64) -> u64 {
        self.first + self.segments.partition_point(|s| s.end <= seq) as u64
    }

    /// Returns the end of the highest SACKed segment.
    pub fn highest_sacked(&self) -> Option<u64> {
        self.highest_sacked
    }

    /// Adds a segment that leaves now.
    pub fn push(&mut self, now: Time, seq: u64, end: u64, fin: bool) {
        let id = self.first + self.segments.len() as u64;
        let flags = if fin { FIN } else { 0 };
        let delivered = self.delivered;
        self.segments.push_back(Sent { seq, end, at: now, delivered, older: NOBODY, newer: NOBODY, flags });
        self.chain(id);
    }

    /// Records the retransmission of a segment. `counted` is false for a loss probe, which does not change the pipe.
    pub fn resent(&mut self, now: Time, id: u64, counted: bool) {
        self.unchain(id);
        let delivered = self.delivered;
        let segment = self.at(id);
        segment.at = now;
        segment.delivered = delivered;
        segment.flags |= EVER_RETRANSMITTED;
        // A lost segment is not in the pipe: a retransmission puts it there, for any reason.
        if (counted || segment.is(LOST)) && !segment.is(RETRANSMITTED) {
            segment.flags |= RETRANSMITTED;
            self.retransmitted += 1;
        }
        self.waiting.remove(&id);
        if !self.get(id).is(SACKED) {
            self.chain(id);
        }
    }

    fn chain(&mut self, id: u64) {
        let older = self.newest;
        let segment = self.at(id);
        segment.flags |= CHAINED;
        segment.older = older;
        segment.newer = NOBODY;
        if older == NOBODY {
            self.oldest = id;
        } else {
            self.at(older).newer = id;
        }
        self.newest = id;
    }

    fn unchain(&mut self, id: u64) {
        let Sent { older, newer, flags, .. } = *self.get(id);
        if (flags & CHAINED) == 0 {
            return;
        }
        self.at(id).flags &= !CHAINED;
        if older == NOBODY {
            self.oldest = newer;
        } else {
            self.at(older).newer = newer;
        }
        if newer == NOBODY {
            self.newest = older;
        } else {
            self.at(newer).older = older;
        }
    }

    /// Returns the segment in flight that was transmitted first.
    pub fn oldest(&self) -> Option<u64> {
        (self.oldest != NOBODY).then_some(self.oldest)
    }

    /// Returns the segment transmitted after `id`.
    pub fn newer(&self, id: u64) -> Option<u64> {
        let newer = self.get(id).newer;
        (newer != NOBODY).then_some(newer)
    }

    /// Marks a segment as received. A retransmission of a segment that is not considered lost still counts as in
    /// flight.
    pub fn mark_sacked(&mut self, id: u64) {
        self.unchain(id);
        self.waiting.remove(&id);
        let segment = self.at(id);
        debug_assert!(!segment.is(SACKED));
        let was = segment.flags;
        segment.flags |= SACKED;
        let end = segment.end;
        if (was & LOST) != 0 {
            segment.flags &= !(LOST | RETRANSMITTED);
            self.lost -= 1;
            self.retransmitted -= u32::from((was & RETRANSMITTED) != 0);
        }
        self.sacked += 1;
        self.delivered += 1;
        self.judged_sacked += u32::from(id < self.judged);
        self.highest_sacked = Some(self.highest_sacked.map_or(end, |highest| highest.max(end)));
    }

    /// Handles a duplicate report of the segment: its retransmission is no longer in flight.
    pub fn clear_retransmission(&mut self, id: u64) {
        let segment = self.at(id);
        if segment.is(RETRANSMITTED) {
            segment.flags &= !RETRANSMITTED;
            let lost = segment.is(LOST);
            self.retransmitted -= 1;
            if lost {
                self.waiting.insert(id);
            }
        }
    }

    /// Marks a segment, or its retransmission, as lost. Returns false if there was nothing to mark.
    pub fn mark_lost(&mut self, id: u64) -> bool {
        let segment = self.at(id);
        if segment.is(SACKED) {
            return false;
        }
        let mut marked = false;
        if !segment.is(LOST) {
            segment.flags |= LOST;
            marked = true;
        }
        let again = segment.is(RETRANSMITTED);
        segment.flags &= !RETRANSMITTED;
        self.lost += u32::from(marked);
        self.retransmitted -= u32::from(again);
        self.lost_total += u64::from(marked || again);
        self.waiting.insert(id);
        self.unchain(id);
        marked || again
    }

    /// Removes the loss marks of segments.
    pub fn unmark_lost(&mut self) {
        self.lost = 0;
        self.waiting.clear();
        self.judged = self.first;
        self.judged_sacked = 0;
        self.oldest = NOBODY;
        self.newest = NOBODY;
        let mut order: Vec<(Time, u64)> = Vec::new();
        for id in self.ids() {
            let segment = self.at(id);
            segment.flags &= !(LOST | CHAINED);
            if !segment.is(SACKED) {
                order.push((segment.at, id));
            }
        }
        order.sort_unstable();
        for (_, id) in order {
            self.chain(id);
        }
    }

    /// Marks every segment with at least `threshold` SACKed ones above it (RFC 6675's IsLost).
    pub fn mark_lost_below(&mut self, threshold: u32) {
        let Some(below) = self.sacked.checked_sub(threshold) else { return };
        while self.judged < self.ids().end && self.judged_sacked <= below {
            if self.get(self.judged).is(SACKED) {
                if self.judged_sacked == below {
                    break;
                }
                self.judged_sacked += 1;
            } else if !self.get(self.judged).is(LOST) {
                self.mark_lost(self.judged);
            }
            self.judged += 1;
        }
    }

    /// Returns the first lost segment without a retransmission in flight.
    pub fn next_lost(&self) -> Option<u64> {
        self.waiting.first().copied()
    }

    /// Removes the first segment if all of it is before `ack`; trims it if a part is.
    pub fn pop_before(&mut self, ack: u64) -> Option<Sent> {
        let head = *self.segments.front()?;
        if head.end > ack {
            if head.seq < ack {
                self.segments[0].seq = ack;
            }
            return None;
        }
        let id = self.first;
        self.unchain(id);
        self.waiting.remove(&id);
        self.segments.pop_front();
        self.first += 1;
        self.judged_sacked -= u32::from(id < self.judged && head.is(SACKED));
        self.judged = self.judged.max(self.first);
        self.sacked -= u32::from(head.is(SACKED) && self.sacked > 0);
        self.lost -= u32::from(head.is(LOST));
        self.retransmitted -= u32::from(head.is(RETRANSMITTED));
        if self.highest_sacked.is_some_and(|highest| highest <= ack) {
            self.highest_sacked = None;
        }
        Some(head)
    }

    /// Forgets the duplicate acknowledgements, without SACK.
    pub fn forget_duplicates(&mut self) {
        self.sacked = 0;
    }

    /// Counts a duplicate acknowledgement without SACK, which stands for a received segment.
    pub fn count_duplicate(&mut self) {
        let before = self.sacked;
        self.sacked += 1;
        self.limit_duplicates();
        self.delivered += u64::from(self.sacked.saturating_sub(before));
    }

    /// Limits the duplicates: at least one segment is missing, and lost ones were not received.
    fn limit_duplicates(&mut self) {
        let out = self.out();
        let missing = self.lost.max(1).min(out);
        self.sacked = self.sacked.min(out - missing);
    }

    /// Handles `acked` segments acknowledged without SACK: one filled the hole, the others were counted as duplicates.
    pub fn acknowledge_duplicates(&mut self, acked: u32) {
        self.delivered += u64::from(acked.saturating_sub(self.sacked).max(1));
        self.sacked = self.sacked.saturating_sub(acked - 1);
        self.limit_duplicates();
    }

    /// Marks the head as lost, without SACK, unless it is marked already.
    pub fn mark_head_lost(&mut self) {
        if let Some(head) = self.head().filter(|head| !self.get(*head).is(LOST)) {
            self.mark_lost(head);
            self.limit_duplicates();
        }
    }

    /// Returns whether a retransmission of any segment may still be acknowledged. The retransmission of a later segment
    /// follows that of the head.
    pub fn has_retransmitted(&self) -> bool {
        self.retransmitted > 0 || self.segments.front().is_some_and(|s| s.is(EVER_RETRANSMITTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Operations of a sender on segments; numbers are taken modulo the number in flight.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Send,
        Sack(u64),
        Lose(u64),
        LoseBelow(u32),
        Resend,
        Probe,
        Acknowledge(u64),
        Unmark,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Send),
            3 => any::<u64>().prop_map(Step::Sack),
            2 => any::<u64>().prop_map(Step::Lose),
            1 => (1u32..5).prop_map(Step::LoseBelow),
            3 => Just(Step::Resend),
            1 => Just(Step::Probe),
            1 => (0u64..5).prop_map(Step::Acknowledge),
            1 => Just(Step::Unmark),
        ]
    }

    fn take(board: &mut Scoreboard, now: Time, step: Step) {
        let out = u64::from(board.out());
        let first = board.ids().start;
        match step {
            Step::Send => {
                let at = (first + out) * 10;
                board.push(now, at, at + 10, false);
            }
            _ if out == 0 => {}
            Step::Sack(n) if !board.get(first + n % out).is(SACKED) => board.mark_sacked(first + n % out),
            Step::Sack(_) => {}
            Step::Lose(n) => {
                board.mark_lost(first + n % out);
            }
            Step::LoseBelow(threshold) => board.mark_lost_below(threshold),
            Step::Resend => {
                if let Some(id) = board.next_lost() {
                    board.resent(now, id, true);
                }
            }
            Step::Probe => board.resent(now, first + out - 1, false),
            Step::Acknowledge(n) => {
                let to = (first + n.min(out)) * 10;
                while board.pop_before(to).is_some() {}
            }
            Step::Unmark => board.unmark_lost(),
        }
    }

    fn count(board: &Scoreboard, flag: u8) -> u32 {
        board.ids().filter(|id| board.get(*id).is(flag)).count() as u32
    }

    fn check(board: &Scoreboard) {
        assert_eq!(board.sacked, count(board, SACKED));
        assert_eq!(board.lost, count(board, LOST));
        assert_eq!(board.retransmitted, count(board, RETRANSMITTED));
        let in_flight = |id: &u64| {
            let segment = board.get(*id);
            u32::from(!segment.is(SACKED) && !segment.is(LOST)) + u32::from(segment.is(RETRANSMITTED))
        };
        assert_eq!(board.pipe(), board.ids().map(|id| in_flight(&id)).sum::<u32>());
        let waiting = board.ids().find(|id| board.get(*id).is(LOST) && !board.get(*id).is(RETRANSMITTED));
        assert_eq!(board.next_lost(), waiting);
        let highest = board.ids().filter(|id| board.get(*id).is(SACKED)).map(|id| board.get(id).end).max();
        assert_eq!(board.highest_sacked(), highest);
        // The chain has the segments in flight in the order of their last transmission.
        let mut chained = Vec::new();
        let mut next = board.oldest();
        while let Some(id) = next {
            chained.push(id);
            next = board.newer(id);
        }
        assert!(chained.windows(2).all(|pair| board.get(pair[0]).at <= board.get(pair[1]).at));
        assert_eq!(chained.len() as u32, count(board, CHAINED));
        let expected = |id: &u64| {
            let segment = board.get(*id);
            !segment.is(SACKED) && (!segment.is(LOST) || segment.is(RETRANSMITTED) || segment.is(CHAINED))
        };
        chained.sort_unstable();
        assert_eq!(chained, board.ids().filter(expected).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn scoreboard_counts_equal_those_of_its_segments(steps in prop::collection::vec(step(), 1..200)) {
            let mut board = Scoreboard::new();
            for (now, step) in steps.into_iter().enumerate() {
                take(&mut board, Time(now as u64), step);
                check(&board);
            }
        }

        /// RFC 6675: lost are those with at least so many SACKed ones above.
        #[test]
        fn segments_below_three_sacked_segments_are_lost(
            sacked in prop::collection::vec(0u64..40, 0..40), threshold in 1u32..6
        ) {
            let mut board = Scoreboard::new();
            for _ in 0..40 {
                take(&mut board, Time(0), Step::Send);
            }
            for id in sacked {
                take(&mut board, Time(1), Step::Sack(id));
                board.mark_lost_below(threshold);
                for id in board.ids().filter(|id| !board.get(*id).is(SACKED)) {
                    let above = (id + 1..40).filter(|other| board.get(*other).is(SACKED)).count() as u32;
                    prop_assert_eq!(board.get(id).is(LOST), above >= threshold, "segment {}", id);
                }
            }
        }
    }
}
