//! A router port's ingress: the link, then access lists, `rate-limit` and the input policy.

use crate::classify::access_list::AccessList;
use crate::counters::buckets::ClassBuckets;
use crate::counters::count::Count;
use crate::counters::policy::PolicyCounters;
use crate::counters::rate_limit::RateLimitCounters;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::link::inbound::Inbound;
use crate::link::outputs::Outputs;
use crate::plan::port::{PortPlan, RouterPlan};
use crate::policy::Policy;
use crate::router::admission::Admission;
use crate::router::vlans::Vlans;
use crate::time::Time;

/// A router port's ingress.
#[derive(Debug)]
pub(crate) struct Ingress<P> {
    pub inbound: Inbound<P>,
    admission: Option<Box<Admission>>,
    policy: Option<Policy>,
    /// Policy of a port with subinterfaces.
    pub vlans: Option<Box<Vlans>>,
}

impl<P> Ingress<P> {
    pub fn new(inbound: Inbound<P>, (plan, router): (&PortPlan, &RouterPlan), now: Time) -> Ingress<P> {
        let (admission, policy) = (Admission::of(&router.admission.input, now), Policy::input(plan, now));
        Ingress { inbound, admission, policy, vlans: Vlans::of(&plan.subinterfaces, None) }
    }

    pub fn configure(&mut self, now: Time, old: &PortPlan, (new, router): (&PortPlan, &RouterPlan)) {
        Admission::replace(&mut self.admission, &router.admission.input, now);
        self.inbound.configure(new);
        Policy::replace_input(&mut self.policy, now, old, new);
        if old.subinterfaces != new.subinterfaces {
            self.vlans = Vlans::of(&new.subinterfaces, self.vlans.as_deref());
        }
    }

    /// Rebuilds the index of the policy's classes.
    pub fn index(&mut self, lists: &[AccessList]) {
        if let Some(policy) = &mut self.policy {
            policy.index(lists);
        }
    }

    /// Passes on frames that have arrived by `now`.
    pub fn advance(&mut self, now: Time, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        while let Some(mut frame) = self.inbound.next(now, outputs) {
            match self.refuses(frame.arrives, &mut frame.descriptor, lists) {
                None => self.inbound.apply_decision(true, frame, outputs),
                Some(reason) => self.inbound.refuse(reason, frame, outputs),
            }
        }
    }

    /// Filters, classifies, marks and polices a packet that has arrived from the link at `now`. Returns the drop
    /// reason, if any.
    #[inline(always)]
    pub fn refuses(&mut self, now: Time, descriptor: &mut Descriptor, lists: &mut [AccessList]) -> Option<DropReason> {
        if self.vlans.as_mut().is_some_and(|vlans| !vlans.accepts(descriptor)) {
            return Some(DropReason::Disabled);
        }
        if let Some(admission) = &mut self.admission {
            if let Some(reason) = admission.refuses(now, descriptor, lists) {
                return Some(reason);
            }
        }
        let policy = self.policy.as_mut()?;
        let bytes = descriptor.counted_len;
        let verdict = policy.apply(now, descriptor, lists);
        if !verdict.pass {
            return Some(DropReason::Police);
        }
        policy.count_sent(verdict.class, bytes);
        None
    }

    pub fn buckets(&self, now: Time) -> Vec<ClassBuckets> {
        self.policy.as_ref().map_or_else(Vec::new, |policy| policy.buckets(now))
    }

    pub fn policy_counters(&mut self, now: Time) -> Option<PolicyCounters> {
        self.policy.as_mut().map(|policy| policy.counters::<P>(now, None, std::iter::empty()))
    }

    pub fn limit_counters(&self, now: Time) -> Vec<RateLimitCounters> {
        Admission::limit_counters(self.admission.as_deref(), now)
    }

    pub fn denied(&self) -> Count {
        Admission::denied(self.admission.as_deref())
    }

    pub fn clear(&mut self, now: Time) {
        self.inbound.clear(now);
        if let Some(admission) = &mut self.admission {
            admission.clear(now);
        }
        if let Some(vlans) = &mut self.vlans {
            vlans.clear();
        }
        if let Some(policy) = &mut self.policy {
            policy.clear(now);
        }
    }

    pub fn audit(&self) -> Result<(), String> {
        self.policy.as_ref().map_or(Ok(()), |policy| policy.audit(std::iter::empty()))
    }
}
