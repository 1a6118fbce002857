//! Usage of the window, and decay of a window that is not fully used (RFC 2861).

use super::stream::Outgoing;
use crate::tcp::congestion::Congestion;
use crate::tcp::settings::Settings;
use qos_core::time::{Duration, Time};

/// The use of the window at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// The window was full.
    pub limited: bool,
    /// Segments out.
    pub out: u32,
    /// Nothing is wrong.
    pub open: bool,
}

/// The recent use of the window.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    last_sent: Time,
    /// End of the round in which the use is observed, as the next byte.
    round_end: u64,
    /// Maximum number of segments out while the window was not full, and since when.
    most: u32,
    since: Time,
    /// Window after an idle time, below which it does not decay (sysctl tcp_slow_start_after_idle); `None`: no decay.
    restart_window: Option<u32>,
}

impl Usage {
    pub fn new(settings: &Settings, now: Time, first: u64) -> Usage {
        let restart_window = settings.slow_start_after_idle.then_some(settings.initial_window);
        Usage { last_sent: now, round_end: first, most: 0, since: now, restart_window }
    }

    pub fn last_sent(&self) -> Time {
        self.last_sent
    }

    pub fn record_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    /// Halves the window for each timeout after the first in an idle time, not below the restart window (RFC 2861, RFC
    /// 5681 section 4.1).
    pub fn restart(&mut self, now: Time, timeout: Duration, congestion: &mut Congestion, is_reducing: bool) {
        let Some(restart_window) = self.restart_window else { return };
        let idle = now.since(self.last_sent);
        if idle <= timeout {
            return;
        }
        congestion.decay(idle, timeout, restart_window, is_reducing);
        self.most = 0;
        self.since = now;
    }

    /// Records whether the window was in use. One not fully used for a timeout falls half way to the used part.
    pub fn validate(
        &mut self,
        now: Time,
        present: Use,
        stream: &Outgoing,
        timeout: Duration,
        congestion: &mut Congestion,
    ) {
        if congestion.note_use(present.limited, present.out, stream.una() >= self.round_end) {
            self.round_end = stream.next();
        }
        if congestion.is_limited() {
            self.most = 0;
            self.since = now;
            return;
        }
        self.most = self.most.max(present.out);
        let Some(restart_window) = self.restart_window else { return };
        if now.since(self.since) < timeout {
            return;
        }
        if present.open {
            congestion.fall_towards(self.most.max(restart_window));
            self.most = 0;
        }
        self.since = now;
    }
}
