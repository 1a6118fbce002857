//! TCP small queues: limit of a connection's data in its host's queue (Linux tcp_small_queue_check).

use qos_core::time::{Duration, Time};
use std::collections::VecDeque;

/// Memory that Linux counts for a queued segment in addition to its payload: its buffer's head of 1 KiB and the
/// structure before it. It depends on kernel and configuration [uncertain].
const OVERHEAD_BYTES: u64 = 1280;
/// Maximum number of waiting bytes (sysctl tcp_limit_output_bytes of Linux 4.20 to 6.11; 4 MiB since).
const MOST_BYTES: u64 = 1 << 20;
/// Binary logarithm of the fraction of a second for which data may wait: 1/1024 (Linux sk_pacing_shift 10).
const SHARE_SHIFT: u32 = 10;
/// Pacing rate in percent of the window per round trip (sysctls tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;

/// Number of segments in flight, and the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    /// Segments out.
    pub out: u32,
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Payload bytes of a full segment.
    pub mss: u32,
    pub smoothed_rtt: Option<Duration>,
}

impl Outstanding {
    /// Returns the rate that corresponds to the window, in bytes per second (Linux sk_pacing_rate).
    fn window_rate(&self) -> u64 {
        let Some(rtt) = self.smoothed_rtt else { return u64::MAX };
        let percent = if self.cwnd < self.ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let segments = u64::from(self.cwnd.max(self.out));
        let bytes = u128::from(segments * u64::from(self.mss) * percent / 100);
        u64::try_from(bytes * 1_000_000_000 / u128::from(rtt.0.max(1))).unwrap_or(u64::MAX)
    }
}

/// The connection's segments in the host's queue.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallQueue {
    /// Departure time of each.
    leaving: VecDeque<Time>,
    /// Number of segments with a departure that the caller has not reported yet.
    untold: usize,
    /// Whether sending has stopped until a segment leaves.
    stopped: bool,
}

impl SmallQueue {
    pub fn count_outstanding(&mut self) {
        self.untold += 1;
    }

    /// Records that the earliest unreported segment leaves at `at`.
    pub fn leaves(&mut self, at: Time) {
        if self.untold > 0 {
            self.untold -= 1;
            let at = self.leaving.back().map_or(at, |last| at.max(*last));
            self.leaving.push_back(at);
        }
    }

    fn held(&mut self, now: Time) -> u64 {
        while self.leaving.front().is_some_and(|at| *at <= now) {
            self.leaving.pop_front();
        }
        (self.leaving.len() + self.untold) as u64
    }

    /// Returns whether there is room for another segment; if not, sending stops until [`SmallQueue::deadline`].
    /// Retransmissions may wait twice as much. With at most one segment in flight there is always room.
    pub fn admits(&mut self, now: Time, retransmission: bool, outstanding: &Outstanding) -> bool {
        let held = self.held(now);
        if outstanding.out <= 1 {
            return true;
        }
        let counted = u64::from(outstanding.mss) + OVERHEAD_BYTES;
        let share = outstanding.window_rate() >> SHARE_SHIFT;
        let limit = share.max(2 * counted).min(MOST_BYTES) << u32::from(retransmission);
        let full = held * counted > limit;
        self.stopped |= full;
        !full
    }

    /// Returns the time at which sending can continue.
    pub fn deadline(&self) -> Option<Time> {
        self.leaving.front().copied().filter(|_| self.stopped)
    }

    /// Returns whether sending stopped and can continue.
    pub fn resumes(&mut self, now: Time) -> bool {
        let resumes = self.deadline().is_some_and(|at| at <= now);
        if resumes {
            self.stopped = false;
        }
        resumes
    }
}
