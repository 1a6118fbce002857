//! Reno's window (RFC 5681) as Linux counts it: in segments, by segments acknowledged.

use super::window::{Algorithm, Progress, Window, LEAST_THRESHOLD};

/// Slow start, then one segment a window; half on congestion.
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
