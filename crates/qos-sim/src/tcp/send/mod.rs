//! Sending half: its state, composed of parts. Its actions are in `acknowledge`, `sack`, `recovery` and `transmit`.

mod acknowledge;
mod emit;
mod loss;
mod news;
mod phase;
mod rack;
mod recovery;
pub(crate) mod rto;
mod sack;
mod scoreboard;
mod small_queue;
mod stream;
mod tail_probe;
mod timers;
mod transmit;
mod undo;
mod usage;

pub(crate) use emit::{Emit, Header};
pub(crate) use stream::Outgoing;

use self::loss::LossDetection;
use self::phase::Episode;
use self::rto::RttEstimator;
use self::scoreboard::Scoreboard;
use self::small_queue::SmallQueue;
use self::tail_probe::TailProbe;
use self::timers::Timers;
use self::undo::Undo;
use self::usage::Usage;
use super::agreed::Agreed;
use super::congestion::Congestion;
use super::settings::Settings;
use qos_core::time::{Duration, Time};

/// Counters so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Segments with data or FIN sent, retransmissions too.
    pub sent: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub probes: u64,
    /// Number of undone reductions.
    pub undone: u64,
    /// Reductions because congestion was echoed.
    pub ecn_reductions: u64,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Sender {
    agreed: Agreed,
    stream: Outgoing,
    board: Scoreboard,
    congestion: Congestion,
    loss: LossDetection,
    episode: Episode,
    /// RFC 5682 judges timeouts.
    frto: bool,
    undo: Undo,
    probe: TailProbe,
    rtt: RttEstimator,
    timers: Timers,
    usage: Usage,
    small_queue: Option<SmallQueue>,
    /// Whether the other end must be notified of a reduced window (RFC 3168).
    reduction_unsignalled: bool,
    counts: Counts,
}

impl Sender {
    /// Returns a sender of an unsent stream, after a handshake that measured the round trip `rtt`.
    pub fn new(settings: &Settings, agreed: Agreed, now: Time, stream: Outgoing, rtt: Option<Duration>) -> Sender {
        let first = stream.next();
        Sender {
            agreed,
            board: Scoreboard::new(),
            congestion: Congestion::new(settings),
            loss: LossDetection::new(settings, &agreed),
            episode: Episode::new(first),
            frto: settings.frto,
            undo: Undo::default(),
            probe: TailProbe::new(settings.tail_loss_probe && agreed.sack),
            rtt: RttEstimator::after_handshake(settings, now, rtt, first),
            timers: Timers::new(settings.ticks),
            usage: Usage::new(settings, now, first),
            small_queue: settings.small_queue.then(SmallQueue::default),
            reduction_unsignalled: false,
            counts: Counts::default(),
            stream,
        }
    }

    /// Returns the outgoing stream.
    pub fn stream(&self) -> &Outgoing {
        &self.stream
    }

    /// Returns the stream, for the application.
    pub fn stream_mut(&mut self) -> &mut Outgoing {
        &mut self.stream
    }

    /// Returns the congestion control.
    pub fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    /// Returns the estimator of round trips.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the number of segments in flight.
    pub fn pipe(&self) -> u32 {
        self.board.pipe()
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Starts with a window of one segment, because the handshake lost segments.
    pub fn begin_with_one(&mut self) {
        self.congestion.begin_with_one();
    }

    /// Handles a segment that leaves the host's queue at `at`.
    pub fn leaves_queue(&mut self, at: Time) {
        if let Some(queue) = &mut self.small_queue {
            queue.leaves(at);
        }
    }

    /// Returns the time at which the sender must be called again.
    pub fn deadline(&self) -> Option<Time> {
        match (self.timers.deadline(), self.small_queue.as_ref().and_then(SmallQueue::deadline)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
