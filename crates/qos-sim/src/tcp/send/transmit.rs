//! What the sender sends, and its timers.

use super::rto::INITIAL_RTO;
use super::{Emit, Phase, Sender, TailProbe, Timer};
use qos_core::time::{Duration, Time};

/// What Linux adds to the wait for a tail loss probe and to RACK's: two ticks of 1 ms (TCP_TIMEOUT_MIN).
pub(crate) const TIMER_SLACK: Duration = Duration(2_000_000);

impl Sender {
    /// Sends what window and application allow; returns how many segments. A probe is one segment whatever the window.
    pub fn send_new(&mut self, emit: &mut Emit<'_>, probe: bool) -> u32 {
        self.restart_after_idle(emit.now);
        let mut sent = 0;
        let mut limited = false;
        while self.next < self.end() && !self.fin_sent {
            if probe && sent == 1 {
                break;
            }
            if !probe && self.board.pipe() >= self.window.cwnd {
                limited = true;
                break;
            }
            let left = self.offered - self.next;
            let len = left.min(u64::from(self.mss));
            let last = len == left;
            let fin = last && self.closing;
            let end = self.next + len + u64::from(fin);
            // The FIN is sent even into a full window, as the receiver needs no room for it.
            if self.next + len > self.edge || (len > 0 && self.next - self.una >= self.settings.send_buffer) {
                break;
            }
            let full = len == u64::from(self.mss);
            if !full && !fin && !probe && self.small_end > self.una {
                break;
            }
            if !probe && self.queue_is_full(emit.now, false) {
                break;
            }
            if !full && len > 0 {
                self.small_end = end;
            }
            self.transmit(emit, len as u32, fin, last);
            sent += 1;
        }
        if sent > 0 {
            if self.reducing() {
                self.reduction.out += sent;
            }
            if !probe {
                self.schedule_tail_probe(emit.now, false);
            }
        }
        limited |= self.board.pipe() >= self.window.cwnd;
        if sent > 0 || limited {
            self.validate_window(emit.now, limited);
        }
        if self.board.out() == 0 && self.next < self.end() && self.timer.is_none() {
            // The window is closed.
            self.timer = Some((Timer::WindowProbe, emit.now + self.rtt.timeout()));
        }
        sent
    }

    fn transmit(&mut self, emit: &mut Emit<'_>, len: u32, fin: bool, last: bool) {
        let seq = self.next;
        let end = seq + u64::from(len) + u64::from(fin);
        self.note_sending(emit.now);
        let first = self.board.out() == 0;
        self.board.push(emit.now, seq, end, fin, self.delivered);
        self.next = end;
        self.fin_sent |= fin;
        self.counts.sent += 1;
        emit.send(seq, len, fin, last, false);
        if first || matches!(self.timer, Some((Timer::TailProbe, _))) {
            self.rearm(emit.now);
        }
    }

    fn note_sending(&mut self, now: Time) {
        if self.board.pipe() == 0 {
            self.algorithm.resumed(now, self.last_sent);
        }
        self.last_sent = now;
        if self.settings.small_queue {
            self.small_queue.given_out();
        }
    }

    /// After an idle time longer than the timeout the window halves for each further timeout, not below the restart window (RFC 2861,
    /// RFC 5681 section 4.1, sysctl tcp_slow_start_after_idle).
    fn restart_after_idle(&mut self, now: Time) {
        if !self.settings.slow_start_after_idle
            || self.board.out() > 0
            || self.next == self.end()
            || self.counts.sent == 0
        {
            return;
        }
        let timeout = self.rtt.timeout().0;
        let mut idle = now.since(self.last_sent).0;
        if idle <= timeout {
            return;
        }
        let restart = self.settings.initial_window.min(self.window.cwnd);
        self.window.ssthresh = self.current_threshold();
        while idle > timeout && self.window.cwnd > restart {
            idle -= timeout;
            self.window.cwnd /= 2;
        }
        self.window.cwnd = self.window.cwnd.max(restart);
        self.used = 0;
        self.used_at = now;
    }

    /// Notes whether the window was in use; one that was not for a timeout falls half way to what was used (RFC 2861).
    fn validate_window(&mut self, now: Time, limited: bool) {
        let out = self.board.out();
        if self.una >= self.usage_end || limited || (!self.window.limited && out > self.window.most_out) {
            self.window.limited = limited;
            self.window.most_out = out;
            self.usage_end = self.next;
        }
        if self.window.is_limited() {
            self.used = 0;
            self.used_at = now;
            return;
        }
        self.used = self.used.max(out);
        if self.settings.slow_start_after_idle && now.since(self.used_at) >= self.rtt.timeout() {
            if self.phase == Phase::Open {
                let used = self.used.max(self.settings.initial_window);
                if used < self.window.cwnd {
                    self.window.ssthresh = self.current_threshold();
                    self.window.cwnd = (self.window.cwnd + used) / 2;
                }
                self.used = 0;
            }
            self.used_at = now;
        }
    }

    /// Sends a segment again.
    fn retransmit(&mut self, emit: &mut Emit<'_>, id: u64, counted: bool) {
        self.note_sending(emit.now);
        let segment = *self.board.get(id);
        self.board.resent(emit.now, id, counted, self.delivered);
        if counted {
            self.first_retransmission.get_or_insert(emit.now);
            self.undo_left = Some(self.undo_left.unwrap_or(0) + 1);
        }
        self.counts.sent += 1;
        self.counts.retransmitted += 1;
        let fin = segment.end - segment.seq != u64::from(segment.len());
        emit.send(segment.seq, segment.len(), fin, segment.end == self.end(), true);
    }

    /// Sends lost segments again, as far as the window allows.
    pub fn retransmit_lost(&mut self, emit: &mut Emit<'_>) {
        let mut first = false;
        while let Some(id) = self.board.next_lost() {
            let segment = self.board.get(id);
            let outside = segment.end > self.edge && segment.seq != self.una;
            if self.board.pipe() >= self.window.cwnd || outside || self.queue_is_full(emit.now, true) {
                break;
            }
            first |= Some(id) == self.board.head();
            self.retransmit(emit, id, true);
            if self.reducing() {
                self.reduction.out += 1;
            }
        }
        if first && !matches!(self.timer, Some((Timer::Reordering, _))) {
            self.timer = Some((Timer::Retransmit, emit.now + self.rtt.timeout()));
        }
    }

    /// Sets the retransmission timer: from now, or from the head's transmission when a probe or RACK's timer was set meanwhile.
    pub fn rearm(&mut self, now: Time) {
        let Some(head) = self.board.head() else {
            self.timer = None;
            return;
        };
        let timeout = self.rtt.timeout();
        let at = match self.timer {
            Some((Timer::Reordering | Timer::TailProbe, _)) => (self.board.get(head).at + timeout).max(now),
            _ => now + timeout,
        };
        self.timer = Some((Timer::Retransmit, at));
    }

    /// Progress was made: the timer starts anew, as a tail loss probe if one is allowed.
    pub fn restart_timer(&mut self, now: Time) {
        if !self.schedule_tail_probe(now, true) {
            self.rearm(now);
        }
    }

    /// Waits two round trips for an acknowledgement before a probe (RFC 8985 section 7.2, with Linux's additions).
    fn schedule_tail_probe(&mut self, now: Time, progress: bool) -> bool {
        let quiet = matches!(self.phase, Phase::Open | Phase::Reducing);
        if !self.settings.tail_loss_probe || !self.sack || self.board.out() == 0 || !quiet {
            return false;
        }
        let mut wait = match self.rtt.smoothed() {
            Some(rtt) if self.board.out() == 1 => rtt + rtt + self.rtt.floor(),
            Some(rtt) => rtt + rtt + TIMER_SLACK,
            None => INITIAL_RTO,
        };
        let until_timeout = if progress {
            self.rtt.timeout()
        } else {
            let head = self.board.head().expect("something is out");
            (self.board.get(head).at + self.rtt.timeout()).since(now)
        };
        if until_timeout > Duration::ZERO {
            wait = wait.min(until_timeout);
        }
        self.timer = Some((Timer::TailProbe, now + wait));
        true
    }

    /// Sends new data if there is any and the last segment again if not (RFC 8985 section 7.3).
    fn send_tail_probe(&mut self, emit: &mut Emit<'_>) {
        if self.probe.is_none() {
            let new = self.send_new(emit, true) > 0;
            if !new {
                if let Some(tail) = self.board.tail() {
                    self.retransmit(emit, tail, false);
                }
            }
            self.counts.probes += 1;
            self.probe = Some(TailProbe { high: self.next, retransmission: !new });
            self.timer = None;
        }
        self.rearm(emit.now);
    }

    /// Asks whether a closed window has opened: a byte that was acknowledged, or what fits.
    fn send_window_probe(&mut self, emit: &mut Emit<'_>) {
        if self.board.out() > 0 || self.next >= self.end() {
            self.timer = None;
            return;
        }
        let room = self.edge.saturating_sub(self.next);
        if room > 0 {
            let len = room.min(self.offered - self.next).min(u64::from(self.mss)) as u32;
            self.transmit(emit, len, false, true);
            return;
        }
        emit.send(self.una - 1, 0, false, false, false);
        self.rtt.back_off();
        self.timer = Some((Timer::WindowProbe, emit.now + self.rtt.timeout()));
    }

    /// The time of [`Sender::deadline`] has come.
    pub fn on_deadline(&mut self, emit: &mut Emit<'_>) {
        self.on_timer(emit);
        if self.small_queue.resumes(emit.now) {
            self.retransmit_lost(emit);
            self.send_new(emit, false);
        }
    }

    fn on_timer(&mut self, emit: &mut Emit<'_>) {
        let Some((timer, at)) = self.timer else { return };
        if at > emit.now {
            return;
        }
        match timer {
            Timer::Retransmit => self.time_out(emit),
            Timer::Reordering => self.reordering_passed(emit),
            Timer::TailProbe => self.send_tail_probe(emit),
            Timer::WindowProbe => self.send_window_probe(emit),
        }
    }

    fn time_out(&mut self, emit: &mut Emit<'_>) {
        let Some(head) = self.board.head() else {
            self.timer = None;
            return;
        };
        self.probe = None;
        self.enter_loss(emit.now);
        self.timeouts_in_row += 1;
        self.counts.timeouts += 1;
        self.retransmit(emit, head, true);
        self.rtt.back_off();
        self.timer = Some((Timer::Retransmit, emit.now + self.rtt.timeout()));
    }
}
