//! Loss detection of the sender: duplicates (RFC 6582), SACKed segments above (RFC 6675), or time (RACK, RFC 8985).

use super::rack::{Rack, Reordering};
use super::rto::RttEstimator;
use super::scoreboard::{Scoreboard, Sent};
use crate::tcp::agreed::Agreed;
use crate::tcp::segment::SackBlock;
use crate::tcp::settings::Settings;
use qos_core::time::{Duration, Time};

/// Maximum number of segments that count as reordered (sysctl tcp_max_reordering).
const MOST_REORDERING: u32 = 300;

/// The blocks of one acknowledgement.
pub(super) type Blocks = [SackBlock; 4];

/// The rule that finds losses.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// Without SACK: the first segment, by duplicate acknowledgements.
    Duplicates,
    /// Segments with at least `threshold` SACKed segments above them.
    SackedAbove,
    Rack(Rack),
}

/// The state of loss detection.
#[derive(Clone, Debug)]
pub(super) struct LossDetection {
    pub(super) rule: Rule,
    /// Present and initial duplicate threshold.
    threshold: u32,
    least_threshold: u32,
    reordering_seen: bool,
    /// Number of segments with reported duplicates.
    duplicates: u64,
    /// SACK blocks of the last acknowledgement.
    reported: Blocks,
}

impl LossDetection {
    pub fn new(settings: &Settings, agreed: &Agreed) -> LossDetection {
        let rule = match (agreed.sack, settings.rack) {
            (false, _) => Rule::Duplicates,
            (true, false) => Rule::SackedAbove,
            (true, true) => Rule::Rack(Rack::new(settings.rack_static_window, settings.rack_no_threshold)),
        };
        LossDetection {
            rule,
            threshold: settings.reordering,
            least_threshold: settings.reordering,
            reordering_seen: false,
            duplicates: 0,
            reported: Blocks::default(),
        }
    }

    /// Returns the duplicate threshold.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Returns whether more reordering than the initial threshold was seen.
    pub fn tolerant(&self) -> bool {
        self.threshold > self.least_threshold
    }

    /// Resets the threshold to its initial value.
    pub fn reset_threshold(&mut self) {
        self.threshold = self.threshold.min(self.least_threshold);
    }

    /// Returns the blocks of the last acknowledgement.
    pub fn reported(&self) -> Blocks {
        self.reported
    }

    pub fn report(&mut self, blocks: Blocks) {
        self.reported = blocks;
    }

    /// Returns the inputs of RACK's reordering window.
    pub fn reordering(&self, board: &Scoreboard, in_recovery: bool, rtt: &RttEstimator) -> Reordering {
        Reordering {
            seen: self.reordering_seen,
            in_recovery,
            threshold_reached: board.sacked() >= self.threshold,
            least_rtt: rtt.least(),
            smoothed_rtt: rtt.smoothed(),
        }
    }

    /// Returns whether enough segments were reported as received to prove a loss, if the rule counts them.
    pub fn counts_as_loss(&self, board: &Scoreboard) -> bool {
        !matches!(self.rule, Rule::Rack(_)) && board.sacked() + 1 > self.threshold
    }

    /// Records a segment that was delivered after the `span` segments that follow it: as many may be out of order
    /// without a loss.
    pub fn record_reordering(&mut self, span: u64) {
        if span > u64::from(self.threshold) {
            self.threshold = span.min(u64::from(MOST_REORDERING)) as u32;
        }
        self.reordering_seen = true;
    }

    /// Records reported duplicates of `segments` segments. Returns false if the network made them: there are more than
    /// the sender retransmitted (`retransmitted`).
    pub fn record_duplicates(&mut self, segments: u64, retransmitted: u64) -> bool {
        self.duplicates += segments;
        self.duplicates <= retransmitted
    }

    /// Records a duplicate of a retransmission other than a probe: the retransmission was too early.
    pub fn too_early(&mut self) {
        if let (true, Rule::Rack(rack)) = (self.reordering_seen, &mut self.rule) {
            rack.note_duplicate();
        }
    }

    /// Records a delivered segment.
    pub fn record_delivered(&mut self, now: Time, sent: &Sent, least_rtt: Option<Duration>) {
        if let Rule::Rack(rack) = &mut self.rule {
            rack.record_delivered(now, sent, least_rtt);
        }
    }

    /// Updates the reordering window after everything that an acknowledgement delivers is recorded.
    pub fn update_window(&mut self, delivered: u64, delivered_before: Option<u64>) {
        if let Rule::Rack(rack) = &mut self.rule {
            rack.update_window(delivered, delivered_before);
        }
    }

    /// Handles the end of a recovery, which was undone or not.
    pub fn end_recovery(&mut self, undone: bool) {
        if let Rule::Rack(rack) = &mut self.rule {
            rack.end_recovery(undone);
        }
    }

    /// Requests another search for losses after a reduction was undone.
    pub fn look_again(&mut self) {
        if let Rule::Rack(rack) = &mut self.rule {
            rack.look_again();
        }
    }

    /// Returns whether a segment was sent so recently that a timeout does not mark it as lost.
    pub fn is_young(&self, now: Time, sent: &Sent, reordering: &Reordering) -> bool {
        match &self.rule {
            Rule::Rack(rack) => rack.remaining(now, sent, reordering) > Duration::ZERO,
            _ => false,
        }
    }
}
