//! PIE's drop probability: "Proportional Integral Controller Enhanced (PIE): A Lightweight Control Scheme to Address
//! the Bufferbloat Problem", R. Pan, P. Natarajan, F. Baker, G. White, RFC 8033, sections 4 and 5.
//!
//! Each update period the probability moves by alpha·(delay - target) + beta·(delay - delay before), scaled down while
//! it is small. A packet that comes is dropped with it. Where the RFC leaves a choice this is Linux's `sch_pie`: the
//! queueing delay is that of the packet that left last, and the probability shrinks by 1/64 (RFC: 0.98) in a period in
//! which the queue was empty. So it is where Linux differs from the RFC: during a long overload the probability exceeds
//! 1, and needs more updates to return.

use crate::frame::descriptor::mix;
use crate::plan::aqm::PiePlan;
use crate::queueing::aqm::manage::FULL_FRAME;
use crate::time::{Duration, Time, NANOS_PER_SECOND};

/// Allowance after an idle time, during which nothing is dropped (RFC 8033: MAX_BURST).
const MAX_BURST: Duration = Duration::from_millis(150);

/// Delay above which the probability grows by [`STEP`] each period (RFC 8033, section 5.2).
const LONG_DELAY: Duration = Duration::from_millis(250);

/// Maximum growth of the probability in a period while it is at least a tenth (RFC 8033, section 5.2).
const STEP: f64 = 0.02;

/// Value above which the probability is set to 1. The RFC does so above 1. In Linux the number 1 is 2^56, and what does
/// not fit into 64 bits is set to it.
const OVERFLOW: f64 = 256.0;

/// The time from the creation of the queue to the first update, as in Linux.
const FIRST_UPDATE: Duration = Duration::from_millis(500);

/// Probability above which ECN-capable packets are dropped too (RFC 8033: MARK_ECNTH).
pub(crate) const MOST_MARKED: f64 = 0.1;

/// Sums of probabilities between which a drop is left to chance (RFC 8033, section 5.4).
const CERTAIN: (f64, f64) = (0.85, 8.5);

/// Maximum number of updates that are calculated individually; after that, an unchanged queue no longer changes the
/// state.
const MOST_UPDATES: u64 = 4_096;

/// The state of the controller.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    plan: PiePlan,
    /// Drop probability, from 0; it can exceed 1, see [`OVERFLOW`].
    probability: f64,
    /// Sum of the probabilities since the last drop.
    accumulated: f64,
    delay: Duration,
    delay_before: Duration,
    burst: Duration,
    /// Departure time of the last packet.
    left: Option<Time>,
    next_update: Time,
    random: u64,
}

/// Returns the factor by which the steps are smaller at a probability (RFC 8033, section 4.2).
fn scale(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2_048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

fn seconds(length: Duration) -> f64 {
    length.0 as f64 / NANOS_PER_SECOND as f64
}

impl Pie {
    pub fn new(plan: PiePlan, seed: u64, now: Time) -> Pie {
        Pie {
            plan,
            probability: 0.0,
            accumulated: 0.0,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            burst: MAX_BURST,
            left: None,
            next_update: now + FIRST_UPDATE,
            random: seed,
        }
    }

    /// Returns the drop probability, at most 1.
    pub fn probability(&self) -> f64 {
        self.probability.min(1.0)
    }

    /// Records that a packet was dropped because the queue was full.
    pub fn record_overflow(&mut self) {
        self.accumulated = 0.0;
    }

    /// Returns the delay that the next update will see.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Carries out the updates that were due by `now`; the queue has not changed since the last one.
    pub fn advance(&mut self, now: Time, backlog: u64) {
        let mut made = 0;
        while self.next_update <= now {
            self.update(backlog);
            made += 1;
            if made == MOST_UPDATES {
                let left = now.since(self.next_update).0 / self.plan.update.0;
                self.next_update += Duration(left * self.plan.update.0);
            }
            self.next_update += self.plan.update;
        }
    }

    /// Updates the drop probability (RFC 8033, sections 4.2 and 5).
    fn update(&mut self, backlog: u64) {
        let (delay, before) = (self.delay, self.delay_before);
        // With waiting packets, a delay of zero means that no packet has left yet.
        let mut known = delay > Duration::ZERO || backlog == 0;
        let gain = |sixteenths: u32| f64::from(sixteenths) / 16.0 / scale(self.probability);
        let mut delta = gain(self.plan.alpha) * (seconds(delay) - seconds(self.plan.target))
            + gain(self.plan.beta) * (seconds(delay) - seconds(before));
        if delta > STEP && self.probability >= 0.1 {
            delta = STEP;
        }
        if delay > LONG_DELAY {
            delta += STEP;
        }
        self.probability += delta;
        if self.probability > OVERFLOW {
            self.probability = 1.0;
            known = false;
        }
        self.probability = self.probability.max(0.0);
        if delay == Duration::ZERO && before == Duration::ZERO && known {
            self.probability -= self.probability / 64.0;
        }
        let half = Duration(self.plan.target.0 / 2);
        if delay < half && before < half && self.probability == 0.0 {
            self.burst = MAX_BURST;
            self.accumulated = 0.0;
            self.left = None;
        }
        self.delay_before = delay;
    }

    /// Records a packet that has left at `now` after waiting for `sojourn`; `backlog` is the remaining queue in counted
    /// bytes.
    pub fn record_departure(&mut self, now: Time, sojourn: Duration, backlog: u64) {
        self.delay = if backlog == 0 { Duration::ZERO } else { sojourn };
        let since = self.left.map_or(Duration::ZERO, |left| now.since(left));
        self.left = Some(now);
        self.burst = Duration(self.burst.0.saturating_sub(since.0));
    }

    /// Returns whether an arriving packet is to be dropped or marked (RFC 8033, sections 4.1 and 5.4).
    pub fn drops(&mut self, bytes: u32, backlog: u64) -> bool {
        if self.burst > Duration::ZERO {
            return false;
        }
        if self.delay.0 < self.plan.target.0 / 2 && self.probability < 0.2 {
            return false;
        }
        if backlog < 2 * u64::from(FULL_FRAME) {
            return false;
        }
        let part = if self.plan.bytemode { f64::from(bytes.min(FULL_FRAME)) / f64::from(FULL_FRAME) } else { 1.0 };
        let probability = self.probability * part;
        self.accumulated = if probability == 0.0 { 0.0 } else { self.accumulated + probability };
        let (never, always) = CERTAIN;
        if self.accumulated < never {
            return false;
        }
        let dropped = self.accumulated >= always || self.chance() < probability;
        if dropped {
            self.accumulated = 0.0;
        }
        dropped
    }

    /// Returns a pseudo-random number from 0 to below 1.
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.random) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PLAN: PiePlan = PiePlan {
        limit: 1_000,
        target: Duration::from_millis(15),
        update: Duration::from_millis(15),
        alpha: 2,
        beta: 20,
        ecn: false,
        bytemode: false,
    };

    fn pie(probability: f64, delay_ms: u64, before_ms: u64) -> Pie {
        Pie {
            probability,
            delay: Duration::from_millis(delay_ms),
            delay_before: Duration::from_millis(before_ms),
            ..Pie::new(PLAN, 1, Time(0))
        }
    }

    /// alpha is 0.125 and beta 1.25 per second; each step by hand, with the scale of its probability.
    #[test]
    fn the_probability_moves_as_in_the_rfc() {
        for (probability, delay, before, after) in [
            // 0.125 * (35 - 15) ms + 1.25 * (35 - 25) ms = 0.0025 + 0.0125
            (0.2, 35, 25, 0.215),
            // the same, divided by 2, 8, 32, 128, 512 and 2048
            (0.05, 35, 25, 0.0575),
            (0.005, 35, 25, 0.006_875),
            (0.0005, 35, 25, 0.000_968_75),
            (0.000_05, 35, 25, 0.000_167_187_5),
            (0.000_005, 35, 25, 0.000_034_296_875),
            (0.0, 35, 25, 0.000_007_324_218_75),
            // 0.125 * -10 ms + 1.25 * -20 ms = -0.02625, and no lower than 0
            (0.2, 5, 25, 0.173_75),
            (0.01, 5, 25, 0.0),
            // 0.125 * 85 ms + 1.25 * 80 ms is more than a step of 0.02
            (0.3, 100, 20, 0.32),
            // above 250 ms one more step, to which 0.125 * 285 ms is limited
            (0.3, 300, 300, 0.34),
            // Linux has no limit at 1.
            (0.995, 300, 300, 1.035),
            (255.99, 300, 300, 1.0),
        ] {
            let mut pie = pie(probability, delay, before);
            pie.update(10_000);
            assert!((pie.probability - after).abs() < 1e-12, "{probability}: {} for {after}", pie.probability);
            assert_eq!(pie.delay_before, Duration::from_millis(delay));
        }
    }

    /// An empty queue takes 0.125 * 15 ms and 1/64 of the rest away each period.
    #[test]
    fn the_probability_of_an_empty_queue_decays() {
        let mut pie = pie(0.5, 0, 0);
        pie.advance(Time(500 * MS), 0);
        let once = (0.5 - 0.001_875) * 63.0 / 64.0;
        assert!((pie.probability - once).abs() < 1e-12, "{}", pie.probability);
        pie.advance(Time(100_000 * MS), 0);
        assert_eq!(pie.probability, 0.0);
        // Nothing is due before the next multiple of the period.
        assert_eq!(pie.next_update.0 % (15 * MS), 500 * MS % (15 * MS));
        pie.advance(Time(u64::MAX / 2), 0);
        assert!(pie.next_update > Time(u64::MAX / 2) && pie.next_update <= Time(u64::MAX / 2 + 15 * MS));
    }

    /// The burst allowance lasts for 150 ms of departures; small queues and short delays are left alone.
    #[test]
    fn pie_passes_bursts_and_short_queues() {
        let mut pie = pie(1.0, 40, 40);
        pie.record_departure(Time(0), Duration::from_millis(40), 50_000);
        pie.record_departure(Time(149 * MS), Duration::from_millis(40), 50_000);
        assert!((0..20).all(|_| !pie.drops(1_514, 50_000)));
        pie.record_departure(Time(150 * MS), Duration::from_millis(40), 50_000);
        assert!(pie.drops(1_514, 50_000));
        assert!(!pie.drops(1_514, 3_027));
        (pie.probability, pie.delay) = (0.19, Duration::from_millis(7));
        assert!((0..50).all(|_| !pie.drops(1_514, 50_000)));
    }

    /// Over many packets as many are dropped as the probability says, never two within 0.85/p.
    #[test]
    fn pie_drop_frequency_equals_its_probability() {
        for (probability, bytemode, bytes) in [(0.05, false, 1_514), (0.1, true, 757)] {
            let mut pie = Pie { burst: Duration::ZERO, ..pie(probability, 40, 40) };
            pie.plan.bytemode = bytemode;
            let (mut last, mut count, packets) = (0, 0, 200_000);
            for number in 1..=packets {
                if pie.drops(bytes, 50_000) {
                    assert!(number - last >= 17, "{number} after {last}");
                    (last, count) = (number, count + 1);
                }
            }
            // Between drops: 17 packets up to a sum of 0.85, then 20 on average by chance.
            let expected = f64::from(packets) / (16.0 + 20.0);
            assert!((f64::from(count) - expected).abs() < 0.05 * expected, "{count} for {expected}");
        }
    }
}
