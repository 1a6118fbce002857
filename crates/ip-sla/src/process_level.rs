//! Process level: the processor of a router, for packets that it does not merely forward.
//!
//! IOS forwards at interrupt level. A packet that the router itself sends or answers, or that it receives for a
//! process, is handled by that process, which takes a time that can be seen in round-trip times. Here every such packet
//! takes the same time, one at a time.

use std::collections::VecDeque;

/// Maximum time at process level, ns; no router takes longer.
pub const LONGEST_PROCESS_NS: u64 = 1_000_000_000;
/// Time before the latest packet within which an earlier packet is still put in order.
const KEPT_NS: u64 = 1_000_000_000;

/// Times at which packets were handled, in event time (nanoseconds).
#[derive(Debug, Default)]
pub struct ProcessLevel {
    /// Processing time of a packet; none if process level is not modelled.
    each: Option<u64>,
    /// Start times of the recently handled packets, in order.
    begun: VecDeque<u64>,
    handled: u64,
}

impl ProcessLevel {
    /// Sets the time per packet to `each` from now on.
    pub fn set(&mut self, each: Option<u64>) {
        if self.each != each {
            *self = Self { each, ..Self::default() };
        }
    }

    /// Returns whether process level is modelled.
    pub fn is_modelled(&self) -> bool {
        self.each.is_some()
    }

    /// Returns the nanoseconds spent on packets since the configuration.
    pub fn busy_ns(&self) -> u64 {
        self.handled * self.each.unwrap_or(0)
    }

    /// Handles a packet that arrives at `at`; returns the time of completion.
    ///
    /// The daemon may handle a packet after a later one if it was prevented from running or reads one socket after the
    /// other. The packet then gets the gap in which a punctual router would have handled it.
    pub fn take_up(&mut self, at: u64) -> u64 {
        let Some(each) = self.each.filter(|_| !mistaken!(ProcessLevelFree)) else { return at };
        let mut begin = at;
        let mut place = self.begun.partition_point(|&other| other + each <= at);
        while let Some(&next) = self.begun.get(place).filter(|&&next| next < begin + each) {
            begin = next + each;
            place += 1;
        }
        self.begun.insert(place, begin);
        self.handled += 1;
        let oldest = self.begun.back().map_or(0, |latest| latest.saturating_sub(KEPT_NS));
        while self.begun.front().is_some_and(|&first| first < oldest) {
            self.begun.pop_front();
        }
        begin + each
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn level(each: u64) -> ProcessLevel {
        let mut level = ProcessLevel::default();
        level.set(Some(each));
        level
    }

    #[test]
    fn unmodelled_processing_takes_no_time() {
        assert_eq!(ProcessLevel::default().take_up(7), 7);
        assert_eq!(level(0).take_up(7), 7);
    }

    #[test]
    fn one_packet_waits_for_the_other() {
        let mut level = level(320);
        assert_eq!([1000, 1000, 1500, 5000].map(|at| level.take_up(at)), [1320, 1640, 1960, 5320]);
        assert_eq!(level.busy_ns(), 4 * 320);
    }

    #[test]
    fn an_earlier_packet_gets_its_gap() {
        let mut level = level(320);
        assert_eq!([5000, 1000, 4900].map(|at| level.take_up(at)), [5320, 1320, 5640]);
    }

    #[test]
    fn a_changed_time_starts_a_new_queue() {
        let mut level = level(320);
        level.take_up(1000);
        level.set(Some(10));
        assert_eq!(level.take_up(1000), 1010);
    }

    proptest! {
        /// Packets in order: a queue with one server (Lindley's recursion).
        #[test]
        fn packets_in_order_form_a_queue(each in 0u64..500, gaps in prop::collection::vec(0u64..1000, 1..200)) {
            let mut level = level(each);
            let (mut at, mut free) = (0, 0);
            for gap in gaps {
                at += gap;
                free = free.max(at) + each;
                prop_assert_eq!(level.take_up(at), free);
            }
        }

        /// Packets in any order: one at a time, none early, and none waits except for another packet.
        #[test]
        fn packets_out_of_order_never_overlap(each in 1u64..500, times in prop::collection::vec(0u64..20_000, 1..200)) {
            let mut level = level(each);
            let mut done: Vec<(u64, u64)> = times.iter().map(|&at| (level.take_up(at), at)).collect();
            done.sort_unstable();
            for pair in done.windows(2) {
                prop_assert!(pair[1].0 - pair[0].0 >= each);
            }
            for (number, &(end, at)) in done.iter().enumerate() {
                prop_assert!(end >= at + each);
                prop_assert!(end == at + each || number > 0 && done[number - 1].0 + each == end);
            }
        }
    }
}
