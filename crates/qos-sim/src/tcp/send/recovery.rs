//! The phases of the sender: fast recovery, timeouts, and when they turn out to have been wrong.

use super::acknowledge::{News, Resend};
use super::rto::RttEstimator;
use super::scoreboard::LOST;
use super::transmit::TIMER_SLACK;
use super::{Emit, Phase, Sender, Timer};
use crate::tcp::congestion::prr::Reduction;
use crate::tcp::congestion::INFINITE;
use qos_core::time::{Duration, Time};

impl Sender {
    /// Judges an acknowledgement that is not plain progress; returns what is to be sent first.
    pub fn judge(&mut self, now: Time, prior_una: u64, duplicate: bool, news: &mut News) -> Resend {
        if self.phase == Phase::Open {
            self.first_retransmission = None;
        } else if self.una >= self.high && self.phase_ended(news.echo) {
            return Resend::Nothing;
        }
        let lost = match self.phase {
            Phase::Recovery => self.continue_recovery(now, prior_una, duplicate, news),
            Phase::Loss => {
                let resend = self.continue_loss(duplicate, news);
                self.identify_losses(now, news);
                if self.phase != Phase::Open && !news.retransmission_lost {
                    return resend;
                }
                self.consider_recovery(now, duplicate, news)
            }
            _ => self.consider_recovery(now, duplicate, news),
        };
        if !lost {
            return Resend::Nothing;
        }
        if self.sack && !self.settings.rack {
            self.board.mark_lost_below(self.reordering);
        }
        Resend::Lost
    }

    /// Everything that was out when the phase began is acknowledged; true: there is no more to do for this acknowledgement.
    fn phase_ended(&mut self, echo: Option<Time>) -> bool {
        match self.phase {
            // Held until something above is acknowledged.
            Phase::Reducing if self.una != self.high => {
                self.end_reduction();
                self.phase = Phase::Open;
            }
            Phase::Recovery => {
                if !self.sack {
                    self.board.sacked = 0;
                }
                if self.leave_recovery(echo) {
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    /// True: in recovery still, or in another one.
    fn continue_recovery(&mut self, now: Time, prior_una: u64, duplicate: bool, news: &mut News) -> bool {
        if !news.advanced {
            if !self.sack && duplicate {
                self.count_duplicate();
            }
        } else if self.undo_partially(prior_una, news.echo) {
            return false;
        }
        if self.undo_by_duplicates() {
            self.keep_open();
        }
        self.identify_losses(now, news);
        if self.phase != Phase::Recovery {
            if !self.time_to_recover() {
                return false;
            }
            self.enter_recovery();
        }
        true
    }

    /// Outside recovery: true if it begins.
    fn consider_recovery(&mut self, now: Time, duplicate: bool, news: &mut News) -> bool {
        if !self.sack {
            if news.advanced {
                self.board.sacked = 0;
            }
            if duplicate {
                self.count_duplicate();
            }
        }
        if self.phase <= Phase::Disorder {
            self.undo_by_duplicates();
        }
        self.identify_losses(now, news);
        if !self.time_to_recover() {
            self.try_to_open();
            return false;
        }
        self.enter_recovery();
        true
    }

    /// Marks what the present rule says is lost.
    fn identify_losses(&mut self, now: Time, news: &mut News) {
        if !self.sack {
            self.mark_lost_by_duplicates(news.advanced);
        } else if self.settings.rack {
            let retransmitted = self.board.retransmitted;
            if self.detect_by_rack(now) {
                news.restart_timer = false;
            }
            news.retransmission_lost = self.board.retransmitted < retransmitted;
        }
    }

    /// NewReno (RFC 6582): the head is lost after as many duplicates as the threshold, and at each partial acknowledgement.
    fn mark_lost_by_duplicates(&mut self, advanced: bool) {
        let enough = self.phase < Phase::Recovery && self.board.sacked >= self.reordering;
        if enough || (self.phase == Phase::Recovery && advanced) {
            if let Some(head) = self.board.head().filter(|head| !self.board.get(*head).is(LOST)) {
                self.board.mark_lost(head);
                self.limit_duplicates();
            }
        }
    }

    /// Marks by RACK; true when its timer was set.
    fn detect_by_rack(&mut self, now: Time) -> bool {
        if !self.rack.advanced {
            return false;
        }
        let state = self.reordering_state();
        let Some(wait) = self.rack.detect(now, &mut self.board, &state) else { return false };
        let wait = (wait + TIMER_SLACK).0.min(self.rtt.timeout().0);
        self.timer = Some((Timer::Reordering, now + Duration(wait)));
        true
    }

    /// RACK's reordering window has passed.
    pub fn reordering_passed(&mut self, emit: &mut Emit<'_>) {
        let pipe = self.board.pipe();
        let state = self.reordering_state();
        self.rack.detect(emit.now, &mut self.board, &state);
        if self.board.pipe() != pipe {
            if self.phase != Phase::Recovery {
                self.enter_recovery();
                self.reduce(1, false);
            }
            self.retransmit_lost(emit);
        }
        if !matches!(self.timer, Some((Timer::Retransmit, _))) {
            self.rearm(emit.now);
        }
    }

    fn time_to_recover(&self) -> bool {
        let counted = !self.by_rack() && self.board.sacked + 1 > self.reordering;
        self.board.lost > 0 || counted
    }

    fn begin_reduction(&mut self) {
        self.high = self.next;
        self.probe = None;
        self.window.count = 0;
        self.prior_cwnd = self.window.cwnd;
        self.reduction = Reduction::begin(self.window.cwnd);
        self.window.ssthresh = self.algorithm.threshold(&self.window);
    }

    fn end_reduction(&mut self) {
        if self.window.ssthresh < INFINITE && (self.phase == Phase::Reducing || self.undo.is_some()) {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    fn remember_for_undo(&mut self) {
        self.undo = Some(self.una);
        self.undo_left = (self.board.retransmitted > 0).then_some(self.board.retransmitted);
    }

    fn enter_recovery(&mut self) {
        self.prior_threshold = 0;
        self.remember_for_undo();
        if !self.reducing() {
            self.prior_threshold = self.current_threshold();
            self.begin_reduction();
        }
        self.phase = Phase::Recovery;
        self.counts.recoveries += 1;
    }

    /// A retransmission timeout: everything is lost that RACK does not know to be too young for it.
    pub fn enter_loss(&mut self, now: Time) {
        let new = self.phase < Phase::Recovery;
        if !self.sack {
            self.board.sacked = 0;
        }
        let state = self.reordering_state();
        let head = self.board.head();
        for id in self.board.ids() {
            let young = self.by_rack()
                && Some(id) != head
                && self.rack.remaining(now, self.board.get(id), &state) > Duration::ZERO;
            if !young {
                self.board.mark_lost(id);
            }
        }
        let again = self.phase == Phase::Loss && self.timeouts_in_row == 0;
        if self.phase <= Phase::Disorder || self.high <= self.una || again {
            self.prior_threshold = self.current_threshold();
            self.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.algorithm.threshold(&self.window);
            self.remember_for_undo();
        }
        self.window.cwnd = self.board.pipe() + 1;
        self.window.count = 0;
        if self.phase <= Phase::Disorder && self.board.sacked >= self.reordering {
            self.reordering = self.reordering.min(self.settings.reordering);
        }
        self.algorithm.timed_out(now, self.next);
        self.phase = Phase::Loss;
        self.high = self.next;
        self.judging_timeout = self.settings.frto && (new || self.timeouts_in_row > 0);
    }

    /// Retransmission after a timeout, and RFC 5682's judgement whether it was spurious.
    fn continue_loss(&mut self, duplicate: bool, news: &News) -> Resend {
        let echo = news.echo;
        let recovered = self.una >= self.high;
        if news.advanced && self.undo_loss(false, echo) {
            return Resend::Nothing;
        }
        if self.judging_timeout {
            if news.original_delivered && self.undo_loss(true, echo) {
                return Resend::Nothing;
            }
            if self.next > self.high {
                if news.sacked || duplicate {
                    self.judging_timeout = false;
                }
            } else if news.advanced && !recovered {
                self.high = self.next;
                if self.next < self.end() && self.edge > self.next {
                    return Resend::New;
                }
                self.judging_timeout = false;
            }
        }
        if recovered {
            self.leave_recovery(echo);
            return Resend::Nothing;
        }
        if !self.sack {
            if self.next > self.high && duplicate {
                self.count_duplicate();
            } else if news.advanced {
                self.board.sacked = 0;
            }
        }
        Resend::Lost
    }

    fn try_to_open(&mut self) {
        if !self.board.any_retransmitted() {
            self.first_retransmission = None;
        }
        if self.phase != Phase::Reducing {
            self.keep_open();
        }
    }

    fn keep_open(&mut self) {
        let left = self.board.sacked + self.board.lost > 0;
        let phase = if left || self.board.any_retransmitted() { Phase::Disorder } else { Phase::Open };
        if self.phase != phase {
            self.phase = phase;
            self.high = self.next;
        }
    }

    /// The reduction may be taken back: nothing of what was sent again was lost, by duplicates reported or by an echo.
    fn may_undo(&self, echo: Option<Time>) -> bool {
        self.undo.is_some() && (self.undo_left == Some(0) || self.was_delayed(echo))
    }

    /// The acknowledgement echoes something sent before the first retransmission (Eifel, RFC 3522).
    fn was_delayed(&self, echo: Option<Time>) -> bool {
        matches!((self.first_retransmission, echo), (Some(first), Some(echo)) if echo < first)
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        if self.prior_threshold > 0 {
            self.window.cwnd = self.window.cwnd.max(self.prior_cwnd);
            self.window.ssthresh = self.window.ssthresh.max(self.prior_threshold);
        }
        self.undo = None;
        self.rack.advanced = true;
        self.counts.undone += 1;
    }

    /// Everything that was out when the phase began is acknowledged; true: the phase stays (RFC 6582: without SACK until something more
    /// is acknowledged, lest old duplicates begin another recovery).
    fn leave_recovery(&mut self, echo: Option<Time>) -> bool {
        if self.may_undo(echo) {
            self.undo_reduction(false);
        } else {
            self.rack.recovery_ended(false);
        }
        if self.una == self.high && !self.sack {
            if !self.board.any_retransmitted() {
                self.first_retransmission = None;
            }
            return true;
        }
        if self.phase == Phase::Recovery {
            self.end_reduction();
        }
        self.phase = Phase::Open;
        false
    }

    /// At a partial acknowledgement; true: it was a delay, but retransmissions are out still.
    fn undo_partially(&mut self, prior_una: u64, echo: Option<Time>) -> bool {
        if self.undo.is_none() || !self.was_delayed(echo) {
            return false;
        }
        self.note_reordering(prior_una);
        if self.board.retransmitted > 0 {
            return true;
        }
        if !self.board.any_retransmitted() {
            self.first_retransmission = None;
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }

    fn undo_by_duplicates(&mut self) -> bool {
        if self.undo.is_some() && self.undo_left == Some(0) {
            self.rack.recovery_ended(true);
            self.undo_reduction(false);
            return true;
        }
        false
    }

    fn undo_loss(&mut self, judged: bool, echo: Option<Time>) -> bool {
        if !judged && !self.may_undo(echo) {
            return false;
        }
        self.undo_reduction(true);
        self.timeouts_in_row = 0;
        if self.una == self.high && !self.sack {
            return true;
        }
        if judged || self.sack {
            self.phase = Phase::Open;
        }
        true
    }

    /// A duplicate acknowledgement without SACK stands for a segment that was received.
    fn count_duplicate(&mut self) {
        let before = self.board.sacked;
        self.board.sacked += 1;
        self.limit_duplicates();
        self.delivered += u64::from(self.board.sacked.saturating_sub(before));
    }

    /// At least one segment is missing, and what is lost was not received: there cannot be more duplicates than the others.
    fn limit_duplicates(&mut self) {
        let out = self.board.out();
        let missing = self.board.lost.max(1).min(out);
        self.board.sacked = self.board.sacked.min(out - missing);
    }

    /// An acknowledgement without SACK: one segment filled the hole, the others were counted as duplicates.
    pub fn forget_duplicates(&mut self, acked: u32) {
        self.delivered += u64::from(acked.saturating_sub(self.board.sacked).max(1));
        self.board.sacked = self.board.sacked.saturating_sub(acked - 1);
        self.limit_duplicates();
    }

    /// The probe of the tail was acknowledged (RFC 8985 section 7.4): what it replaced was lost, unless a duplicate says otherwise.
    pub fn judge_probe(&mut self, ack: u64, news: &News) {
        let Some(probe) = self.probe.filter(|probe| ack >= probe.high) else { return };
        if !probe.retransmission || news.probe_duplicate {
            self.probe = None;
        } else if ack > probe.high {
            self.begin_reduction();
            self.phase = Phase::Reducing;
            self.end_reduction();
            self.keep_open();
        } else if !(news.advanced || news.not_duplicate || news.sacked) {
            self.probe = None;
        }
    }
}

/// Estimator for a connection's sender, after a handshake that measured `rtt` (nothing if the SYN was sent again without timestamps).
pub(crate) fn estimator(settings: &crate::tcp::Settings, rtt: Option<Duration>, next: u64) -> RttEstimator {
    let mut estimator = RttEstimator::new(settings);
    match rtt {
        Some(rtt) => estimator.sample(rtt, next, next),
        None => estimator.set_initial(super::rto::FALLBACK_RTO),
    }
    estimator
}
