//! Information in one acknowledgement, and the resulting actions.

use super::scoreboard::Sent;
use qos_core::time::Time;

/// Information in one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    /// Whether the first unacknowledged byte moved.
    pub advanced: bool,
    /// Whether it is not a duplicate: data was acknowledged or SACKed for the first time, the window opened, or it
    /// carries data.
    pub not_duplicate: bool,
    /// Segments were SACKed.
    pub sacked: bool,
    /// Data was acknowledged.
    pub acknowledged: bool,
    /// Whether some of the acknowledged data had been retransmitted.
    pub retransmission_acknowledged: bool,
    /// Whether data from before the phase was delivered without retransmission.
    pub original_delivered: bool,
    /// Whether a duplicate of a retransmission was reported (RFC 2883).
    pub duplicate: bool,
    /// Whether a duplicate of the tail loss probe was reported.
    pub probe_duplicate: bool,
    /// The retransmission timer restarts.
    pub restart_timer: bool,
    /// Whether congestion was echoed (RFC 3168).
    pub congestion: bool,
    /// A retransmission was lost.
    pub retransmission_lost: bool,
    /// Lowest byte that was SACKed after a later one, without retransmission.
    pub reordered: u64,
    /// The timestamp echoed.
    pub echo: Option<Time>,
    pub first_acked: Option<Time>,
    pub last_acked: Option<Time>,
    pub first_sacked: Option<Time>,
    pub last_sacked: Option<Time>,
    /// For the delivered segment that was sent last: its time, its end, and the number of segments delivered by then.
    latest: Option<(Time, u64, u64)>,
}

impl News {
    pub fn new(echo: Option<Time>) -> News {
        News {
            advanced: false,
            not_duplicate: false,
            sacked: false,
            acknowledged: false,
            retransmission_acknowledged: false,
            original_delivered: false,
            duplicate: false,
            probe_duplicate: false,
            restart_timer: false,
            congestion: false,
            retransmission_lost: false,
            reordered: u64::MAX,
            echo,
            first_acked: None,
            last_acked: None,
            first_sacked: None,
            last_sacked: None,
            latest: None,
        }
    }

    pub fn note_delivery(&mut self, sent: &Sent) {
        let this = (sent.at, sent.end, sent.delivered);
        self.latest = Some(self.latest.map_or(this, |latest| latest.max(this)));
    }

    /// Returns the number of segments delivered by the time at which the last sent of the delivered segments was sent.
    pub fn delivered_before(&self) -> Option<u64> {
        self.latest.map(|latest| latest.2)
    }
}

/// Segments to send after an acknowledgement, before new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    Nothing,
    Lost,
    /// New data, to judge a timeout; lost segments, this many, if there is none.
    New,
}
