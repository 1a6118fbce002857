//! Reno's window (RFC 5681), counted as in Linux: in segments, by acknowledged segments.

use super::window::{Algorithm, Progress, Window, LEAST_THRESHOLD};

/// Slow start, then one segment per window; halved by congestion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reno;

impl Algorithm for Reno {
    fn grow(&mut self, window: &mut Window, progress: &Progress) {
        let acked = window.after_slow_start(progress.acked);
        if acked > 0 {
            window.grow_by_count(window.cwnd, acked);
        }
    }

    fn threshold(&mut self, window: &Window) -> u32 {
        (window.cwnd / 2).max(LEAST_THRESHOLD)
    }
}
