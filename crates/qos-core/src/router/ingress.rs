//! A router port's ingress: the link, then `rate-limit` and the input policy.

use crate::classify::access_list::AccessList;
use crate::counters::policy::PolicyCounters;
use crate::counters::rate_limit::RateLimitCounters;
use crate::link::inbound::Inbound;
use crate::link::outputs::Outputs;
use crate::plan::port::{PortPlan, RouterPlan};
use crate::policy::Policy;
use crate::router::rate_limits::RateLimits;
use crate::time::Time;

/// A router port's ingress.
#[derive(Debug)]
pub(crate) struct Ingress<P> {
    pub inbound: Inbound<P>,
    limits: Option<Box<RateLimits>>,
    policy: Option<Policy>,
}

impl<P> Ingress<P> {
    pub fn new(inbound: Inbound<P>, (plan, router): (&PortPlan, &RouterPlan), now: Time) -> Ingress<P> {
        Ingress { inbound, limits: RateLimits::of(&router.limits.input, now), policy: Policy::input(plan, now) }
    }

    pub fn configure(&mut self, now: Time, old: &PortPlan, (new, router): (&PortPlan, &RouterPlan)) {
        RateLimits::replace(&mut self.limits, &router.limits.input, now);
        self.inbound.configure(new);
        Policy::replace_input(&mut self.policy, now, old, new);
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
        if let Some(policy) = &mut self.policy {
            policy.clear(now);
        }
    }

    pub fn audit(&self) -> Result<(), String> {
        self.policy.as_ref().map_or(Ok(()), |policy| policy.audit(std::iter::empty()))
    }
}
