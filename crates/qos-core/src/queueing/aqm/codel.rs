//! CoDel's control law: "Controlled Delay Active Queue Management", K. Nichols, V. Jacobson, A. McGregor, J. Iyengar,
//! RFC 8289, sections 5.3 to 5.6.
//!
//! A packet's queueing delay is known when it leaves. When it was at least the target for a whole interval, with more
//! than a full packet waiting, packets are dropped as they leave, the n-th of a cycle interval/√n after the one before
//! it. With ECN (RFC 3168) a packet is marked in place of a drop. As in Linux, `ce_threshold` marks packets that waited
//! longer than that.

use crate::frame::drop_reason::DropReason;
use crate::plan::aqm::CodelPlan;
use crate::queueing::aqm::manage::{mark, Decisions, Lost, FULL_FRAME};
use crate::queueing::discipline::Item;
use crate::time::{Duration, Time};

/// Intervals since the last drop within which a new cycle goes on from the rate of the last one (RFC 8289, section
/// 5.5).
const CYCLES_APART: u64 = 16;

/// A queue from which the law takes packets.
pub(crate) trait Waiting<P> {
    /// The packet that came first.
    fn pop(&mut self) -> Option<Item<P>>;
    /// Counted bytes that wait.
    fn bytes(&self) -> u64;
}

/// The state of the law (`codel_queue_t` of the RFC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Codel {
    /// Time at which the delay will have been above the target for an interval.
    first_above: Option<Time>,
    drop_next: Time,
    /// Drops of this cycle.
    pub count: u32,
    /// The same when the cycle began.
    last_count: u32,
    dropping: bool,
}

/// Time of the next drop after one at `from`.
pub(crate) fn control_law(from: Time, interval: Duration, count: u32) -> Time {
    from + Duration((interval.0 as f64 / f64::from(count.max(1)).sqrt()) as u64)
}

impl Codel {
    /// Returns whether a departing packet may be dropped (`dodequeue`).
    fn may_drop(&mut self, now: Time, plan: &CodelPlan, sojourn: Option<Duration>, backlog: u64) -> bool {
        let low = sojourn.is_none_or(|sojourn| sojourn < plan.target || backlog <= u64::from(FULL_FRAME));
        if low {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + plan.interval);
                false
            }
            Some(first_above) => now >= first_above,
        }
    }

    /// The packet that leaves at `now`; packets dropped before it are put in `lost`.
    pub fn dequeue<P>(
        &mut self,
        now: Time,
        plan: &CodelPlan,
        queue: &mut impl Waiting<P>,
        decisions: &mut Decisions,
        lost: &mut Vec<Lost<P>>,
    ) -> Option<Item<P>> {
        let (mut item, mut may_drop) = self.next(now, plan, queue);
        if item.is_none() {
            self.dropping = false;
            return None;
        }
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if plan.ecn && mark_item(&mut item, decisions) {
                    self.drop_next = control_law(self.drop_next, plan.interval, self.count);
                    break;
                }
                drop_item(item.take(), decisions, lost);
                (item, may_drop) = self.next(now, plan, queue);
                if may_drop {
                    self.drop_next = control_law(self.drop_next, plan.interval, self.count);
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
            let recent = now.since(self.drop_next).0 < CYCLES_APART * plan.interval.0;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = control_law(now, plan.interval, self.count);
        }
        if let Some(item) = &mut item {
            let sojourn = now.since(item.arrival);
            decisions.sojourn_ns = Some(sojourn.0);
            if plan.ce_threshold.is_some_and(|threshold| sojourn > threshold) && mark(&mut item.descriptor) {
                decisions.over_threshold.add(item.bytes());
            }
        }
        item
    }

    fn next<P>(&mut self, now: Time, plan: &CodelPlan, queue: &mut impl Waiting<P>) -> (Option<Item<P>>, bool) {
        let item = queue.pop();
        let sojourn = item.as_ref().map(|item| now.since(item.arrival));
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
        /// All packets of [`queue`] have one size, and a sum over thousands at each packet takes seconds.
        fn bytes(&self) -> u64 {
            self.front().map_or(0, |item| self.len() as u64 * u64::from(item.bytes()))
        }
    }

    /// Packets numbered from 0 that all came at the beginning.
    fn queue(packets: u32, ecn: u8) -> VecDeque<Item<u32>> {
        let descriptor = Descriptor { counted_len: 1_514, ecn, ..Descriptor::UNKNOWN };
        (0..packets).map(|payload| Item { descriptor, payload, class: None, arrival: Time(0), delayed: 0 }).collect()
    }

    /// The times of drops, or marks, of a queue that never empties, with a packet each `gap_ns`.
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

    /// RFC 8289, section 4.1: the drops of a standing queue come interval/√n apart.
    #[test]
    fn drops_of_a_standing_queue_follow_the_control_law() {
        let gap = MS / 10;
        let found = drops(&PLAN, 0, gap, 20_000);
        // The first packet above the target leaves at 5 ms.
        let mut due = Time(5 * MS + 100 * MS);
        for (number, at) in (1..).zip(&found) {
            assert!((due.0..due.0 + gap).contains(at), "drop {number} at {at}, due at {due}");
            // The first counts from its own time, the others from the time at which they were due.
            let from = if number == 1 { Time(*at) } else { due };
            due = control_law(from, PLAN.interval, number);
        }
        assert!(found.len() > 60, "{}", found.len());
    }

    /// interval/√n for n = 1, 2, 3, 4: 100, 70.7, 57.7 and 50 ms.
    #[test]
    fn the_control_law_is_that_of_the_rfc() {
        let times: Vec<_> = (1..=4).map(|count| control_law(Time(0), PLAN.interval, count).0 / 1_000).collect();
        assert_eq!(times, [100_000, 70_710, 57_735, 50_000]);
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
    fn a_new_cycle_goes_on_from_the_rate_of_the_last() {
        for (pause_ms, count) in [(500, 7), (20_000, 1)] {
            let mut law = Codel { count: 9, last_count: 2, drop_next: Time(1_000 * MS), ..Codel::default() };
            let now = Time((1_000 + pause_ms) * MS);
            law.first_above = Some(now);
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
