//! Fast recovery, timeouts, and the detection of spurious ones.

use super::loss::Rule;
use super::news::{News, Resend};
use super::phase::Phase;
use super::rack::Reordering;
use super::tail_probe::Verdict;
use super::timers::Timer;
use super::transmit::TIMER_SLACK;
use super::{Emit, Sender};
use qos_core::time::Time;

impl Sender {
    pub(super) fn is_open(&self) -> bool {
        self.episode.phase() == Phase::Open
    }

    /// Handles an acknowledgement that is not plain progress; returns the segments to send first.
    pub(super) fn judge(&mut self, now: Time, prior_una: u64, duplicate: bool, news: &mut News) -> Resend {
        if news.congestion {
            self.undo.forgo_window();
        }
        if self.is_open() {
            self.undo.forget_retransmission();
        } else if self.stream.una() >= self.episode.high() && self.end_phase(news.echo) {
            return Resend::Nothing;
        }
        let lost = match self.episode.phase() {
            Phase::Recovery => self.continue_recovery(now, prior_una, duplicate, news),
            Phase::Loss { .. } => {
                let resend = self.continue_loss(duplicate, news);
                self.identify_losses(now, news);
                if !self.is_open() && !news.retransmission_lost {
                    return resend;
                }
                self.consider_recovery(now, duplicate, news)
            }
            Phase::Open | Phase::Disorder | Phase::Reduced => self.consider_recovery(now, duplicate, news),
        };
        if !lost {
            return Resend::Nothing;
        }
        if let Rule::SackedAbove = self.loss.rule {
            self.board.mark_lost_below(self.loss.threshold());
        }
        Resend::Lost
    }

    /// Ends the phase when all data in flight at its start is acknowledged. Returns true if this acknowledgement needs
    /// no further handling.
    fn end_phase(&mut self, echo: Option<Time>) -> bool {
        if self.episode.phase() == Phase::Reduced {
            // Beyond the data in flight at that time, so the other end has learnt of the reduction.
            if self.stream.una() > self.episode.high() {
                self.congestion.end_reduction();
                self.episode.change_phase(Phase::Open);
            }
            return false;
        }
        if self.episode.phase() != Phase::Recovery {
            return false;
        }
        if !self.agreed.sack {
            self.board.forget_duplicates();
        }
        self.leave_recovery(echo)
    }

    /// Handles an acknowledgement in recovery. Returns whether the sender remains in this recovery or has begun another
    /// one.
    fn continue_recovery(&mut self, now: Time, prior_una: u64, duplicate: bool, news: &mut News) -> bool {
        if !news.advanced {
            if !self.agreed.sack && duplicate {
                self.board.count_duplicate();
            }
        } else if self.undo_partially(prior_una, news.echo) {
            return false;
        }
        if self.undo_if_duplicated() {
            self.keep_open();
        }
        self.identify_losses(now, news);
        if self.episode.phase() != Phase::Recovery {
            if !self.time_to_recover() {
                return false;
            }
            self.enter_recovery(news.congestion);
        }
        true
    }

    /// Begins recovery if losses require it. Returns whether it begins.
    fn consider_recovery(&mut self, now: Time, duplicate: bool, news: &mut News) -> bool {
        if !self.agreed.sack {
            if news.advanced {
                self.board.forget_duplicates();
            }
            if duplicate {
                self.board.count_duplicate();
            }
        }
        if self.episode.phase() <= Phase::Disorder {
            self.undo_if_duplicated();
        }
        self.identify_losses(now, news);
        if !self.time_to_recover() {
            self.forget_retransmission_acknowledged();
            if news.congestion {
                self.react_to_congestion();
            }
            if self.episode.phase() != Phase::Reduced {
                self.keep_open();
            }
            return false;
        }
        self.enter_recovery(news.congestion);
        true
    }

    /// Reduces the window for echoed congestion as after a loss, once for the data in flight (RFC 3168 section 6.1.2).
    fn react_to_congestion(&mut self) {
        if self.episode.phase() >= Phase::Reduced {
            return;
        }
        self.undo.cancel();
        self.begin_reduction();
        self.episode.begin(Phase::Reduced, self.stream.next());
        self.counts.ecn_reductions += 1;
    }

    fn begin_reduction(&mut self) {
        self.probe.forget();
        self.congestion.begin_reduction();
        self.reduction_unsignalled = true;
    }

    /// Marks the segments that are lost according to the present rule.
    fn identify_losses(&mut self, now: Time, news: &mut News) {
        match self.loss.rule {
            Rule::Duplicates => self.mark_lost_by_duplicates(news.advanced),
            Rule::SackedAbove => {}
            Rule::Rack(_) => {
                let retransmitted = self.board.retransmitted();
                if self.detect_by_rack(now) {
                    news.restart_timer = false;
                }
                news.retransmission_lost = self.board.retransmitted() < retransmitted;
            }
        }
    }

    /// Marks the head as lost after as many duplicates as the threshold, and at each partial acknowledgement (NewReno,
    /// RFC 6582).
    fn mark_lost_by_duplicates(&mut self, advanced: bool) {
        let enough = !self.episode.is_repairing() && self.board.sacked() >= self.loss.threshold();
        if enough || (self.episode.phase() == Phase::Recovery && advanced) {
            self.board.mark_head_lost();
        }
    }

    fn reordering(&self) -> Reordering {
        self.loss.reordering(&self.board, self.episode.is_repairing(), &self.rtt)
    }

    /// Marks lost segments by RACK. Returns whether its timer was set.
    fn detect_by_rack(&mut self, now: Time) -> bool {
        let reordering = self.reordering();
        let Rule::Rack(rack) = &mut self.loss.rule else { return false };
        if !rack.has_news() {
            return false;
        }
        let Some(wait) = rack.detect(now, &mut self.board, &reordering) else { return false };
        let wait = (wait + TIMER_SLACK).min(self.rtt.timeout());
        self.timers.set(Timer::Reordering, now, wait);
        true
    }

    /// Handles the end of RACK's reordering window.
    pub(super) fn end_reordering_window(&mut self, emit: &mut Emit<'_>) {
        let pipe = self.board.pipe();
        let reordering = self.reordering();
        if let Rule::Rack(rack) = &mut self.loss.rule {
            rack.detect(emit.now(), &mut self.board, &reordering);
        }
        if self.board.pipe() != pipe {
            if self.episode.phase() != Phase::Recovery {
                self.enter_recovery(false);
                self.congestion.reduce(1, self.board.pipe(), false);
            }
            self.retransmit_lost(emit);
        }
        if self.timers.waits_for() != Some(Timer::Retransmit) {
            self.rearm(emit.now());
        }
    }

    fn time_to_recover(&self) -> bool {
        self.board.lost() > 0 || self.loss.counts_as_loss(&self.board)
    }

    /// Enters recovery; `echoed`: congestion was echoed too. A window that is already being reduced for it is not
    /// reduced again.
    fn enter_recovery(&mut self, echoed: bool) {
        self.undo.begin(self.stream.una(), self.board.retransmitted());
        if self.episode.is_reducing() {
            self.undo.forgo_window();
            self.episode.change_phase(Phase::Recovery);
        } else {
            self.undo.save(self.congestion.cwnd(), self.congestion.current_threshold(false));
            if echoed {
                self.undo.forgo_window();
            }
            self.begin_reduction();
            self.episode.begin(Phase::Recovery, self.stream.next());
        }
        self.counts.recoveries += 1;
    }

    /// Handles a retransmission timeout: marks everything as lost except the segments that are too young according to
    /// RACK.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let new = !self.episode.is_repairing();
        if !self.agreed.sack {
            self.board.forget_duplicates();
        }
        let reordering = self.reordering();
        let head = self.board.head();
        for id in self.board.ids() {
            if Some(id) == head || !self.loss.is_young(now, self.board.get(id), &reordering) {
                self.board.mark_lost(id);
            }
        }
        let again = self.episode.is_in_loss_phase() && self.timers.timeouts_in_row() == 0;
        if new || self.episode.high() <= self.stream.una() || again {
            let threshold = self.congestion.current_threshold(self.episode.is_reducing());
            self.undo.save(self.congestion.cwnd(), threshold);
            self.undo.begin(self.stream.una(), self.board.retransmitted());
            self.congestion.lower_threshold();
            self.reduction_unsignalled = true;
        }
        if new && self.board.sacked() >= self.loss.threshold() {
            self.loss.reset_threshold();
        }
        self.congestion.restart(now, self.stream.next(), self.board.pipe());
        let judging = self.frto && (new || self.timers.timeouts_in_row() > 0);
        self.episode.begin(Phase::Loss { judging }, self.stream.next());
    }

    /// Returns the retransmission after a timeout, and RFC 5682's judgement whether it was spurious.
    fn continue_loss(&mut self, duplicate: bool, news: &News) -> Resend {
        let recovered = self.stream.una() >= self.episode.high();
        if news.advanced && self.undo.is_due(news.echo) {
            self.undo_loss(self.agreed.sack);
            return Resend::Nothing;
        }
        let next = self.stream.next();
        if self.episode.judging() {
            if news.original_delivered {
                self.undo_loss(true);
                return Resend::Nothing;
            }
            if next > self.episode.high() {
                if news.sacked || duplicate {
                    self.episode.end_judgement();
                }
            } else if news.advanced && !recovered {
                self.episode.prolong(next);
                if self.stream.waits() && self.stream.has_room() {
                    return Resend::New;
                }
                self.episode.end_judgement();
            }
        }
        if recovered {
            self.leave_recovery(news.echo);
            return Resend::Nothing;
        }
        if !self.agreed.sack {
            if next > self.episode.high() && duplicate {
                self.board.count_duplicate();
            } else if news.advanced {
                self.board.forget_duplicates();
            }
        }
        Resend::Lost
    }

    fn keep_open(&mut self) {
        let phase = self.phase_without_loss();
        if self.episode.phase() != phase {
            self.episode.begin(phase, self.stream.next());
        }
    }

    fn phase_without_loss(&self) -> Phase {
        let left = self.board.sacked() + self.board.lost() > 0;
        if left || self.board.has_retransmitted() {
            Phase::Disorder
        } else {
            Phase::Open
        }
    }

    fn forget_retransmission_acknowledged(&mut self) {
        if !self.board.has_retransmitted() {
            self.undo.forget_retransmission();
        }
    }

    fn undo_reduction(&mut self) {
        self.undo.apply(&mut self.congestion);
        self.loss.look_again();
        self.counts.undone += 1;
    }

    /// Returns whether the phase waits for a byte beyond the data at its start: without SACK, old duplicates could
    /// otherwise begin another recovery (RFC 6582).
    fn is_waiting_for_more(&self) -> bool {
        self.stream.una() == self.episode.high() && !self.agreed.sack
    }

    /// Leaves recovery when all data outstanding at its start is acknowledged. Returns true if the phase continues.
    fn leave_recovery(&mut self, echo: Option<Time>) -> bool {
        if self.undo.is_due(echo) {
            self.undo_reduction();
        } else {
            self.loss.end_recovery(false);
        }
        if self.is_waiting_for_more() {
            self.forget_retransmission_acknowledged();
            return true;
        }
        if self.episode.phase() == Phase::Recovery && self.undo.is_possible() {
            self.congestion.end_reduction();
        }
        self.episode.change_phase(Phase::Open);
        false
    }

    /// Handles a partial acknowledgement. Returns true if it was only a delay, but retransmissions are still in flight.
    fn undo_partially(&mut self, prior_una: u64, echo: Option<Time>) -> bool {
        if !self.undo.is_possible() || !self.undo.was_delayed(echo) {
            return false;
        }
        self.note_reordering(prior_una);
        if self.board.retransmitted() > 0 {
            return true;
        }
        self.forget_retransmission_acknowledged();
        self.board.unmark_lost();
        self.undo_reduction();
        self.keep_open();
        false
    }

    fn undo_if_duplicated(&mut self) -> bool {
        let due = self.undo.has_all_duplicates();
        if due {
            self.loss.end_recovery(true);
            self.undo_reduction();
        }
        due
    }

    /// Undoes a spurious timeout; `open`: nothing else is wrong.
    fn undo_loss(&mut self, open: bool) {
        self.board.unmark_lost();
        self.undo_reduction();
        self.timers.progress();
        if open && !self.is_waiting_for_more() {
            self.episode.change_phase(Phase::Open);
        }
    }

    /// Handles the acknowledgement of a tail loss probe. If the data replaced by the probe was lost, the window is
    /// reduced; nothing needs repair.
    pub(super) fn judge_probe(&mut self, ack: u64, news: &News) {
        if self.probe.judge(ack, news) == Verdict::Repaired {
            self.undo.save_cwnd(self.congestion.cwnd());
            self.begin_reduction();
            self.congestion.end_reduction();
            self.episode.begin(self.phase_without_loss(), self.stream.next());
        }
    }
}
