//! Timing of the receiver's acknowledgements: immediate, delayed, or several SACKs combined, as in Linux.

use crate::tcp::settings::Settings;
use crate::tcp::ticks::{Alarm, Ticks};
use qos_core::time::{Duration, Time};

/// Number of SACKs of one gap that are sent immediately before any delay (Linux TCP_FASTRETRANS_THRESH).
const SACKS_AT_ONCE: u32 = 3;
/// Maximum delay of a compressed SACK, as a fraction of the round trip (Linux: 5 %).
const COMPRESSION_SHARE: u64 = 20;

/// Decision about an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Send it now.
    Now,
    /// It waits for [`AckPolicy::deadline`].
    Wait,
}

/// The state of delayed acknowledgements.
#[derive(Clone, Debug)]
pub(crate) struct AckPolicy {
    ticks: Ticks,
    quick: u32,
    quick_most: u32,
    /// Present acknowledgement delay; zero before the first data.
    delay: u64,
    least: u64,
    most: u64,
    last_data: Time,
    /// Largest payload seen: a full segment.
    full: u64,
    /// Next expected byte in the last acknowledgement.
    acknowledged: u64,
    timer: Option<Alarm>,
    compression: u64,
    compression_count: u32,
    compressed: u32,
    compression_timer: Option<Time>,
    gap_at: u64,
    gap_acks: u32,
    sack: bool,
}

impl AckPolicy {
    pub(crate) fn new(settings: &Settings, first: u64, sack: bool) -> AckPolicy {
        AckPolicy {
            ticks: settings.ticks,
            quick: 0,
            quick_most: settings.quick_acks,
            delay: 0,
            least: settings.delayed_ack_min_ns,
            most: settings.delayed_ack_max_ns,
            last_data: Time(0),
            full: 1,
            acknowledged: first,
            timer: None,
            compression: settings.sack_compression_ns,
            compression_count: settings.sack_compression_count,
            compressed: 0,
            compression_timer: None,
            gap_at: first,
            gap_acks: 0,
            sack,
        }
    }

    /// Handles accepted data: the gaps between arrivals decide how long the next acknowledgement may wait.
    pub(crate) fn on_data(&mut self, now: Time, len: u32, window: u64, rto: Duration) {
        self.full = self.full.max(u64::from(len));
        let gap = now.since(self.last_data).0;
        if self.delay == 0 {
            self.enter_quick_ack_mode(window);
            self.delay = self.least;
        } else if gap <= self.least / 2 {
            self.delay = self.delay / 2 + self.least / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(rto.0);
        } else if gap > rto.0 {
            self.enter_quick_ack_mode(window);
        }
        self.last_data = now;
    }

    /// Makes the next acknowledgements immediate: as many as there are segments in half a window.
    pub(crate) fn enter_quick_ack_mode(&mut self, window: u64) {
        if self.quick_most > 0 {
            let most = u64::from(self.quick_most);
            let count = match window / (2 * self.full) {
                0 => 2,
                count => count,
            };
            self.quick = self.quick.max(count.min(most) as u32);
        }
    }

    /// Makes the next acknowledgements immediate, because the other end may be able to send little without them (Linux:
    /// two).
    pub(crate) fn hurry(&mut self) {
        if self.quick_most > 0 {
            self.quick = self.quick.max(2);
            self.delay = self.least;
        }
    }

    /// Reports a window that has grown to the other end at once (Linux tcp_grow_window).
    pub(crate) fn window_grew(&mut self) {
        if self.quick_most > 0 {
            self.quick |= 1;
        }
    }

    /// Handles in-order data: `next` is the next expected byte, and `smoothed` the smoothed round trip of this end's
    /// data.
    pub(crate) fn note_in_order_data(
        &mut self,
        now: Time,
        next: u64,
        filled: bool,
        smoothed: Option<Duration>,
    ) -> Decision {
        if filled || self.quick > 0 || next - self.acknowledged > self.full {
            return Decision::Now;
        }
        self.delay_acknowledgement(now, smoothed)
    }

    /// Decides on the acknowledgement of data after a gap, or in order while a gap remains.
    pub(crate) fn acknowledge_gap(&mut self, now: Time, next: u64, round_trip: Option<Duration>) -> Decision {
        if self.quick > 0 || next - self.acknowledged > self.full {
            return Decision::Now;
        }
        if !self.sack || self.compression == 0 || self.compressed >= self.compression_count {
            return Decision::Now;
        }
        if self.gap_at != next {
            self.gap_at = next;
            self.gap_acks = 0;
        }
        if self.gap_acks < SACKS_AT_ONCE {
            self.gap_acks += 1;
            return Decision::Now;
        }
        self.compressed += 1;
        if self.compression_timer.is_none() {
            let share = round_trip.map_or(self.compression, |rtt| rtt.0 / COMPRESSION_SHARE);
            self.compression_timer = Some(now + Duration(share.min(self.compression)));
        }
        Decision::Wait
    }

    fn delay_acknowledgement(&mut self, now: Time, smoothed: Option<Duration>) -> Decision {
        // Not longer than a round trip, if that is known and longer than the minimum delay.
        let most = smoothed.map_or(self.most, |rtt| rtt.0.max(self.least).min(self.most));
        let wait = Duration(self.delay.min(most));
        let mut alarm = self.ticks.after(now, wait);
        if let Some(timer) = self.timer {
            if timer.until <= now + Duration(wait.0 / 4) {
                return Decision::Now;
            }
            if timer.until < alarm.until {
                alarm = self.ticks.at(now, timer.until);
            }
        }
        self.timer = Some(alarm);
        Decision::Wait
    }

    /// Records an acknowledgement of everything before `next`.
    pub(crate) fn record_sent(&mut self, next: u64) {
        self.acknowledged = next;
        self.timer = None;
        self.compressed = 0;
        self.compression_timer = None;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = self.least;
            }
        }
    }

    /// Returns whether an acknowledgement is due. An expired delay doubles the next one.
    pub(crate) fn is_due(&mut self, now: Time, rto: Duration) -> bool {
        let delayed = self.timer.is_some_and(|timer| timer.at <= now);
        if delayed {
            self.delay = (self.delay * 2).min(rto.0);
        }
        delayed || self.compression_timer.is_some_and(|timer| timer <= now)
    }

    /// Returns the time of the next check.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match (self.timer.map(|timer| timer.at), self.compression_timer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
