//! The sending half: what it knows. What it does is in `transmit`, `acknowledge`, `sack` and `recovery`.

pub(crate) mod acknowledge;
pub(crate) mod rack;
pub(crate) mod recovery;
pub(crate) mod rto;
pub(crate) mod sack;
pub(crate) mod scoreboard;
pub(crate) mod small_queue;
pub(crate) mod transmit;

use self::rack::{Rack, Reordering};
use self::rto::{MinRtt, RttEstimator};
use self::scoreboard::Scoreboard;
use self::small_queue::SmallQueue;
use crate::tcp::congestion::prr::Reduction;
use crate::tcp::congestion::{algorithm, Algorithm, Window, INFINITE};
use crate::tcp::segment::{SackBlock, Segment};
use crate::tcp::settings::Settings;
use qos_core::time::Time;

/// What the sender thinks of the network (the names are RFC 5681's and RFC 6937's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing unusual.
    Open,
    /// Something was SACKed or acknowledged twice.
    Disorder,
    /// The window is being reduced, nothing is lost.
    Reducing,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// What the one timer of the sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The retransmission timeout.
    Retransmit,
    /// RACK's reordering window.
    Reordering,
    /// A tail loss probe.
    TailProbe,
    /// A probe of a closed window.
    WindowProbe,
}

/// The tail loss probe that is out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailProbe {
    /// The next byte when it was sent.
    pub high: u64,
    /// It was a retransmission, not new data.
    pub retransmission: bool,
}

/// Counts for [`super::Figures`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub sent: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub probes: u64,
    pub undone: u64,
}

/// Where segments are put, and what each of them carries from the receiving half.
pub(crate) struct Emit<'a> {
    pub now: Time,
    pub out: &'a mut Vec<Segment>,
    /// Acknowledgement, window and timestamps.
    pub template: Segment,
    /// Something left with the acknowledgement.
    pub used: bool,
}

impl Emit<'_> {
    pub fn send(&mut self, seq: u64, len: u32, fin: bool, push: bool, retransmission: bool) {
        self.used = true;
        self.out.push(Segment { seq, len, fin, push, retransmission, ..self.template });
    }
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Sender {
    pub settings: Settings,
    pub sack: bool,
    pub timestamps: bool,
    pub mss: u32,
    pub board: Scoreboard,
    /// First byte not acknowledged.
    pub una: u64,
    /// Next byte to send.
    pub next: u64,
    /// End of what the application has offered.
    pub offered: u64,
    pub closing: bool,
    pub fin_sent: bool,
    /// Right edge of the other end's window.
    pub edge: u64,
    pub window: Window,
    pub algorithm: Box<dyn Algorithm>,
    pub phase: Phase,
    /// The next byte when the phase began.
    pub high: u64,
    pub reduction: Reduction,
    pub prior_cwnd: u32,
    /// Threshold before the reduction, for undoing it; zero: not to be undone.
    pub prior_threshold: u32,
    /// First unacknowledged byte when the reduction began, while it may be undone.
    pub undo: Option<u64>,
    /// Retransmissions since then that no duplicate report has come for; `None` before the first.
    pub undo_left: Option<u32>,
    /// When the first retransmission of the episode left.
    pub first_retransmission: Option<Time>,
    /// RFC 5682 is judging the timeout.
    pub judging_timeout: bool,
    pub probe: Option<TailProbe>,
    /// Duplicate threshold.
    pub reordering: u32,
    pub reordering_seen: bool,
    pub duplicates_seen: u64,
    pub rack: Rack,
    pub rtt: RttEstimator,
    pub least_rtt: MinRtt,
    pub timer: Option<(Timer, Time)>,
    /// Timeouts since the last progress.
    pub timeouts_in_row: u32,
    pub delivered: u64,
    pub last_sent: Time,
    pub usage_end: u64,
    pub used: u32,
    pub used_at: Time,
    /// End of the last segment sent that was not full (Minshall's variant of Nagle's rule).
    pub small_end: u64,
    /// SACK blocks of the last acknowledgement.
    pub last_sacks: [SackBlock; 4],
    pub small_queue: SmallQueue,
    pub counts: Counts,
}

impl Sender {
    /// A sender whose first byte is `first`, in a connection that agreed on `sack`, `timestamps` and `mss`.
    pub fn new(settings: &Settings, now: Time, first: u64, agreed: (bool, bool, u32), rtt: RttEstimator) -> Sender {
        let (sack, timestamps, mss) = agreed;
        Sender {
            settings: settings.clone(),
            sack,
            timestamps,
            mss,
            board: Scoreboard::new(),
            una: first,
            next: first,
            offered: first,
            closing: false,
            fin_sent: false,
            edge: first,
            window: Window { cwnd: settings.initial_window, ssthresh: INFINITE, count: 0, most_out: 0, limited: false },
            algorithm: algorithm(settings),
            phase: Phase::Open,
            high: first,
            reduction: Reduction::default(),
            prior_cwnd: 0,
            prior_threshold: 0,
            undo: None,
            undo_left: None,
            first_retransmission: None,
            judging_timeout: false,
            probe: None,
            reordering: settings.reordering,
            reordering_seen: false,
            duplicates_seen: 0,
            rack: Rack::new(settings.rack_static_window, settings.rack_no_threshold),
            rtt,
            least_rtt: MinRtt::default(),
            timer: None,
            timeouts_in_row: 0,
            delivered: 0,
            last_sent: now,
            usage_end: first,
            used: 0,
            used_at: now,
            small_end: first,
            last_sacks: [SackBlock::default(); 4],
            small_queue: SmallQueue::default(),
            counts: Counts::default(),
        }
    }

    /// RACK decides about losses.
    pub fn by_rack(&self) -> bool {
        self.sack && self.settings.rack
    }

    pub fn reducing(&self) -> bool {
        matches!(self.phase, Phase::Reducing | Phase::Recovery)
    }

    /// Sequence number after everything, the FIN too.
    pub fn end(&self) -> u64 {
        self.offered + u64::from(self.closing)
    }

    /// When the sender is to be asked again.
    pub fn deadline(&self) -> Option<Time> {
        match (self.timer.map(|(_, at)| at), self.small_queue.deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// What RACK's reordering window depends on.
    pub fn reordering_state(&self) -> Reordering {
        Reordering {
            seen: self.reordering_seen,
            in_recovery: self.phase >= Phase::Recovery,
            threshold_reached: self.board.sacked >= self.reordering,
            least_rtt: self.least_rtt.get(),
            smoothed_rtt: self.rtt.smoothed(),
        }
    }

    /// The threshold that the present window stands for (Linux tcp_current_ssthresh).
    pub fn current_threshold(&self) -> u32 {
        if self.reducing() {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
        }
    }
}
