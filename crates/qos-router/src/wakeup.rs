//! Time before a departure at which the daemon stops sleeping and waits actively.

use qos_core::Time;

/// Maximum usual lateness of the kernel that counts: beyond it the machine is busy rather than asleep, and active
/// waiting would make it busier.
const MOST_NS: u64 = 300_000;

/// Decrease of the usual lateness after a sleep that ended earlier; it rises by [`RISE`] times that, so it is about the
/// 90th percentile.
const STEP_NS: u64 = 1_000;
const RISE: u64 = 9;

/// Nanoseconds for each nanosecond that the daemon may wait actively because of the kernel's lateness.
const SHARE: u64 = 50;

/// Active waiting on that account that can be saved up.
const SAVED_NS: u64 = 10_000_000;

/// Active waiting for one departure that is not limited.
const UNRATIONED_NS: u64 = 30_000;

/// The lead time is the minimum plus the kernel's usual wake-up latency, which is learnt: it is longer on an idle
/// processor, and machines differ. An outlier only counts as one latency above the usual one. Active waiting for more
/// than the minimum, or than 30 µs, is limited, so that a router with much traffic, or many routers on one machine, do
/// not use up their processors.
#[derive(Debug)]
pub(crate) struct Wakeup {
    least_ns: u64,
    usual_ns: u64,
    saved_ns: u64,
    /// Time until which the savings are counted.
    counted: Time,
}

impl Wakeup {
    /// Starts with the least lead; where that is zero, nothing is ever waited actively.
    pub fn new(least_ns: u64, now: Time) -> Self {
        Self { least_ns, usual_ns: 0, saved_ns: SAVED_NS, counted: now }
    }

    /// Returns the lead, in nanoseconds.
    pub fn at(&mut self, now: Time) -> u64 {
        self.saved_ns = (self.saved_ns + now.since(self.counted).0 / SHARE).min(SAVED_NS);
        self.counted = self.counted.max(now);
        if self.least_ns == 0 {
            return 0;
        }
        self.least_ns + self.usual_ns.min(self.saved_ns)
    }

    /// Subtracts the time that the daemon waited actively for one departure.
    pub fn spent(&mut self, ns: u64) {
        self.saved_ns = self.saved_ns.saturating_sub(ns.saturating_sub(self.least_ns.max(UNRATIONED_NS)));
    }

    /// Learns from the lateness of a sleep.
    pub fn learn(&mut self, late_ns: u64) {
        self.usual_ns = if late_ns > self.usual_ns {
            (self.usual_ns + RISE * STEP_NS).min(MOST_NS)
        } else {
            self.usual_ns.saturating_sub(STEP_NS)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_starts_as_early_as_the_kernel_usually_is_late() {
        let mut wakeup = Wakeup::new(30_000, Time(0));
        for number in 0..1000 {
            // A single outlier in a hundred.
            wakeup.learn(if number % 100 == 0 { 20_000_000 } else { 60_000 });
        }
        assert!((84_000..=110_000).contains(&wakeup.at(Time(0))), "{wakeup:?}");
        for _ in 0..1000 {
            wakeup.learn(0);
        }
        assert_eq!(wakeup.at(Time(0)), 30_000);
    }

    #[test]
    fn learnt_wakeup_lateness_is_limited() {
        let (mut never, mut long) = (Wakeup::new(0, Time(0)), Wakeup::new(30_000, Time(0)));
        for _ in 0..1000 {
            never.learn(1_000_000);
            long.learn(1_000_000);
        }
        assert_eq!((never.at(Time(0)), long.at(Time(0))), (0, 330_000));
    }

    #[test]
    fn wakeups_above_the_minimum_are_rationed() {
        let mut wakeup = Wakeup::new(30_000, Time(0));
        (0..1000).for_each(|_| wakeup.learn(100_000));
        // Departures without pauses between them: each could be awaited from the lead time on.
        let (mut now, mut extra) = (0, 0);
        while now < 10_000_000_000 {
            let wait = wakeup.at(Time(now));
            wakeup.spent(wait);
            extra += wait - 30_000;
            now += 400_000;
        }
        assert!(extra <= SAVED_NS + now / SHARE, "{extra}");
        // The savings recover with time.
        now += SAVED_NS * SHARE;
        assert!(wakeup.at(Time(now)) > 120_000, "{wakeup:?}");
    }
}
