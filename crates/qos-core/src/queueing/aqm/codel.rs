//! CoDel's control law: "Controlled Delay Active Queue Management", K. Nichols, V. Jacobson, A. McGregor, J. Iyengar,
//! RFC 8289, sections 5.3 to 5.6.
//!
//! A packet's queueing delay is known when it leaves. If it was at least the target for a whole interval, with more
//! than a full packet waiting, packets are dropped at departure, the n-th of a cycle interval/√n after the one before
//! it. With ECN (RFC 3168) a packet is marked in place of a drop. As in Linux (`include/net/codel_impl.h`), the inverse
//! root is approximated by a step of Newton's method for each drop, times are in units of 1024 ns, and `ce_threshold`
//! marks packets that waited longer than that.

use crate::frame::drop_reason::DropReason;
use crate::plan::aqm::CodelPlan;
use crate::queueing::aqm::manage::{mark, Decisions, Lost, FULL_FRAME};
use crate::queueing::discipline::Item;
use crate::time::{Duration, Time};

/// Number of intervals since the last drop within which a new cycle continues at the rate of the last one (RFC 8289,
/// section 5.5).
const CYCLES_APART: u64 = 16;

/// Nanoseconds in a unit of the law's clock (`CODEL_SHIFT` in Linux).
const TICK_NS: u64 = 1 << 10;

/// The greatest inverse root, which is that of 1, in units of 2⁻¹⁶.
const INVERSE_ROOT_OF_ONE: u16 = u16::MAX;

/// A queue from which the law takes packets.
pub(crate) trait Waiting<P> {
    /// Removes the packet that arrived first.
    fn pop(&mut self) -> Option<Item<P>>;
    /// Returns the number of counted bytes in the queue.
    fn bytes(&self) -> u64;
}

/// The state of the law (`codel_queue_t` of the RFC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Codel {
    /// Time at which the delay will have been above the target for an interval.
    first_above: Option<Time>,
    drop_next: Time,
    /// Drops in the current dropping cycle.
    pub count: u32,
    /// Drops at the start of the present cycle.
    last_count: u32,
    /// Approximation of 1/√count, in units of 2⁻¹⁶.
    inverse_root: u16,
    dropping: bool,
}

/// Returns a number of nanoseconds in whole units of the law's clock.
fn whole_ticks(ns: u64) -> u64 {
    ns & !(TICK_NS - 1)
}

fn sojourn<P>(item: &Item<P>, now: Time) -> u64 {
    now.0.saturating_sub(whole_ticks(item.arrival.0))
}

impl Codel {
    /// Returns whether a departing packet may be dropped (`dodequeue`).
    fn may_drop(&mut self, now: Time, plan: &CodelPlan, sojourn: Option<u64>, backlog: u64) -> bool {
        let target = whole_ticks(plan.target.0);
        let low = sojourn.is_none_or(|sojourn| sojourn < target || backlog <= u64::from(FULL_FRAME));
        if low {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + Duration(whole_ticks(plan.interval.0)));
                false
            }
            Some(first_above) => now > first_above,
        }
    }

    /// Sets the count of drops, and improves the approximation of its inverse root by a step of Newton's method.
    fn set_count(&mut self, count: u32) {
        self.count = count;
        let root = u64::from(self.inverse_root) << 16;
        let square = (root * root) >> 32;
        let step = (3_u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
        self.inverse_root = (step.wrapping_mul(root) >> 47) as u16;
    }

    /// Returns the time of the next drop after one at `from`.
    fn control_law(&self, from: Time, plan: &CodelPlan) -> Time {
        let ticks = ((plan.interval.0 / TICK_NS) * u64::from(self.inverse_root)) >> 16;
        from + Duration(ticks * TICK_NS)
    }

    /// Removes the packet that leaves at `now`; packets dropped before it are put in `lost`.
    pub fn dequeue<P>(
        &mut self,
        now: Time,
        plan: &CodelPlan,
        queue: &mut impl Waiting<P>,
        decisions: &mut Decisions,
        lost: &mut Vec<Lost<P>>,
    ) -> Option<Item<P>> {
        let exact = now;
        let now = Time(whole_ticks(now.0));
        let first_above = self.first_above;
        let (mut item, mut may_drop) = self.next(now, plan, queue);
        if item.is_none() {
            // In Linux an empty queue does not end the time above the target; in the RFC it does.
            (self.dropping, self.first_above) = (false, first_above);
            return None;
        }
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.set_count(self.count + 1);
                if plan.ecn && mark_item(&mut item, decisions) {
                    self.drop_next = self.control_law(self.drop_next, plan);
                    break;
                }
                drop_item(item.take(), decisions, lost);
                (item, may_drop) = self.next(now, plan, queue);
                if may_drop {
                    self.drop_next = self.control_law(self.drop_next, plan);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            if !(plan.ecn && mark_item(&mut item, decisions)) {
                drop_item(item.take(), decisions, lost);
                (item, _) = self.next(now, plan, queue);
            }
            self.dropping = true;
            let delta = self.count.wrapping_sub(self.last_count);
            let recent = now.since(self.drop_next).0 < CYCLES_APART * whole_ticks(plan.interval.0);
            if delta > 1 && recent {
                self.set_count(delta);
            } else {
                (self.count, self.inverse_root) = (1, INVERSE_ROOT_OF_ONE);
            }
            self.last_count = self.count;
            self.drop_next = self.control_law(now, plan);
        }
        if let Some(item) = &mut item {
            decisions.sojourn_ns = Some(exact.since(item.arrival).0);
            let above = |threshold: Duration| sojourn(item, now) > whole_ticks(threshold.0);
            if plan.ce_threshold.is_some_and(above) && mark(&mut item.descriptor) {
                decisions.over_threshold.add(item.bytes());
            }
        }
        item
    }

    fn next<P>(&mut self, now: Time, plan: &CodelPlan, queue: &mut impl Waiting<P>) -> (Option<Item<P>>, bool) {
        let item = queue.pop();
        let sojourn = item.as_ref().map(|item| sojourn(item, now));
        let may_drop = self.may_drop(now, plan, sojourn, queue.bytes());
        (item, may_drop)
    }
}

fn mark_item<P>(item: &mut Option<Item<P>>, decisions: &mut Decisions) -> bool {
    let Some(item) = item else { return false };
    let marked = mark(&mut item.descriptor);
    if marked {
        decisions.marked.add(item.bytes());
    }
    marked
}

fn drop_item<P>(item: Option<Item<P>>, decisions: &mut Decisions, lost: &mut Vec<Lost<P>>) {
    if let Some(item) = item {
        decisions.early.add(item.bytes());
        lost.push((DropReason::Aqm, item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::descriptor::Descriptor;
    use std::collections::VecDeque;

    const MS: u64 = 1_000_000;
    const PLAN: CodelPlan = CodelPlan {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        ce_threshold: None,
        ecn: false,
    };

    impl Waiting<u32> for VecDeque<Item<u32>> {
        fn pop(&mut self) -> Option<Item<u32>> {
            self.pop_front()
        }
        /// Returns all packets of [`queue`] have one size, and a sum over thousands at each packet takes seconds.
        fn bytes(&self) -> u64 {
            self.front().map_or(0, |item| self.len() as u64 * u64::from(item.bytes()))
        }
    }

    /// Returns packets, numbered from 0, that all arrived at the beginning.
    fn queue(packets: u32, ecn: u8) -> VecDeque<Item<u32>> {
        let descriptor = Descriptor { counted_len: 1_514, ecn, ..Descriptor::UNKNOWN };
        (0..packets).map(|payload| Item { descriptor, payload, class: None, arrival: Time(0), delayed: 0 }).collect()
    }

    /// Returns the times of drops, or marks, of a queue that never empties, with a packet each `gap_ns`.
    fn drops(plan: &CodelPlan, ecn: u8, gap_ns: u64, packets: u32) -> Vec<u64> {
        let (mut law, mut waiting) = (Codel::default(), queue(2 * packets, ecn));
        let (mut decisions, mut lost) = (Decisions::default(), Vec::new());
        let mut found = Vec::new();
        for number in 1..=u64::from(packets) {
            let now = Time(number * gap_ns);
            law.dequeue(now, plan, &mut waiting, &mut decisions, &mut lost);
            let events = decisions.early.packets + decisions.marked.packets;
            found.extend((found.len() as u64..events).map(|_| now.0));
        }
        found
    }

    /// Returns the approximations of 1/√n for n from 1 on: 1, 0.5, 0.5625, 0.4878, each by a step of Newton's method.
    fn inverse_roots() -> impl Iterator<Item = f64> {
        (1..).scan(1.0, |root, count| {
            if count > 1 {
                *root *= (3.0 - f64::from(count) * *root * *root) / 2.0;
            }
            Some(*root)
        })
    }

    /// RFC 8289, section 4.1, with the approximation of Linux.
    #[test]
    fn drops_of_a_standing_queue_follow_the_control_law() {
        let gap = MS / 10;
        let found = drops(&PLAN, 0, gap, 20_000);
        // The first packet above the target leaves at 5 ms; times and roots are rounded down.
        let mut due = (5 * MS + 100 * MS) as f64;
        for (number, (at, root)) in found.iter().zip(inverse_roots()).enumerate() {
            let late = *at as f64 - due;
            assert!((-1e6..2e5).contains(&late), "drop {number} at {at}, due at {due}");
            // The first counts from its own time, the others from the time at which they were due.
            due = if number == 0 { *at as f64 } else { due } + 1e8 * root;
        }
        assert!(found.len() > 60, "{}", found.len());
    }

    #[test]
    fn the_inverse_root_is_that_of_linux_and_converges_to_the_one_of_the_rfc() {
        let mut law = Codel { count: 1, inverse_root: INVERSE_ROOT_OF_ONE, ..Codel::default() };
        for (count, root) in (2..1_000).zip(inverse_roots().skip(1)) {
            law.set_count(count);
            let found = f64::from(law.inverse_root) / 65_536.0;
            assert!((found - root).abs() < 2e-4, "{count}: {found}, expected {root}");
            assert!(count < 10 || (found * f64::from(count).sqrt() - 1.0).abs() < 0.01, "{count}: {found}");
        }
        law.set_count(u32::MAX);
    }

    /// RFC 8289, section 4.4: packets of ECN-capable transports are marked, all others dropped.
    #[test]
    fn capable_packets_are_marked_at_the_times_of_drops() {
        let marking = CodelPlan { ecn: true, ..PLAN };
        assert_eq!(drops(&marking, 2, MS / 10, 20_000), drops(&PLAN, 0, MS / 10, 20_000));
        let (mut decisions, mut lost) = (Decisions::default(), Vec::new());
        let (mut law, mut waiting) = (Codel::default(), queue(4_000, 2));
        for number in 1..2_000 {
            let left = law.dequeue(Time(number * MS / 10), &marking, &mut waiting, &mut decisions, &mut lost);
            assert_eq!(left.unwrap().payload, number as u32 - 1, "nothing is lost");
        }
        assert!(decisions.marked.packets > 0 && lost.is_empty());
    }

    /// RFC 8289, section 5.5: a cycle that begins soon after the last one goes on with its rate.
    #[test]
    fn new_dropping_cycle_continues_at_the_last_rate() {
        for (pause_ms, count) in [(500, 7), (20_000, 1)] {
            let mut law = Codel { count: 9, last_count: 2, drop_next: Time(1_000 * MS), ..Codel::default() };
            let now = Time((1_000 + pause_ms) * MS);
            law.first_above = Some(now - Duration(2 * TICK_NS));
            let left = law.dequeue(now, &PLAN, &mut queue(10, 0), &mut Decisions::default(), &mut Vec::new());
            assert_eq!((left.unwrap().payload, law.count, law.dropping), (1, count, true));
        }
    }

    /// Never the last packet, however long it has waited.
    #[test]
    fn a_single_packet_is_not_dropped() {
        let (mut law, mut lost) = (Codel::default(), Vec::new());
        for number in 1..100 {
            let now = Time(number * 1_000 * MS);
            assert!(law.dequeue(now, &PLAN, &mut queue(2, 0), &mut Decisions::default(), &mut lost).is_some());
        }
        assert!(lost.is_empty());
    }

    #[test]
    fn packets_waiting_beyond_the_threshold_are_marked() {
        let plan = CodelPlan { ce_threshold: Some(Duration::from_millis(1)), ..PLAN };
        let (mut law, mut decisions, mut waiting) = (Codel::default(), Decisions::default(), queue(20, 1));
        for tenths in [9, 10, 11, 12] {
            law.dequeue(Time(tenths * MS / 10), &plan, &mut waiting, &mut decisions, &mut Vec::new());
        }
        assert_eq!(decisions.over_threshold.packets, 2);
    }
}
