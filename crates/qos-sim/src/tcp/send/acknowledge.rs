//! Handling of an acknowledgement by the sender.

use super::news::{News, Resend};
use super::scoreboard::{EVER_RETRANSMITTED, SACKED};
use super::timers::Timer;
use super::{Emit, Sender};
use crate::tcp::congestion::Progress;
use crate::tcp::segment::Segment;
use qos_core::time::{Duration, Time};

impl Sender {
    /// Handles an acknowledgement and sends the data that it allows.
    pub fn on_ack(&mut self, segment: &Segment, emit: &mut Emit<'_>) {
        let now = emit.now();
        let ack = segment.ack;
        if ack > self.stream.next() {
            return;
        }
        let echo = segment.timestamps.map(|(_, echo)| Time(echo)).filter(|_| self.agreed.timestamps);
        let mut news = News::new(echo);
        let prior_una = self.stream.una();
        if ack < prior_una {
            self.on_late_ack(segment, emit, &mut news);
            return;
        }
        let delivered = self.board.delivered();
        let lost = self.board.lost_total();
        let prior_highest = self.board.highest_sacked().unwrap_or(prior_una);
        news.advanced = ack > prior_una;
        if news.advanced {
            self.timers.progress();
        }
        // A pure acknowledgement with another window is no duplicate (RFC 5681).
        let widened = self.stream.is_widened_by(ack, segment.window);
        news.congestion = self.agreed.ecn && segment.ece;
        news.not_duplicate = segment.len > 0 || segment.fin || news.advanced || widened;
        self.stream.acknowledge(ack, segment.window);
        if self.board.out() == 0 {
            self.on_window_probe_answer(now);
            self.send_new(emit);
            return;
        }
        if self.agreed.sack && !segment.sack.is_empty() {
            self.take_sacks(now, segment, prior_una, &mut news);
        }
        self.remove_acknowledged(now, ack, prior_highest, &mut news);
        self.loss.update_window(self.board.delivered(), news.delivered_before());
        self.judge_probe(ack, &news);
        let plain = news.not_duplicate && !news.sacked && !news.duplicate && !news.congestion;
        let resend = if plain && self.is_open() {
            Resend::Nothing
        } else {
            let duplicate = !news.not_duplicate && !news.advanced && !news.duplicate;
            self.judge(now, prior_una, duplicate, &mut news)
        };
        if news.restart_timer {
            self.restart_timer(now);
        }
        let delivered = (self.board.delivered() - delivered) as u32;
        self.control(now, delivered, self.board.lost_total() > lost, &news);
        self.resend(emit, resend);
        self.send_new(emit);
    }

    /// Handles an overtaken acknowledgement, whose SACK blocks may be new.
    fn on_late_ack(&mut self, segment: &Segment, emit: &mut Emit<'_>, news: &mut News) {
        if segment.sack.is_empty() || !self.agreed.sack {
            return;
        }
        let (now, una) = (emit.now(), self.stream.una());
        self.take_sacks(now, segment, una, news);
        let resend = self.judge(now, una, false, news);
        self.resend(emit, resend);
        self.send_new(emit);
    }

    /// Handles an acknowledgement without data in flight, which can only open the window.
    fn on_window_probe_answer(&mut self, now: Time) {
        if self.timers.waits_for() == Some(Timer::WindowProbe) {
            if self.stream.fits(self.agreed.mss) {
                self.timers.stop();
            } else {
                self.timers.set(Timer::WindowProbe, now, self.rtt.timeout());
            }
        }
    }

    /// Removes acknowledged segments, and measures the round trip.
    fn remove_acknowledged(&mut self, now: Time, ack: u64, prior_highest: u64, news: &mut News) {
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
                news.original_delivered |= sent.end <= self.episode.high();
            }
            if self.agreed.sack && !sent.is(SACKED) {
                self.board.note_delivered(1);
                news.note_delivery(&sent);
                // The echo of a segment sent before the retransmission: the original was delivered.
                let original = sent.is(EVER_RETRANSMITTED) && news.echo.is_some_and(|echo| echo < sent.at);
                if !original {
                    self.loss.record_delivered(now, &sent, self.rtt.least());
                }
            }
        }
        news.acknowledged = count > 0;
        let rtt = self.measure(now, news);
        if news.acknowledged {
            news.restart_timer = true;
            if !self.agreed.sack {
                if news.retransmission_acknowledged {
                    news.original_delivered = false;
                }
                self.board.acknowledge_duplicates(count);
            } else if lowest_original < prior_highest {
                // A segment that was only late filled a hole.
                self.note_reordering(lowest_original);
            }
        } else if let (Some(first), Some(head)) = (news.first_sacked, self.board.head()) {
            // SACKed segments had been sent after the head: the timeout would be too late if it restarted.
            news.restart_timer = rtt.is_some() && first < self.board.get(head).at;
        }
        if let Some(rtt) = rtt {
            self.congestion.take_round_trip(&self.progress(now, count), rtt);
        }
    }

    /// Samples the round trip (RFC 6298, RFC 7323): by the first acknowledged segment that was not retransmitted,
    /// otherwise by the first SACKed one, otherwise by the time stamp. Returns that of the last segment, for the
    /// congestion control.
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
        self.rtt.sample_least(now, now.since(last));
        self.rtt.sample(now.since(first), self.stream.una(), self.stream.next());
        Some(now.since(last))
    }

    fn progress(&self, now: Time, acked: u32) -> Progress {
        Progress { now, acked, una: self.stream.una(), next: self.stream.next() }
    }

    /// Updates the window after an acknowledgement.
    fn control(&mut self, now: Time, delivered: u32, newly_lost: bool, news: &News) {
        if self.episode.is_reducing() {
            self.congestion.reduce(delivered, self.board.pipe(), news.advanced && !newly_lost);
            return;
        }
        // With much reordering SACKed segments count as progress, otherwise acknowledged ones.
        let progress = news.acknowledged || (self.loss.tolerant() && news.sacked);
        if progress && delivered > 0 {
            self.congestion.grow(self.progress(now, delivered));
        }
    }

    fn resend(&mut self, emit: &mut Emit<'_>, resend: Resend) {
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.retransmit_lost(emit),
            Resend::New => {
                self.send_new(emit);
                if self.stream.next() <= self.episode.high() {
                    self.episode.end_judgement();
                    self.retransmit_lost(emit);
                }
            }
        }
    }
}
