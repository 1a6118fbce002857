//! The single timer of the sender, with one of several purposes (as in Linux).

use crate::tcp::ticks::{Alarm, Ticks};
use qos_core::time::{Duration, Time};

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The retransmission timeout.
    Retransmit,
    /// RACK's reordering window.
    Reordering,
    /// A tail loss probe.
    TailProbe,
    /// A probe of a closed window.
    WindowProbe,
}

/// The timer, and its number of expirations.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    ticks: Ticks,
    set: Option<(Timer, Alarm)>,
    timeouts_in_row: u32,
}

impl Timers {
    pub fn new(ticks: Ticks) -> Timers {
        Timers { ticks, set: None, timeouts_in_row: 0 }
    }

    /// Starts the timer for `timer` with this time from `now`.
    pub fn set(&mut self, timer: Timer, now: Time, wait: Duration) {
        self.set = Some((timer, self.ticks.after(now, wait)));
    }

    pub fn stop(&mut self) {
        self.set = None;
    }

    /// Returns the purpose of the running timer.
    pub fn waits_for(&self) -> Option<Timer> {
        self.set.map(|(timer, _)| timer)
    }

    pub fn deadline(&self) -> Option<Time> {
        self.set.map(|(_, alarm)| alarm.at)
    }

    /// Returns the purpose of the timer, if it has expired.
    pub fn due(&self, now: Time) -> Option<Timer> {
        self.set.filter(|(_, alarm)| alarm.at <= now).map(|(timer, _)| timer)
    }

    /// Returns the retransmission timeouts since the last progress.
    pub fn timeouts_in_row(&self) -> u32 {
        self.timeouts_in_row
    }

    pub fn timed_out(&mut self) {
        self.timeouts_in_row += 1;
    }

    /// Restarts the timers after a segment was acknowledged or a timeout undone.
    pub fn progress(&mut self) {
        self.timeouts_in_row = 0;
    }
}
