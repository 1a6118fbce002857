//! A router port's ingress: the link, then `rate-limit` and the input policy.

use crate::classify::access_list::AccessList;
use crate::counters::policy::PolicyCounters;
use crate::counters::rate_limit::RateLimitCounters;
use crate::link::inbound::Inbound;
use crate::link::outputs::Outputs;
use crate::plan::port::{PortPlan, RouterPlan};
use crate::policy::Policy;
use crate::router::rate_limits::RateLimits;
use crate::router::vlans::Vlans;
use crate::time::Time;

/// A router port's ingress.
#[derive(Debug)]
pub(crate) struct Ingress<P> {
    pub inbound: Inbound<P>,
    limits: Option<Box<RateLimits>>,
    policy: Option<Policy>,
    /// Of a port with subinterfaces.
    pub vlans: Option<Box<Vlans>>,
}

impl<P> Ingress<P> {
    pub fn new(inbound: Inbound<P>, (plan, router): (&PortPlan, &RouterPlan), now: Time) -> Ingress<P> {
        let (limits, policy) = (RateLimits::of(&router.limits.input, now), Policy::input(plan, now));
        Ingress { inbound, limits, policy, vlans: Vlans::of(&plan.subinterfaces, None) }
    }

    pub fn configure(&mut self, now: Time, old: &PortPlan, (new, router): (&PortPlan, &RouterPlan)) {
        RateLimits::replace(&mut self.limits, &router.limits.input, now);
        self.inbound.configure(new);
        Policy::replace_input(&mut self.policy, now, old, new);
        if old.subinterfaces != new.subinterfaces {
            self.vlans = Vlans::of(&new.subinterfaces, self.vlans.as_deref());
        }
    }

    /// Makes the index of the policy's classes anew.
    pub fn index(&mut self, lists: &[AccessList]) {
        if let Some(policy) = &mut self.policy {
            policy.index(lists);
        }
    }

    /// Passes on what has arrived by `now`.
    pub fn advance(&mut self, now: Time, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        while let Some(mut frame) = self.inbound.next(now, outputs) {
            if self.vlans.as_mut().is_some_and(|vlans| !vlans.takes(&frame.descriptor)) {
                self.inbound.refuse(frame, outputs);
                continue;
            }
            let limited = match &mut self.limits {
                Some(limits) => !limits.admit(frame.arrives, &mut frame.descriptor, lists),
                None => false,
            };
            let pass = match &mut self.policy {
                _ if limited => false,
                Some(policy) => {
                    let bytes = frame.descriptor.counted_len;
                    let verdict = policy.apply(frame.arrives, &mut frame.descriptor, lists);
                    if verdict.pass {
                        policy.sent(verdict.class, bytes);
                    }
                    verdict.pass
                }
                None => true,
            };
            self.inbound.decided(pass, frame, outputs);
        }
    }

    pub fn policy_counters(&mut self, now: Time) -> Option<PolicyCounters> {
        self.policy.as_mut().map(|policy| policy.counters::<P>(now, None, std::iter::empty()))
    }

    pub fn limit_counters(&self, now: Time) -> Vec<RateLimitCounters> {
        RateLimits::counters(self.limits.as_deref(), now)
    }

    pub fn clear(&mut self, now: Time) {
        self.inbound.clear(now);
        if let Some(limits) = &mut self.limits {
            limits.clear(now);
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
