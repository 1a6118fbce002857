//! Proportional rate reduction (RFC 9937): the number of segments sent for those delivered while the window is reduced.

/// State of one reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reduction {
    /// Window at the beginning (Linux takes the window, RFC 9937 the segments in flight).
    prior: u32,
    delivered: u32,
    /// Segments sent since the beginning.
    out: u32,
}

impl Reduction {
    pub fn begin(cwnd: u32) -> Reduction {
        Reduction { prior: cwnd, delivered: 0, out: 0 }
    }

    /// Records that this many segments were sent.
    pub fn record_sent(&mut self, segments: u32) {
        self.out += segments;
    }

    /// Returns the window after `delivered` further segments, `pipe` being in flight; `None`: it stays.
    ///
    /// Above `ssthresh` in proportion to the delivered segments. Below it as many as delivered, and one more if the
    /// acknowledgement advances without a new loss (`safe`): the slow start reduction bound.
    pub fn window(&mut self, delivered: u32, pipe: u32, ssthresh: u32, safe: bool) -> Option<u32> {
        if delivered == 0 || self.prior == 0 {
            return None;
        }
        self.delivered += delivered;
        let may_send = if pipe > ssthresh {
            let due = (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(u64::from(self.prior));
            due.saturating_sub(u64::from(self.out)) as u32
        } else {
            let conserved = self.delivered.saturating_sub(self.out).max(delivered);
            (conserved + u32::from(safe)).min(ssthresh - pipe)
        };
        // The first retransmission leaves in any case.
        Some(pipe + may_send.max(u32::from(self.out == 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prr_sends_in_proportion_above_the_threshold() {
        // Window 20, threshold 10: one segment for every two delivered.
        let mut reduction = Reduction::begin(20);
        let mut pipe = 19;
        let mut sent = Vec::new();
        for _ in 0..8 {
            pipe -= 1;
            let window = reduction.window(1, pipe, 10, false).expect("a window");
            sent.push(window - pipe);
            reduction.record_sent(window - pipe);
            pipe = window;
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn prr_conserves_packets_below_the_threshold_and_grows_when_safe() {
        let mut reduction = Reduction::begin(20);
        reduction.record_sent(1);
        assert_eq!(reduction.window(1, 5, 10, false), Some(6));
        reduction.record_sent(1);
        assert_eq!(reduction.window(1, 5, 10, true), Some(7));
        assert_eq!(reduction.window(1, 10, 10, true), Some(10));
        assert_eq!(reduction.window(0, 10, 10, true), None);
    }
}
