//! Outcomes of packets: counters of sent, arrived and lost packets.

use std::collections::BTreeMap;

use qos_core::DropReason;

use crate::report::PacketsReport;

/// Counts of packets.
#[derive(Debug, Default)]
pub(super) struct Tally {
    offered: u64,
    delivered: u64,
    /// Losses by reason.
    dropped: [u64; DropReason::ALL.len()],
    /// Packets with an expired time to live.
    expired: u64,
}

impl Tally {
    /// Counts a packet that a host handed to its interface.
    pub fn count_offered(&mut self) {
        self.offered += 1;
    }

    /// Counts a packet that arrived at its host.
    pub fn count_delivered(&mut self) {
        self.delivered += 1;
    }

    /// Counts a packet that an engine dropped.
    pub fn count_dropped(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    /// Counts a packet that a router dropped because its time to live expired.
    pub fn count_expired(&mut self) {
        self.expired += 1;
    }

    /// Returns the counts, with those dropped by hosts (`host_queue`) and those still in transit.
    pub fn report(&self, host_queue: u64, queued: u64) -> PacketsReport {
        let by_engine = DropReason::ALL
            .into_iter()
            .filter(|reason| *reason != DropReason::Lost)
            .map(|reason| (reason.name(), self.dropped[reason as usize]));
        let dropped: BTreeMap<String, u64> = by_engine
            .chain([("host_queue", host_queue), ("ttl", self.expired)])
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect();
        PacketsReport {
            offered: self.offered,
            delivered: self.delivered,
            dropped,
            lost: self.dropped[DropReason::Lost as usize],
            queued,
        }
    }
}
