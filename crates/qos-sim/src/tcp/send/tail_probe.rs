//! The tail loss probe (RFC 8985 section 7): a segment that causes an acknowledgement if none would arrive otherwise.

use super::news::News;

/// The outstanding probe.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// The next byte at its transmission.
    high: u64,
    /// Whether the probe was a retransmission instead of new data.
    retransmission: bool,
}

/// Result of an acknowledgement for the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No loss, or not known yet.
    None,
    /// The data replaced by the probe was lost.
    Repaired,
}

/// The probe's state.
#[derive(Clone, Debug)]
pub(super) struct TailProbe {
    allowed: bool,
    probe: Option<Probe>,
}

impl TailProbe {
    pub fn new(allowed: bool) -> TailProbe {
        TailProbe { allowed, probe: None }
    }

    pub fn allowed(&self) -> bool {
        self.allowed
    }

    pub fn is_outstanding(&self) -> bool {
        self.probe.is_some()
    }

    /// Records a probe; `high` is the next byte at that time.
    pub fn record_sent(&mut self, high: u64, retransmission: bool) {
        self.probe = Some(Probe { high, retransmission });
    }

    pub fn forget(&mut self) {
        self.probe = None;
    }

    /// Returns whether a duplicate that ends at `end` is that of the probe.
    pub fn is_duplicated_by(&self, end: u64) -> bool {
        self.probe.is_some_and(|probe| probe.high == end)
    }

    /// Returns the probe was acknowledged (section 7.4): the data that it replaced was lost, unless a duplicate shows
    /// the opposite.
    pub fn judge(&mut self, ack: u64, news: &News) -> Verdict {
        let Some(probe) = self.probe.filter(|probe| ack >= probe.high) else { return Verdict::None };
        let more = news.advanced || news.not_duplicate || news.sacked;
        if !probe.retransmission || news.probe_duplicate || (ack == probe.high && !more) {
            self.probe = None;
        } else if ack > probe.high {
            return Verdict::Repaired;
        }
        Verdict::None
    }
}
