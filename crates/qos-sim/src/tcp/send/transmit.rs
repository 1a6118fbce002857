//! Transmission of segments, and the sender's timers.

use super::rto::INITIAL_RTO;
use super::small_queue::Outstanding;
use super::stream::Piece;
use super::timers::Timer;
use super::usage::Use;
use super::{Emit, Sender};
use qos_core::time::{Duration, Time};

/// Time that Linux adds to the timers of tail loss probe and RACK: two ticks of 1 ms (TCP_TIMEOUT_MIN).
pub(super) const TIMER_SLACK: Duration = Duration(2_000_000);

impl Sender {
    /// Sends the data that window and application allow.
    pub fn send_new(&mut self, emit: &mut Emit<'_>) {
        self.send(emit, false);
    }

    /// Sends waiting data; returns whether it sent any. A `probe` is one segment regardless of the congestion window.
    fn send(&mut self, emit: &mut Emit<'_>, probe: bool) -> bool {
        let now = emit.now();
        self.restart_after_idle(now);
        let mut sent = 0;
        let mut limited = false;
        while self.stream.waits() && !(probe && sent == 1) {
            if !probe && self.window_is_full() {
                limited = true;
                break;
            }
            let Some(piece) = self.stream.piece(self.agreed.mss, probe) else { break };
            if !probe && self.queue_is_full(now, false) {
                break;
            }
            self.transmit(emit, &piece);
            sent += 1;
        }
        if sent > 0 {
            if self.episode.is_reducing() {
                self.congestion.sent_in_reduction(sent);
            }
            if !probe {
                self.schedule_tail_probe(now, false);
            }
        }
        limited |= self.window_is_full();
        if sent > 0 || limited {
            self.validate_window(now, limited);
        }
        if self.board.out() == 0 && self.stream.waits() && self.timers.waits_for().is_none() {
            // The window is closed.
            self.timers.set(Timer::WindowProbe, now, self.rtt.timeout());
        }
        sent > 0
    }

    fn window_is_full(&self) -> bool {
        self.board.pipe() >= self.congestion.cwnd()
    }

    fn queue_is_full(&mut self, now: Time, retransmission: bool) -> bool {
        let Some(queue) = &mut self.small_queue else { return false };
        let outstanding = Outstanding {
            out: self.board.out(),
            cwnd: self.congestion.cwnd(),
            ssthresh: self.congestion.ssthresh(),
            mss: self.agreed.mss,
            smoothed_rtt: self.rtt.smoothed(),
        };
        !queue.admits(now, retransmission, &outstanding)
    }

    fn transmit(&mut self, emit: &mut Emit<'_>, piece: &Piece) {
        let now = emit.now();
        self.record_transmission(now);
        let first = self.board.out() == 0;
        let (start, end) = self.stream.record_sent(piece);
        self.board.push(now, start, end, piece.fin);
        self.counts.sent += 1;
        emit.send(start, piece.len, piece.fin, piece.last, false);
        if self.agreed.ecn && piece.len > 0 && std::mem::take(&mut self.reduction_unsignalled) {
            emit.signals_reduction();
        }
        if first || self.timers.waits_for() == Some(Timer::TailProbe) {
            self.rearm(now);
        }
    }

    fn record_transmission(&mut self, now: Time) {
        if self.board.pipe() == 0 {
            self.congestion.resume(now, self.usage.last_sent());
        }
        self.usage.record_sent(now);
        if let Some(queue) = &mut self.small_queue {
            queue.count_outstanding();
        }
    }

    fn restart_after_idle(&mut self, now: Time) {
        if self.board.out() == 0 && self.stream.waits() && self.counts.sent > 0 {
            let is_reducing = self.episode.is_reducing();
            self.usage.restart(now, self.rtt.timeout(), &mut self.congestion, is_reducing);
        }
    }

    fn validate_window(&mut self, now: Time, limited: bool) {
        let present = Use { limited, out: self.board.out(), open: self.is_open() };
        self.usage.validate(now, present, &self.stream, self.rtt.timeout(), &mut self.congestion);
    }

    /// Retransmits a segment; `counted`: it is considered lost.
    fn retransmit(&mut self, emit: &mut Emit<'_>, id: u64, counted: bool) {
        let now = emit.now();
        self.record_transmission(now);
        let segment = *self.board.get(id);
        self.board.resent(now, id, counted);
        if counted {
            self.undo.record_retransmission(now);
        }
        self.counts.sent += 1;
        self.counts.retransmitted += 1;
        let fin = segment.end - segment.seq != u64::from(segment.len());
        emit.send(segment.seq, segment.len(), fin, segment.end == self.stream.end(), true);
    }

    /// Retransmits lost segments, as far as the window allows.
    pub(super) fn retransmit_lost(&mut self, emit: &mut Emit<'_>) {
        let now = emit.now();
        let mut first = false;
        while let Some(id) = self.board.next_lost() {
            let segment = self.board.get(id);
            let outside = self.stream.is_outside(segment.seq, segment.end);
            if self.window_is_full() || outside || self.queue_is_full(now, true) {
                break;
            }
            first |= Some(id) == self.board.head();
            self.retransmit(emit, id, true);
            if self.episode.is_reducing() {
                self.congestion.sent_in_reduction(1);
            }
        }
        if first && self.timers.waits_for() != Some(Timer::Reordering) {
            self.timers.set(Timer::Retransmit, now, self.rtt.timeout());
        }
    }

    /// Sets the retransmission timer: from now, or from the head's transmission if the timer was used for a probe or
    /// RACK in between.
    pub(super) fn rearm(&mut self, now: Time) {
        let Some(head) = self.board.head() else {
            self.timers.stop();
            return;
        };
        let timeout = self.rtt.timeout();
        let wait = match self.timers.waits_for() {
            Some(Timer::Reordering | Timer::TailProbe) => (self.board.get(head).at + timeout).since(now),
            _ => timeout,
        };
        self.timers.set(Timer::Retransmit, now, wait);
    }

    /// Restarts the timer after progress, as a tail loss probe if one is allowed.
    pub(super) fn restart_timer(&mut self, now: Time) {
        if !self.schedule_tail_probe(now, true) {
            self.rearm(now);
        }
    }

    /// Schedules a tail loss probe after two round trips without an acknowledgement (RFC 8985 section 7.2, with Linux's
    /// additions).
    fn schedule_tail_probe(&mut self, now: Time, progress: bool) -> bool {
        if !self.probe.allowed() || !self.is_open() {
            return false;
        }
        let Some(head) = self.board.head() else { return false };
        let mut wait = match self.rtt.smoothed() {
            Some(rtt) if self.board.out() == 1 => rtt + rtt + self.rtt.floor(),
            Some(rtt) => rtt + rtt + TIMER_SLACK,
            None => INITIAL_RTO,
        };
        let until_timeout =
            if progress { self.rtt.timeout() } else { (self.board.get(head).at + self.rtt.timeout()).since(now) };
        if until_timeout > Duration::ZERO {
            wait = wait.min(until_timeout);
        }
        self.timers.set(Timer::TailProbe, now, wait);
        true
    }

    /// Sends new data if there is any, otherwise the last segment again (RFC 8985 section 7.3).
    fn send_tail_probe(&mut self, emit: &mut Emit<'_>) {
        if !self.probe.is_outstanding() {
            let new = self.send(emit, true);
            if !new {
                if let Some(tail) = self.board.tail() {
                    self.retransmit(emit, tail, false);
                }
            }
            self.counts.probes += 1;
            self.probe.record_sent(self.stream.next(), !new);
            self.timers.stop();
        }
        self.rearm(emit.now());
    }

    /// Checks whether a closed window has opened, with an acknowledged byte or the data that fits.
    fn send_window_probe(&mut self, emit: &mut Emit<'_>) {
        if self.board.out() > 0 || !self.stream.waits() {
            self.timers.stop();
            return;
        }
        if self.stream.room() > 0 {
            let piece = self.stream.piece_for_window(self.agreed.mss);
            self.transmit(emit, &piece);
            return;
        }
        emit.send(self.stream.una() - 1, 0, false, false, false);
        self.rtt.back_off();
        self.timers.set(Timer::WindowProbe, emit.now(), self.rtt.timeout());
    }

    /// Handles the deadline of [`Sender::deadline`].
    pub fn on_deadline(&mut self, emit: &mut Emit<'_>) {
        match self.timers.due(emit.now()) {
            Some(Timer::Retransmit) => self.time_out(emit),
            Some(Timer::Reordering) => self.end_reordering_window(emit),
            Some(Timer::TailProbe) => self.send_tail_probe(emit),
            Some(Timer::WindowProbe) => self.send_window_probe(emit),
            None => {}
        }
        if self.small_queue.as_mut().is_some_and(|queue| queue.resumes(emit.now())) {
            self.retransmit_lost(emit);
            self.send_new(emit);
        }
    }

    fn time_out(&mut self, emit: &mut Emit<'_>) {
        let Some(head) = self.board.head() else {
            self.timers.stop();
            return;
        };
        self.probe.forget();
        self.enter_loss(emit.now());
        self.timers.timed_out();
        self.counts.timeouts += 1;
        self.retransmit(emit, head, true);
        self.rtt.back_off();
        self.timers.set(Timer::Retransmit, emit.now(), self.rtt.timeout());
    }
}
