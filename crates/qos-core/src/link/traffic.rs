//! Traffic counters of one direction of a port.

use crate::counters::count::Count;
use crate::counters::port::DirectionCounters;
use crate::counters::totals::PortTotals;
use crate::frame::drop_reason::DropReason;
use crate::meter::load_average::LoadAverage;
use crate::time::{Duration, Time};

/// Traffic counters of one direction of a port.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Totals since the engine was created; the owner fills in `queued`.
    pub totals: PortTotals,
    pub load_interval_s: u32,
    /// Passed frames since the counters were cleared.
    passed: LoadAverage,
    drops: u64,
    pub lost: Count,
}

impl Traffic {
    pub fn new(now: Time, load_interval_s: u32) -> Traffic {
        Traffic {
            totals: PortTotals::default(),
            load_interval_s,
            passed: LoadAverage::new(now),
            drops: 0,
            lost: Count::default(),
        }
    }

    #[inline]
    pub fn count(&mut self, now: Time, bytes: u32) {
        self.passed.add(now, bytes, self.load_interval_s);
    }

    /// Counts a dropped frame; `shown`: among the interface's drops.
    #[inline]
    pub fn count_dropped(&mut self, reason: DropReason, bytes: u32, shown: bool) {
        self.totals.dropped[reason as usize].add(bytes);
        self.drops += u64::from(shown);
    }

    /// Counts a frame that the link lost, which no router can observe.
    pub fn count_lost(&mut self, bytes: u32) {
        self.totals.dropped[DropReason::Lost as usize].add(bytes);
        self.lost.add(bytes);
    }

    pub fn late(&mut self, by: Duration) {
        self.totals.late_arrivals += 1;
        self.totals.latest_arrival_ns = self.totals.latest_arrival_ns.max(by.0);
    }

    pub fn counters(&mut self, now: Time) -> DirectionCounters {
        let (rate_bps, rate_pps) = self.passed.rates(now, self.load_interval_s);
        DirectionCounters {
            packets: self.passed.count.packets,
            bytes: self.passed.count.bytes,
            rate_bps,
            rate_pps,
            drops: self.drops,
        }
    }

    pub fn clear(&mut self, now: Time) {
        self.passed = LoadAverage::new(now);
        self.drops = 0;
        self.lost = Count::default();
    }
}
