//! The phases of the sender.

/// Phase of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Normal operation.
    Open,
    /// A segment was SACKed or acknowledged twice.
    Disorder,
    /// Congestion was echoed (RFC 3168): the window is being reduced.
    Reduced,
    /// Fast recovery: the window is being reduced.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss {
        /// Whether RFC 5682 is judging if it was spurious.
        judging: bool,
    },
}

/// The present phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    phase: Phase,
    /// The next byte at the start of the phase.
    high: u64,
}

impl Episode {
    /// Returns the open phase before byte `next`.
    pub fn new(next: u64) -> Episode {
        Episode { phase: Phase::Open, high: next }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the next byte at the start of the phase: all data in flight then ends before it.
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Returns whether the window is being reduced.
    pub fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }

    /// Returns whether a segment is lost, as far as is known.
    pub fn is_repairing(&self) -> bool {
        self.phase >= Phase::Recovery
    }

    pub fn is_in_loss_phase(&self) -> bool {
        matches!(self.phase, Phase::Loss { .. })
    }

    /// Changes to another phase with the same end.
    pub fn change_phase(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Begins a phase before byte `next`.
    pub fn begin(&mut self, phase: Phase, next: u64) {
        *self = Episode { phase, high: next };
    }

    /// Extends the phase until the data in flight, before byte `next`, is acknowledged.
    pub fn prolong(&mut self, next: u64) {
        self.high = next;
    }

    pub fn judging(&self) -> bool {
        self.phase == Phase::Loss { judging: true }
    }

    /// Ends the judgement: the timeout was not spurious.
    pub fn end_judgement(&mut self) {
        if let Phase::Loss { judging } = &mut self.phase {
            *judging = false;
        }
    }
}
