//! Stages ahead of an interface's policy: the access lists that filter the interface, then its `rate-limit` lines.
//!
//! Cisco, "QoS Packet Marking", order of operation: access lists come ahead of marking, policing and committed access
//! rate, in both directions.

use crate::classify::access_list::AccessList;
use crate::counters::count::Count;
use crate::counters::rate_limit::RateLimitCounters;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::admission::AdmissionPlan;
use crate::router::access_groups::AccessGroups;
use crate::router::rate_limits::RateLimits;
use crate::time::Time;

/// One direction.
#[derive(Debug)]
pub(crate) struct Admission {
    groups: Option<AccessGroups>,
    limits: RateLimits,
}

impl Admission {
    /// Returns the stages; `None` without filters and policies, so that a packet costs only one comparison.
    pub fn of(plan: &AdmissionPlan, now: Time) -> Option<Box<Admission>> {
        (*plan != AdmissionPlan::default()).then(|| {
            Box::new(Admission { groups: AccessGroups::of(&plan.groups), limits: RateLimits::new(&plan.limits, now) })
        })
    }

    /// Activates another plan; unchanged parts continue.
    pub fn replace(present: &mut Option<Box<Admission>>, plan: &AdmissionPlan, now: Time) {
        let mut next = Admission::of(plan, now);
        if let (Some(old), Some(new)) = (present.take(), &mut next) {
            if old.limits.has_plans(&plan.limits) {
                new.limits = old.limits;
            }
            if old.groups.as_ref().is_some_and(|groups| groups.plan == plan.groups) {
                new.groups = old.groups;
            }
        }
        *present = next;
    }

    /// Filters, meters and marks a packet. Returns the drop reason, if any. Packets of the router itself are not
    /// filtered (Cisco, "ip access-group").
    pub fn refuses(&mut self, now: Time, descriptor: &mut Descriptor, lists: &mut [AccessList]) -> Option<DropReason> {
        let transit = descriptor.input_port.is_some();
        if self.groups.as_mut().is_some_and(|groups| transit && !groups.permit(descriptor, lists)) {
            return Some(DropReason::Denied);
        }
        (!self.limits.admit(now, descriptor, lists)).then_some(DropReason::Police)
    }

    /// Returns the packets denied by the access lists.
    pub fn denied(admission: Option<&Admission>) -> Count {
        admission.and_then(|admission| admission.groups.as_ref()).map_or_else(Count::default, |groups| groups.denied)
    }

    pub fn limit_counters(admission: Option<&Admission>, now: Time) -> Vec<RateLimitCounters> {
        admission.map_or_else(Vec::new, |admission| admission.limits.counters(now))
    }

    /// Zeroes the counters; the token buckets stay.
    pub fn clear(&mut self, now: Time) {
        if let Some(groups) = &mut self.groups {
            groups.denied = Count::default();
        }
        self.limits.clear(now);
    }
}
