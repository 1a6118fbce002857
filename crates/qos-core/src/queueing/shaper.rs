//! The shaper, which decides when the packets of a queue may leave.
//!
//! Credit grows by an increment (Bc, with `peak` Bc + Be) each interval, up to Bc + Be; a packet that leaves takes its
//! bits. Packets are never split. Two rules make the long-run rate exact for any bursts:
//!
//! - The limit of the credit holds only while no packet waits for credit. (Else, with packets that do not divide the
//!   burst, each interval's remainder would be lost.)
//! - A packet larger than Bc + Be leaves when the credit is full and leaves a debt. This is our choice: how the routers
//!   handle the case is not published, and without it such a packet would wait for ever.

use crate::config::defaults;
use crate::config::policy::ShapeMode;
use crate::plan::shape::ShapePlan;
use crate::time::{Duration, Time, NANOS_PER_SECOND};

/// The state of a shaper.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    plan: ShapePlan,
    /// Maximum credit that a packet needs to leave.
    most_needed: i64,
    credit: i64,
    /// End of the last interval that was accounted for.
    last: Time,
}

impl Shaper {
    /// Returns the effective plan: unchanged unless a deliberate mistake is active.
    fn carried_out(plan: ShapePlan) -> ShapePlan {
        match Shaper::spaced(plan) {
            plan if mistaken!(ShaperRateHigh) => ShapePlan { bc_bits: plan.bc_bits * 105 / 100, ..plan },
            plan if mistaken!(ShaperRateSlightlyHigh) => ShapePlan { bc_bits: plan.bc_bits * 101 / 100, ..plan },
            plan if mistaken!(ShaperIntervalShort) => {
                let interval = Duration(4_000_000);
                let bits = plan.cir_bps / 250;
                ShapePlan { interval, bc_bits: bits, be_bits: bits, ..plan }
            }
            plan if mistaken!(ShaperWithoutExcess) => ShapePlan { be_bits: 0, ..plan },
            plan if plan.account.is_some() && mistaken!(ShaperWithoutAccount) => ShapePlan { account: None, ..plan },
            plan => plan,
        }
    }

    /// Returns the plan of a shaper that spaces packets: it gains credit per tick, and saves at most one frame.
    fn spaced(plan: ShapePlan) -> ShapePlan {
        if !plan.spaced {
            return plan;
        }
        let cir_bps = plan.target_bps();
        let bc_bits = (u128::from(cir_bps) * u128::from(defaults::XE_SHAPE_TICK_US) / 1_000_000).max(1) as u64;
        let nanos = u128::from(bc_bits) * u128::from(NANOS_PER_SECOND) / u128::from(cir_bps.max(1));
        let interval = Duration(u64::try_from(nanos).unwrap_or(u64::MAX).max(1));
        ShapePlan {
            mode: ShapeMode::Average,
            cir_bps,
            bc_bits,
            be_bits: defaults::XE_SHAPE_CREDIT * 8,
            interval,
            ..plan
        }
    }

    /// Returns a shaper with full credit.
    pub fn new(plan: ShapePlan, start: Time) -> Shaper {
        let plan = Shaper::carried_out(plan);
        let limit = plan.limit_bits() as i64;
        Shaper { plan, most_needed: if plan.deficit { 0 } else { limit }, credit: limit, last: start }
    }

    pub fn plan(&self) -> &ShapePlan {
        &self.plan
    }

    /// Returns the credit as of the last `advance`, in bits.
    pub fn credit(&self) -> i64 {
        self.credit
    }

    /// Returns the credit that a packet of `bytes` takes.
    #[inline]
    fn bits(&self, bytes: u32) -> i64 {
        let bytes = self.plan.account.map_or(bytes, |account| account.length(bytes));
        i64::from(bytes) * 8
    }

    /// Returns the credit that a packet of `bytes` needs to leave.
    #[inline]
    fn needed(&self, bytes: u32) -> i64 {
        self.bits(bytes).min(self.most_needed)
    }

    /// Returns the intervals until a packet of `bytes` may leave; zero if it may leave now.
    #[inline]
    fn intervals_until(&self, bytes: u32) -> u64 {
        let missing = self.needed(bytes) - self.credit;
        if missing <= 0 {
            0
        } else {
            (missing as u64).div_ceil(self.plan.increment_bits())
        }
    }

    /// Returns whether an interval ended by `now` that was not accounted for.
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.next_due()
    }

    /// Returns the end of the next interval that was not accounted for.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.last + self.plan.interval
    }

    /// Adds the intervals that ended by `now`. `head` is the packet that waited all that time, if any. Call before
    /// anything changes at `now`.
    pub fn advance(&mut self, now: Time, head: Option<u32>) {
        let intervals = now.since(self.last).0 / self.plan.interval.0;
        if intervals == 0 {
            return;
        }
        self.last += Duration(intervals * self.plan.interval.0);
        let waiting = head.map_or(0, |bytes| self.intervals_until(bytes)).min(intervals);
        let increment = i128::from(self.plan.increment_bits());
        let unlimited = i128::from(self.credit) + i128::from(waiting) * increment;
        let limited = i128::from(self.credit) + i128::from(intervals) * increment;
        let credit = unlimited.max(limited.min(i128::from(self.plan.limit_bits())));
        self.credit = i64::try_from(credit).unwrap_or(i64::MAX);
    }

    /// Returns whether a packet of `bytes` may leave, as of the last `advance`.
    #[inline]
    pub fn allows(&self, bytes: u32) -> bool {
        self.credit >= self.needed(bytes)
    }

    /// Returns the time at which a packet of `bytes` at the head of the queue may leave, if it may not yet.
    #[inline]
    pub fn release(&self, bytes: u32) -> Option<Time> {
        match self.intervals_until(bytes) {
            0 => None,
            intervals => Some(self.last + Duration(intervals.saturating_mul(self.plan.interval.0))),
        }
    }

    /// Takes the credit for a packet of `bytes` that leaves.
    pub fn take(&mut self, bytes: u32) {
        self.credit -= self.bits(bytes);
    }

    /// Returns whether the credit exceeds its limit. This occurs only while a packet waits, by less than an increment,
    /// and never in an empty queue.
    pub fn exceeds(&self) -> bool {
        self.credit > self.plan.limit_bits() as i64
    }
}
