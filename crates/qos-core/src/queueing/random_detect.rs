//! Weighted random early detection: which packets are dropped before a queue is full.
//!
//! The mean depth is `mean·(1 - 2⁻ⁿ) + depth·2⁻ⁿ`, taken at each arrival. Below the packet's least threshold it is
//! accepted, from the greatest one on dropped, between them dropped with the probability (mean - min)/(max -
//! min)/denominator (the formula is unconfirmed in that detail). Numbers that pass for random come from the seed of the
//! ports' wiring, so that the same calls give the same packets.

use crate::config::queueing::RandomDetectBasis;
use crate::counters::count::Count;
use crate::counters::queue::{RandomDetectCounters, RandomDetectRow};
use crate::frame::descriptor::{mix, Descriptor};
use crate::frame::drop_reason::DropReason;
use crate::plan::queue::RandomDetectPlan;

/// Binary digits behind the point of the mean depth.
const FRACTION: u32 = 32;

/// What became of packets of one row.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    transmitted: Count,
    random: Count,
    tail: Count,
}

/// Early detection at work.
#[derive(Debug)]
pub(crate) struct RandomDetect {
    plan: RandomDetectPlan,
    mean: u64,
    seen: Vec<Seen>,
    state: u64,
}

impl RandomDetect {
    pub fn new(plan: RandomDetectPlan, seed: u64) -> RandomDetect {
        let seen = vec![Seen::default(); plan.rows.len()];
        RandomDetect { plan, mean: 0, seen, state: seed }
    }

    /// A packet comes to a queue of `depth` packets; returns why it is dropped, if it is.
    pub fn arrive(&mut self, depth: u64, descriptor: &Descriptor) -> Option<DropReason> {
        let shift = u32::from(self.plan.exponential_weight);
        self.mean = self.mean - (self.mean >> shift) + ((depth << FRACTION) >> shift);
        let row = self.plan.row(descriptor);
        let figures = self.plan.rows[row];
        let (min, max) = (u64::from(figures.min) << FRACTION, u64::from(figures.max) << FRACTION);
        if self.mean >= max {
            self.seen[row].tail.add(descriptor.counted_len);
            return Some(DropReason::RandomTail);
        }
        if self.mean < min {
            return None;
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let probability =
            (u128::from(self.mean - min) << 64) / (u128::from(max - min) * u128::from(figures.denominator));
        if u128::from(mix(self.state)) >= probability {
            return None;
        }
        self.seen[row].random.add(descriptor.counted_len);
        Some(DropReason::Random)
    }

    /// The queue or the flow was full.
    pub fn overflowed(&mut self, descriptor: &Descriptor) {
        self.seen[self.plan.row(descriptor)].tail.add(descriptor.counted_len);
    }

    /// A packet left the queue.
    pub fn transmitted(&mut self, descriptor: &Descriptor) {
        self.seen[self.plan.row(descriptor)].transmitted.add(descriptor.counted_len);
    }

    /// Zeroes the counters; the mean depth stays.
    pub fn clear(&mut self) {
        self.seen.fill(Seen::default());
    }

    pub fn counters(&self) -> RandomDetectCounters {
        let all = self.plan.basis == RandomDetectBasis::Precedence;
        let rows = self.plan.rows.iter().zip(&self.seen);
        RandomDetectCounters {
            basis: self.plan.basis,
            exponential_weight: self.plan.exponential_weight,
            mean_depth: self.mean as f64 / (1u64 << FRACTION) as f64,
            classes: rows
                .filter(|(_, seen)| all || seen.transmitted.packets + seen.random.packets + seen.tail.packets > 0)
                .map(|(row, seen)| RandomDetectRow {
                    value: row.value,
                    transmitted: seen.transmitted,
                    random_drop: seen.random,
                    tail_drop: seen.tail,
                    min: row.min,
                    max: row.max,
                    denominator: row.denominator,
                })
                .collect(),
        }
    }
}
