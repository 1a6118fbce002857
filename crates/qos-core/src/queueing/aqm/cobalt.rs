//! COBALT, the active queue management of CAKE: CoDel and BLUE in parallel.
//!
//! Source: T. Hoeiland-Joergensen, D. Taht, J. Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for
//! Home Gateways", IEEE LANMAN 2018, and Linux's `sch_cake`. CoDel (RFC 8289) signals at interval/√n as usual, by marks
//! where it can; its count goes down step by step when the delay is below the target again. BLUE drops with a
//! probability that grows while the buffer overflows and shrinks while the queue is empty, whether or not packets are
//! ECN-capable.

use crate::frame::descriptor::{mix, Descriptor};
use crate::plan::aqm::TinPlan;
use crate::queueing::aqm::manage::mark;
use crate::time::{Duration, Time};

/// Steps by which BLUE's probability grows and shrinks, in units of 2⁻³².
const BLUE_UP: u32 = 1 << 24;
const BLUE_DOWN: u32 = 1 << 20;

/// The state of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cobalt {
    count: u32,
    /// 1/√count in units of 2⁻³². As in Linux it is 0 before the first signal of a queue, which therefore follows the
    /// first packet above the target at once, not an interval later.
    inverse_root: u32,
    drop_next: Time,
    dropping: bool,
    blue_timer: Time,
    /// BLUE's probability, of 2³².
    probability: u32,
}

/// Outcome for a departing packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    pub drop: bool,
    pub marked: bool,
}

/// Counts below this have exact inverse roots; above it, Linux approximates each from that of the count before.
const EXACT_ROOTS: u32 = 16;

/// Returns 1/√count in units of 2⁻³²; that of 0 is that of 1.
fn exact_inverse_root(count: u32) -> u32 {
    (2f64.powi(32) / f64::from(count.max(1)).sqrt()).round() as u32
}

impl Cobalt {
    /// Sets the count of signals and its inverse root, from [`EXACT_ROOTS`] on by a step of Newton's method.
    fn set_count(&mut self, count: u32) {
        self.count = count;
        if count < EXACT_ROOTS {
            self.inverse_root = exact_inverse_root(count);
            return;
        }
        let root = u64::from(self.inverse_root);
        let rest = (3 << 32) - u64::from(count) * ((root * root) >> 32);
        self.inverse_root = (((rest >> 2) * root) >> 31) as u32;
    }

    /// Returns the time of the next signal after one at `from`.
    fn control_law(&self, from: Time, interval: Duration) -> Time {
        from + Duration(((u128::from(interval.0) * u128::from(self.inverse_root)) >> 32) as u64)
    }

    /// Records that a packet of this queue was dropped because the buffer was full.
    pub fn record_overflow(&mut self, now: Time, tin: &TinPlan) {
        if now.since(self.blue_timer) > tin.target {
            self.probability = self.probability.saturating_add(BLUE_UP);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Records that the queue was asked for a packet and had none.
    pub fn was_empty(&mut self, now: Time, tin: &TinPlan) {
        if self.probability > 0 && now.since(self.blue_timer) > tin.target {
            self.probability = self.probability.saturating_sub(BLUE_DOWN);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.set_count(self.count - 1);
            self.drop_next = self.control_law(self.drop_next, tin.interval);
        }
    }

    /// Returns whether some state still decays with time.
    pub fn is_active(&self, now: Time) -> bool {
        self.probability > 0 || self.count > 0 || now < self.drop_next
    }

    /// Decides on a departing packet with this wait, and marks it if necessary. `random` is uniform below 2³².
    pub fn decide(
        &mut self,
        now: Time,
        sojourn: Duration,
        tin: &TinPlan,
        descriptor: &mut Descriptor,
        random: u32,
    ) -> Signal {
        let over = sojourn > tin.target && sojourn.0 > 4 * tin.mtu_time.0;
        let due = self.count > 0 && now >= self.drop_next;
        let mut signal = Signal::default();
        // True if the time of the next signal is still in the past afterwards.
        let mut late = now > self.drop_next;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control_law(now, tin.interval);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            signal.marked = mark(descriptor);
            signal.drop = !signal.marked;
            self.set_count(self.count.saturating_add(1));
            self.drop_next = self.control_law(self.drop_next, tin.interval);
            late = now > self.drop_next;
        } else if due {
            while self.count > 0 && now >= self.drop_next {
                self.set_count(self.count - 1);
                self.drop_next = self.control_law(self.drop_next, tin.interval);
            }
            late = now > self.drop_next;
        }
        signal.drop |= self.probability > 0 && random < self.probability;
        if self.count == 0 {
            self.drop_next = now + tin.interval;
        } else if late && !signal.drop {
            self.drop_next = now;
        }
        signal
    }
}

/// Pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Chance(pub u64);

impl Chance {
    /// Returns the next number.
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TIN: TinPlan = TinPlan {
        threshold_bps: 20_000_000,
        quantum: 1_024,
        flow_quantum: 610,
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu_time: Duration::from_micros(606),
    };

    fn decide(law: &mut Cobalt, at_ms: u64, sojourn_ms: u64, ecn: u8, random: u32) -> Signal {
        let mut descriptor = Descriptor { ecn, ..Descriptor::UNKNOWN };
        law.decide(Time(at_ms * MS), Duration::from_millis(sojourn_ms), &TIN, &mut descriptor, random)
    }

    /// A queue above its target from second 10 on: the first signal of a queue at once, as in Linux, then interval/√n
    /// apart. After the count has returned to 0, the first signal follows an interval later.
    #[test]
    fn codel_signals_follow_the_control_law() {
        let mut law = Cobalt::default();
        decide(&mut law, 9_999, 1, 0, u32::MAX);
        let found: Vec<_> = (10_000..11_000).filter(|at| decide(&mut law, *at, 20, 0, u32::MAX).drop).collect();
        assert_eq!(found[..5], [10_001, 10_071, 10_129, 10_179, 10_224]);
        (1..200).for_each(|number| law.was_empty(Time((11_000 + number * 100) * MS), &TIN));
        assert_eq!(law.count, 0);
        decide(&mut law, 39_999, 1, 0, u32::MAX);
        let found: Vec<_> = (40_000..41_000).filter(|at| decide(&mut law, *at, 20, 0, u32::MAX).drop).collect();
        assert_eq!(found[..5], [40_100, 40_171, 40_229, 40_279, 40_324]);
    }

    /// From 16 on, a step of Newton's method in place of the root: 1/sqrt(16) is a quarter.
    #[test]
    fn inverse_roots_are_exact_to_a_thousandth() {
        let mut law = Cobalt::default();
        for count in (0..1_000).chain((0..1_000).rev()) {
            law.set_count(count);
            let exact = f64::from(exact_inverse_root(count));
            assert!((f64::from(law.inverse_root) / exact - 1.0).abs() < 0.002, "{count}");
        }
    }

    #[test]
    fn ecn_capable_packets_are_marked() {
        let mut law = Cobalt::default();
        decide(&mut law, 9_999, 1, 2, u32::MAX);
        let signals: Vec<_> = (10_000..11_000).map(|at| decide(&mut law, at, 20, 2, u32::MAX)).collect();
        assert!(signals.iter().all(|signal| !signal.drop));
        assert_eq!(signals.iter().position(|signal| signal.marked), Some(1));
    }

    /// Each packet that overflows, a target apart, adds 1/256; each time that an empty queue is asked, a target apart,
    /// takes 1/4096.
    #[test]
    fn blue_learns_from_full_and_from_empty_queues() {
        let mut law = Cobalt::default();
        for number in 1..=4 {
            law.record_overflow(Time(number * 6 * MS), &TIN);
            law.record_overflow(Time(number * 6 * MS + MS), &TIN);
        }
        assert_eq!(law.probability, 4 << 24);
        assert!(decide(&mut law, 30, 1, 2, (4 << 24) - 1).drop, "lack of ECN is deliberate");
        assert!(!decide(&mut law, 31, 1, 2, 4 << 24).drop);
        for number in 1..=64 {
            law.was_empty(Time((1_000 + number * 6) * MS), &TIN);
        }
        assert_eq!(law.probability, 0);
        (1..200).for_each(|number| law.was_empty(Time((2_000 + number * 100) * MS), &TIN));
        assert!(!law.is_active(Time(100_000 * MS)));
    }
}
