//! Running state of the `rate-limit` lines of an interface in one direction.

use crate::classify::access_list::AccessList;
use crate::classify::marking;
use crate::config::rate_limit::RateLimitOutcome;
use crate::counters::count::Count;
use crate::counters::rate_limit::RateLimitCounters;
use crate::frame::descriptor::Descriptor;
use crate::meter::access_rate::AccessRate;
use crate::plan::rate_limit::RateLimitPlan;
use crate::time::Time;

/// The lines, in their order.
#[derive(Debug)]
pub(crate) struct RateLimits {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    plan: RateLimitPlan,
    meter: AccessRate,
    conformed: Count,
    exceeded: Count,
    last: Option<Time>,
    counting: Time,
}

impl RateLimits {
    pub fn new(plans: &[RateLimitPlan], now: Time) -> RateLimits {
        let line = |plan: &RateLimitPlan| Line {
            meter: AccessRate::new(plan.rate_bps, plan.normal_bytes, plan.extended_bytes, now),
            plan: plan.clone(),
            conformed: Count::default(),
            exceeded: Count::default(),
            last: None,
            counting: now,
        };
        RateLimits { lines: plans.iter().map(line).collect() }
    }

    /// Returns whether these are the lines of this list.
    pub fn has_plans(&self, plans: &[RateLimitPlan]) -> bool {
        self.lines.iter().map(|line| &line.plan).eq(plans)
    }

    /// Meters and marks a packet by each line that applies. Returns whether it may pass.
    pub fn admit(&mut self, now: Time, descriptor: &mut Descriptor, lists: &mut [AccessList]) -> bool {
        // Cisco, "Committed Access Rate", restrictions: IP only.
        if !descriptor.is_ip() {
            return true;
        }
        let bytes = descriptor.counted_len;
        for line in &mut self.lines {
            if line.plan.only.as_ref().is_some_and(|only| !only.matches(descriptor, lists)) {
                continue;
            }
            line.last = Some(now);
            let action = if line.meter.conforms(now, bytes) {
                line.conformed.add(bytes);
                line.plan.conform
            } else {
                line.exceeded.add(bytes);
                line.plan.exceed
            };
            if let Some(set) = action.set {
                marking::set(descriptor, set.field, set.value);
            }
            match action.then {
                RateLimitOutcome::Transmit => return true,
                RateLimitOutcome::Drop => return false,
                RateLimitOutcome::Continue => {}
            }
        }
        true
    }

    pub fn counters(&self, now: Time) -> Vec<RateLimitCounters> {
        let counters = |line: &Line| RateLimitCounters {
            conformed: line.conformed,
            exceeded: line.exceeded,
            current_burst_bytes: line.meter.current_burst(),
            last_packet_ns: line.last.map(|last| now.since(last).0),
            counting_ns: now.since(line.counting).0,
        };
        self.lines.iter().map(counters).collect()
    }

    /// Zeroes the counters; the token buckets stay.
    pub fn clear(&mut self, now: Time) {
        for line in &mut self.lines {
            line.conformed = Count::default();
            line.exceeded = Count::default();
            line.counting = now;
        }
    }
}
