//! Weighted random early detection, which drops packets before a queue is full.
//!
//! The mean depth is `mean·(1 - 2⁻ⁿ) + depth·2⁻ⁿ`, taken at each arrival. If the queue was empty before, the mean is
//! first aged as if packets of mean size had arrived at an empty queue during that time, one after another as fast as
//! the line sends them (S. Floyd, V. Jacobson, "Random early detection gateways for congestion avoidance", 1993);
//! otherwise an idle line would drop packets because of an earlier burst. A packet is accepted if the mean is below its
//! minimum threshold, dropped if it is at least its maximum threshold, and dropped between them with the probability
//! (mean - min)/(max - min)/denominator (the formula is unconfirmed in that detail). Pseudo-random numbers come from
//! the seed of the ports' wiring, so that the same calls give the same packets.
//!
//! With explicit congestion notification (RFC 3168) packets of ECN-capable transports are marked instead of dropped at
//! random, and those already marked pass; above the maximum threshold they are dropped like others, as in Cisco's
//! feature guide "WRED: Explicit Congestion Notification". ECT(0) and ECT(1) are treated equally.

use crate::config::defaults;
use crate::config::queueing::RandomDetectBasis;
use crate::counters::count::Count;
use crate::counters::queue::{RandomDetectCounters, RandomDetectRow};
use crate::counters::resolved::ResolvedRandomDetectRow;
use crate::frame::descriptor::{mix, Descriptor};
use crate::frame::drop_reason::DropReason;
use crate::plan::queue::RandomDetectPlan;
use crate::time::{Rate, Time, NANOS_PER_SECOND};
use crate::wire::ip::ecn;

/// Binary digits behind the point of the mean depth.
const FRACTION: u32 = 32;

/// Outcomes of the packets of one row.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    transmitted: Count,
    random: Count,
    tail: Count,
    marked: Count,
}

/// Early detection at work.
#[derive(Debug)]
pub(crate) struct RandomDetect {
    plan: RandomDetectPlan,
    mean: u64,
    seen: Vec<Seen>,
    state: u64,
    /// Maximum service rate of the queue, b/s.
    rate: Rate,
    /// All arrived packets; their mean size is used to age the mean depth of an idle queue.
    arrived: Count,
    /// Start of the present empty time, if any; the mean is aged up to it.
    empty_since: Time,
}

impl RandomDetect {
    /// Creates the state of early detection; `rate` is the maximum service rate of the queue.
    pub fn new(plan: RandomDetectPlan, seed: u64, rate: Rate, now: Time) -> RandomDetect {
        let seen = vec![Seen::default(); plan.rows.len()];
        RandomDetect { plan, mean: 0, seen, state: seed, rate, arrived: Count::default(), empty_since: now }
    }

    /// Sets the rate of the line.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Records that the queue has become empty.
    pub fn record_empty(&mut self, now: Time) {
        self.empty_since = now;
    }

    /// Ages the mean depth when a packet arrives at an empty queue.
    pub fn age(&mut self, now: Time) {
        let idle = now.since(self.empty_since).0;
        self.empty_since = now;
        if self.mean > 0 && idle > 0 && self.arrived.bytes > 0 {
            let size = self.arrived.bytes as f64 / self.arrived.packets as f64;
            let packets = idle as f64 / NANOS_PER_SECOND as f64 * self.rate.0 as f64 / 8.0 / size;
            let part = 1.0 - libm::exp2(-f64::from(self.plan.exponential_weight));
            self.mean = (self.mean as f64 * libm::pow(part, packets)) as u64;
        }
    }

    /// Handles a packet that arrives at a queue of this `depth`. Returns the drop reason, if any; a packet that can be
    /// marked is marked instead.
    pub fn arrive(&mut self, depth: Count, descriptor: &mut Descriptor) -> Option<DropReason> {
        self.arrived.add(descriptor.counted_len);
        let depth = if self.plan.in_bytes { depth.bytes } else { depth.packets };
        let shift = u32::from(self.plan.exponential_weight);
        self.mean = self.mean - (self.mean >> shift) + ((depth << FRACTION) >> shift);
        let row = self.plan.row(descriptor);
        let values = carried_out(self.plan.rows[row]);
        let (min, max) = (u64::from(values.min) << FRACTION, u64::from(values.max) << FRACTION);
        if self.mean >= max {
            self.seen[row].tail.add(descriptor.counted_len);
            return Some(DropReason::RandomTail);
        }
        if self.mean < min {
            return None;
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let probability =
            (u128::from(self.mean - min) << 64) / (u128::from(max - min) * u128::from(values.denominator));
        if u128::from(mix(self.state)) >= probability {
            return None;
        }
        if self.plan.ecn && descriptor.ecn != ecn::NOT_ECT {
            self.mark(row, descriptor);
            return None;
        }
        self.seen[row].random.add(descriptor.counted_len);
        Some(DropReason::Random)
    }

    /// Marks a packet with congestion experienced, unless it is marked already.
    fn mark(&mut self, row: usize, descriptor: &mut Descriptor) {
        if descriptor.ecn != ecn::CE || defaults::ECN_COUNTS_WHAT_CAME_MARKED {
            self.seen[row].marked.add(descriptor.counted_len);
        }
        descriptor.ecn = ecn::CE;
    }

    /// Counts a packet that found the queue or its flow full.
    pub fn record_overflow(&mut self, descriptor: &Descriptor) {
        self.seen[self.plan.row(descriptor)].tail.add(descriptor.counted_len);
    }

    /// Counts a packet that left the queue.
    pub fn count_transmitted(&mut self, descriptor: &Descriptor) {
        self.seen[self.plan.row(descriptor)].transmitted.add(descriptor.counted_len);
    }

    /// Zeroes the counters; the mean depth stays.
    pub fn clear(&mut self) {
        self.seen.fill(Seen::default());
    }

    pub fn counters(&self) -> RandomDetectCounters {
        let all = self.plan.basis != RandomDetectBasis::Dscp;
        let rows = self.plan.rows.iter().zip(&self.seen);
        RandomDetectCounters {
            basis: self.plan.basis,
            exponential_weight: self.plan.exponential_weight,
            in_bytes: self.plan.in_bytes,
            mean_depth: self.mean as f64 / (1u64 << FRACTION) as f64,
            ecn_mark: self.plan.ecn.then(|| self.seen.iter().fold(Count::default(), |sum, seen| sum.plus(seen.marked))),
            classes: rows
                .filter(|(row, seen)| {
                    let Seen { transmitted, random, tail, marked } = seen;
                    let shown = all || (self.plan.shown >> row.value) & 1 == 1;
                    shown || transmitted.packets + random.packets + tail.packets + marked.packets > 0
                })
                .map(|(row, seen)| RandomDetectRow {
                    value: row.value,
                    transmitted: seen.transmitted,
                    random_drop: seen.random,
                    tail_drop: seen.tail,
                    ecn_mark: seen.marked,
                    min: row.min,
                    max: row.max,
                    denominator: row.denominator,
                })
                .collect(),
        }
    }
}

/// Returns the effective values: unchanged unless a deliberate mistake is active.
fn carried_out(row: ResolvedRandomDetectRow) -> ResolvedRandomDetectRow {
    let ResolvedRandomDetectRow { min, max, denominator, .. } = row;
    match row {
        row if mistaken!(RandomDetectSeldom) => ResolvedRandomDetectRow { denominator: denominator * 10, ..row },
        row if mistaken!(RandomDetectEarly) => ResolvedRandomDetectRow { min: min / 2, max: max / 2, ..row },
        row => row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: u8) -> ResolvedRandomDetectRow {
        ResolvedRandomDetectRow { value, min: 5, max: 10, denominator: 10 }
    }

    /// By DSCP only rows with packets are reported, by precedence all rows.
    #[test]
    fn only_rows_with_packets_are_reported() {
        for (basis, told) in [(RandomDetectBasis::Dscp, 1), (RandomDetectBasis::Precedence, 2)] {
            let plan = RandomDetectPlan {
                basis,
                exponential_weight: 9,
                ecn: true,
                in_bytes: false,
                shown: 0,
                rows: vec![row(0), row(1)],
            };
            for kind in 0..4 {
                let mut red = RandomDetect::new(plan.clone(), 0, Rate(1_000_000), Time(0));
                let seen = &mut red.seen[1];
                [&mut seen.transmitted, &mut seen.random, &mut seen.tail, &mut seen.marked][kind].add(100);
                let classes = red.counters().classes;
                assert_eq!((classes.len(), classes.last().unwrap().value), (told, 1), "{kind}");
                red.clear();
                assert_eq!(red.counters().classes.len(), if told == 1 { 0 } else { 2 });
            }
        }
    }
}
