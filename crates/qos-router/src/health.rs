//! Report of the daemon about itself: frames passed and lost, and the lateness of frames.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

use crate::forwarding::ForwardingHealth;

/// Longest distinguished lateness, in nanoseconds; longer ones count as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits in the histogram of a router's lateness.
const DIGITS: u8 = 3;
/// Significant digits in the histogram of a port's lateness. A switch has many ports: a histogram takes 35 kB instead
/// of 260 kB.
const DIGITS_OF_PORT: u8 = 2;

/// The `health` reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// Frames taken from the links.
    pub received: u64,
    /// Frames put onto the links.
    pub transmitted: u64,
    /// Frames that the kernel dropped because the daemon was too slow (receive ring full).
    pub lost_input: u64,
    /// Frames that cannot be passed: shorter than an Ethernet header, too long, or with a checksum that cannot be
    /// completed.
    pub malformed: u64,
    /// Frames that the kernel refused (interface down, buffer full) or could not deliver.
    pub unsent: u64,
    /// Frames from the kernel or a link that arrived after something later on the same port had been decided: these
    /// decisions can differ from those of a punctual router. From a link only frames more than 20 µs out of order
    /// count.
    pub late_arrivals: u64,
    /// Real departure onto the link minus the departure that a punctual router would have made, in nanoseconds.
    pub lateness_ns: LatenessNs,
    /// Lateness of the departures onto each port's link, to two digits.
    pub lateness_by_port: BTreeMap<String, LatenessNs>,
    /// Departures that were later than the budget.
    pub late_over_budget: u64,
    /// Time in nanoseconds during which a departure that left later than the budget was overdue.
    pub behind_ns: u64,
    /// The budget in nanoseconds.
    pub budget_ns: u64,
    /// Forwarder of packets in transit.
    pub forwarding: ForwardingHealth,
}

/// Quantiles of lateness in nanoseconds, to three digits unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LatenessNs {
    /// The greatest.
    pub max: u64,
    /// The median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Departures measured.
    pub count: u64,
}

/// Lateness of the departures.
#[derive(Debug)]
struct Quantiles(Histogram<u64>);

impl Quantiles {
    fn new(digits: u8) -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_NS, digits).expect("the bounds are constants that fit"))
    }

    fn read(&self) -> LatenessNs {
        let Self(histogram) = self;
        let at = |q| histogram.value_at_quantile(q);
        LatenessNs { max: histogram.max(), p50: at(0.5), p99: at(0.99), p999: at(0.999), count: histogram.len() }
    }
}

/// Lateness of all departures and of those of each port, and the part of it beyond the budget.
#[derive(Debug)]
pub struct Lateness {
    all: Quantiles,
    by_port: Vec<Quantiles>,
    budget_ns: u64,
    over_budget: u64,
    behind_ns: u64,
    /// Time up to which `behind_ns` is counted: departures of one stall overlap.
    behind_until: u64,
}

impl Lateness {
    /// Returns the health of this many ports, without a departure; departures later than `budget_ns` are counted
    /// separately.
    pub fn new(budget_ns: u64, ports: usize) -> Self {
        let by_port = (0..ports).map(|_| Quantiles::new(DIGITS_OF_PORT)).collect();
        Self { all: Quantiles::new(DIGITS), by_port, budget_ns, over_budget: 0, behind_ns: 0, behind_until: 0 }
    }

    /// Records one departure from a port that was due at `due` and left at `left`, in nanoseconds of one clock.
    pub fn record(&mut self, port: usize, due: u64, left: u64) {
        self.by_port[port].0.saturating_record(left.saturating_sub(due));
        self.record_copy(due, left);
    }

    /// Records the departure of a copy for a capture, which does not count as late: the frame itself was delivered in
    /// time.
    pub fn record_copy(&mut self, due: u64, left: u64) {
        let late = left.saturating_sub(due);
        self.all.0.saturating_record(late);
        if late > self.budget_ns {
            self.over_budget += 1;
            self.behind_ns += left.saturating_sub(due.max(self.behind_until));
            self.behind_until = self.behind_until.max(left);
        }
    }

    /// Resets the histograms and counters.
    pub fn clear(&mut self) {
        self.all.0.reset();
        self.by_port.iter_mut().for_each(|port| port.0.reset());
        self.over_budget = 0;
        self.behind_ns = 0;
    }

    /// Returns the quantiles of all departures.
    pub fn quantiles(&self) -> LatenessNs {
        self.all.read()
    }

    /// Returns the quantiles of each port's departures.
    pub fn by_port(&self) -> impl Iterator<Item = LatenessNs> + '_ {
        self.by_port.iter().map(Quantiles::read)
    }

    /// Returns the departures that were later than the budget.
    pub fn over_budget(&self) -> u64 {
        self.over_budget
    }

    /// Returns the time in nanoseconds during which a departure that left later than the budget was overdue.
    pub fn behind_ns(&self) -> u64 {
        self.behind_ns
    }

    /// Returns the budget in nanoseconds.
    pub fn budget_ns(&self) -> u64 {
        self.budget_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_one_to_a_thousand() {
        let mut lateness = Lateness::new(990, 1);
        (1..=1000).for_each(|ns| lateness.record(0, 5000, 5000 + ns));
        let LatenessNs { max, p50, p99, p999, count } = lateness.quantiles();
        assert_eq!((max, p50, p99, p999, count), (1000, 500, 990, 999, 1000));
        assert_eq!(lateness.over_budget(), 10);
        lateness.clear();
        assert_eq!((lateness.quantiles().max, lateness.over_budget()), (0, 0));
    }

    #[test]
    fn a_port_is_late_by_its_own_departures() {
        let mut lateness = Lateness::new(990, 3);
        (0..999).for_each(|_| lateness.record(0, 5000, 5050));
        lateness.record(2, 5000, 7_005_000);
        let found: Vec<_> = lateness.by_port().map(|port| (port.count, port.p50, port.p999)).collect();
        // To two digits: a bucket of 7 ms is 65 536 ns wide, and its upper end is reported.
        assert_eq!(found, [(999, 50, 50), (0, 0, 0), (1, 7_012_351, 7_012_351)]);
        assert_eq!((lateness.quantiles().count, lateness.quantiles().p99), (1000, 50));
        lateness.clear();
        assert!(lateness.by_port().all(|port| port.count == 0));
    }

    #[test]
    fn time_behind_counts_overlapping_departures_once() {
        let mut lateness = Lateness::new(10, 1);
        // One stall from 100 to 150 with three due departures; a punctual one; another stall.
        for (due, left) in [(100, 150), (120, 150), (149, 160), (162, 165), (200, 230)] {
            lateness.record(0, due, left);
        }
        assert_eq!(lateness.behind_ns(), 60 + 30);
        lateness.clear();
        assert_eq!(lateness.behind_ns(), 0);
    }

    #[test]
    fn lateness_of_more_than_an_hour_is_recorded() {
        let mut lateness = Lateness::new(0, 1);
        lateness.record(0, 0, u64::MAX);
        assert_eq!(lateness.quantiles().count, 1);
    }
}
