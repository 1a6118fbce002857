//! What the sender does with an acknowledgement.

use super::scoreboard::{Sent, EVER_RETRANSMITTED, SACKED};
use super::{Emit, Phase, Sender, Timer};
use crate::tcp::congestion::Progress;
use crate::tcp::segment::Segment;
use qos_core::time::{Duration, Time};

/// What one acknowledgement told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    /// The first unacknowledged byte moved.
    pub advanced: bool,
    /// Data was acknowledged or SACKed for the first time, or the window opened, or it came with data: not a duplicate.
    pub not_duplicate: bool,
    /// Segments were SACKed.
    pub sacked: bool,
    /// Data was acknowledged.
    pub acknowledged: bool,
    /// ... some of it had been sent again.
    pub retransmission_acknowledged: bool,
    /// Data from before the phase began was delivered without having been sent again.
    pub original_delivered: bool,
    /// A duplicate of a retransmission was reported (RFC 2883).
    pub duplicate: bool,
    /// ... that of the tail loss probe.
    pub probe_duplicate: bool,
    /// The retransmission timer starts anew.
    pub restart_timer: bool,
    /// A retransmission was lost.
    pub retransmission_lost: bool,
    /// Lowest byte that was SACKed after a later one, without having been sent again.
    pub reordered: u64,
    /// The timestamp echoed.
    pub echo: Option<Time>,
    pub first_acked: Option<Time>,
    pub last_acked: Option<Time>,
    pub first_sacked: Option<Time>,
    pub last_sacked: Option<Time>,
    /// Of the segment delivered that was sent last: when, and what had been delivered then.
    latest: Option<(Time, u64, u64)>,
}

impl News {
    fn new(echo: Option<Time>) -> News {
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
}

/// What is to be sent after an acknowledgement, before new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    Nothing,
    Lost,
    /// New data, to judge a timeout; what is lost if there is none.
    New,
}

impl Sender {
    /// Takes an acknowledgement and sends what it allows.
    pub fn on_ack(&mut self, segment: &Segment, emit: &mut Emit<'_>) {
        let now = emit.now;
        let ack = segment.ack;
        if ack > self.next {
            return;
        }
        let mut news = News::new(segment.timestamps.map(|(_, echo)| Time(echo)).filter(|_| self.timestamps));
        let prior_una = self.una;
        let delivered = self.delivered;
        let lost = self.board.lost_total;
        if ack < self.una {
            // Late; what it SACKs may be news.
            if !segment.sack.is_empty() && self.sack {
                self.take_sacks(now, segment, prior_una, &mut news);
                let resend = self.judge(now, prior_una, false, &mut news);
                self.resend(emit, resend);
                self.send_new(emit, false);
            }
            return;
        }
        let prior_edge = self.edge;
        let prior_highest = self.board.highest_sacked().unwrap_or(prior_una);
        news.advanced = ack > self.una;
        if news.advanced {
            self.timeouts_in_row = 0;
        }
        // A pure acknowledgement with another window is no duplicate (RFC 5681).
        news.not_duplicate = segment.len > 0 || segment.fin || news.advanced || ack + segment.window > prior_edge;
        self.edge = if news.advanced { ack + segment.window } else { prior_edge.max(ack + segment.window) };
        self.una = ack;
        if self.board.out() == 0 && self.probe_answered(now) {
            self.send_new(emit, false);
            return;
        }
        if self.sack && !segment.sack.is_empty() {
            self.take_sacks(now, segment, prior_una, &mut news);
        } else if !self.sack {
            self.last_sacks = Default::default();
        }
        self.take_acknowledged(now, ack, prior_highest, &mut news);
        self.rack.update_window(self.delivered, news.latest.map(|latest| latest.2));
        self.judge_probe(ack, &news);
        let mut resend = Resend::Nothing;
        let alert = news.sacked || news.duplicate;
        if !news.not_duplicate || alert || self.phase != Phase::Open {
            let duplicate = !news.not_duplicate && !news.advanced && !news.duplicate;
            resend = self.judge(now, prior_una, duplicate, &mut news);
        }
        if news.restart_timer {
            self.restart_timer(now);
        }
        let delivered = (self.delivered - delivered) as u32;
        self.control(now, delivered, self.board.lost_total > lost, &news);
        self.resend(emit, resend);
        self.send_new(emit, false);
    }

    /// With nothing out, an acknowledgement can only open the window.
    fn probe_answered(&mut self, now: Time) -> bool {
        if let Some((Timer::WindowProbe, _)) = self.timer {
            let room = self.edge.saturating_sub(self.next);
            let wanted = (self.end() - self.next).min(u64::from(self.mss));
            self.timer = if room >= wanted { None } else { Some((Timer::WindowProbe, now + self.rtt.timeout())) };
        }
        true
    }

    /// Takes off what is acknowledged, and measures.
    fn take_acknowledged(&mut self, now: Time, ack: u64, prior_highest: u64, news: &mut News) {
        let mut count = 0;
        let mut lowest_original = u64::MAX;
        while let Some(sent) = self.board.pop_before(ack) {
            count += 1;
            if sent.is(EVER_RETRANSMITTED) {
                news.retransmission_acknowledged = true;
            } else if !sent.is(SACKED) {
                news.first_acked.get_or_insert(sent.at);
                news.last_acked = Some(sent.at);
                lowest_original = lowest_original.min(sent.seq);
                news.original_delivered |= sent.end <= self.high;
            }
            if self.sack && !sent.is(SACKED) {
                self.delivered += 1;
                news.note_delivery(&sent);
                // The echo of something sent before the retransmission: the original was delivered.
                let original = sent.is(EVER_RETRANSMITTED) && news.echo.is_some_and(|echo| echo < sent.at);
                if !original {
                    self.rack.delivered(now, &sent, self.least_rtt.get());
                }
            }
        }
        news.acknowledged = count > 0;
        let rtt = self.measure(now, news);
        if news.acknowledged {
            news.restart_timer = true;
            if !self.sack {
                if news.retransmission_acknowledged {
                    news.original_delivered = false;
                }
                self.forget_duplicates(count);
            } else if lowest_original < prior_highest {
                // A hole was filled by something that was only late.
                self.note_reordering(lowest_original);
            }
        } else if let (Some(first), Some(head)) = (news.first_sacked, self.board.head()) {
            // What was SACKed had been sent after the head: the timeout would come too late if it began anew.
            news.restart_timer = rtt.is_some() && first < self.board.get(head).at;
        }
        if let Some(rtt) = rtt {
            let progress = Progress { now, acked: count, una: self.una, next: self.next };
            self.algorithm.measured(&mut self.window, &progress, rtt);
        }
    }

    /// Samples the round trip (RFC 6298, RFC 7323): by the first segment acknowledged if nothing of it was sent again, else by the first
    /// SACKed, else by the timestamp. Returns that of the last segment, for the congestion control.
    fn measure(&mut self, now: Time, news: &News) -> Option<Duration> {
        let mut first = news.first_acked.filter(|_| !news.retransmission_acknowledged);
        let mut last = news.last_acked.filter(|_| first.is_some());
        if news.first_sacked.is_some() {
            first = first.or(news.first_sacked);
            last = news.last_sacked;
        }
        if first.is_none() && news.acknowledged {
            first = news.echo;
            last = news.echo;
        }
        let (first, last) = (first?, last?);
        self.least_rtt.sample(now, now.since(last));
        self.rtt.sample(now.since(first), self.una, self.next);
        Some(now.since(last))
    }

    /// The window after an acknowledgement.
    fn control(&mut self, now: Time, delivered: u32, newly_lost: bool, news: &News) {
        if self.reducing() {
            self.reduce(delivered, news.advanced && !newly_lost);
            return;
        }
        // With much reordering what is SACKed counts as progress, else what is acknowledged.
        let progress = news.acknowledged || (self.reordering > self.settings.reordering && news.sacked);
        if progress && delivered > 0 {
            let acked = if self.settings.byte_counting { delivered } else { 1 };
            let progress = Progress { now, acked, una: self.una, next: self.next };
            self.algorithm.grow(&mut self.window, &progress);
        }
    }

    /// Proportional rate reduction.
    pub fn reduce(&mut self, delivered: u32, safe: bool) {
        if let Some(cwnd) = self.reduction.window(delivered, self.board.pipe(), self.window.ssthresh, safe) {
            self.window.cwnd = cwnd;
        }
    }

    fn resend(&mut self, emit: &mut Emit<'_>, resend: Resend) {
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.retransmit_lost(emit),
            Resend::New => {
                self.send_new(emit, false);
                if self.next <= self.high {
                    self.judging_timeout = false;
                    self.retransmit_lost(emit);
                }
            }
        }
    }
}
