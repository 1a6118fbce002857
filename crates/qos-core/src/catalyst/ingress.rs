//! A Catalyst port's ingress: the link, classify, police, mark, ingress queue.
//!
//! The ingress queues only count. Their ring (32 Gb/s) is faster than all ports of the switch together, so it never
//! congests and their buffers, weights and thresholds have no effect.

use crate::classify::access_list::AccessList;
use crate::config::catalyst::{ExceedAction, Trust};
use crate::config::catalyst_constants::{GAP, INPUT_QUEUES, THRESHOLDS};
use crate::counters::catalyst::ProfileCounters;
use crate::counters::policy::PolicyCounters;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::label::Label;
use crate::link::inbound::Inbound;
use crate::link::outputs::Outputs;
use crate::meter::token_bucket::TokenBuckets;
use crate::meter::tokens::Colour;
use crate::plan::catalyst::{IngressPlan, Mark, PolicerPlan, Source};
use crate::plan::port::PortPlan;
use crate::policy::Policy;
use crate::time::Time;

/// A Catalyst port's ingress: the link, then the label.
#[derive(Debug)]
pub(crate) struct Ingress<P> {
    pub inbound: Inbound<P>,
    policy: Option<Policy>,
    labeller: Labeller,
}

impl<P> Ingress<P> {
    pub fn new(mut inbound: Inbound<P>, port: &PortPlan, plan: &IngressPlan, now: Time) -> Ingress<P> {
        inbound.configure(port);
        Ingress { inbound, policy: Policy::input(port, now), labeller: Labeller::new(plan.clone(), now) }
    }

    pub fn configure(&mut self, now: Time, old: &PortPlan, new: &PortPlan, plan: &IngressPlan) {
        self.inbound.configure(new);
        Policy::replace_input(&mut self.policy, now, old, new);
        self.labeller.configure(now, plan);
    }

    /// Rebuilds the index of the policy's classes.
    pub fn index(&mut self, lists: &[AccessList]) {
        if let Some(policy) = &mut self.policy {
            policy.index(lists);
        }
    }

    /// Passes on the frames that have arrived by `now`.
    pub fn advance(&mut self, now: Time, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        while let Some(mut frame) = self.inbound.next(now, outputs) {
            let pass = self.labeller.pass(frame.arrives, &mut frame.descriptor, self.policy.as_mut(), lists);
            self.inbound.apply_decision(pass, frame, outputs);
        }
    }

    pub fn counts(&self) -> &IngressCounts {
        &self.labeller.counts
    }

    pub fn policy_counters(&mut self, now: Time) -> Option<PolicyCounters> {
        self.policy.as_mut().map(|policy| policy.counters::<P>(now, None, std::iter::empty()))
    }

    pub fn clear(&mut self, now: Time) {
        self.inbound.clear(now);
        self.labeller.counts = IngressCounts::default();
        if let Some(policy) = &mut self.policy {
            policy.clear(now);
        }
    }

    #[cfg(test)]
    pub fn policy(&mut self) -> Option<&mut Policy> {
        self.policy.as_mut()
    }

    pub fn audit(&self) -> Result<(), String> {
        self.policy.as_ref().map_or(Ok(()), |policy| policy.audit(std::iter::empty()))
    }
}

/// Counters of the input side.
#[derive(Clone, Debug)]
pub(crate) struct IngressCounts {
    pub dscp: [u64; 64],
    pub cos: [u64; 8],
    pub enqueued: [[u64; THRESHOLDS]; INPUT_QUEUES],
    pub policer: ProfileCounters,
}

impl Default for IngressCounts {
    fn default() -> IngressCounts {
        IngressCounts { dscp: [0; 64], cos: [0; 8], enqueued: Default::default(), policer: ProfileCounters::default() }
    }
}

/// Determines a frame's label: trust or input policy, policers, ingress queues.
#[derive(Debug)]
pub(crate) struct Labeller {
    plan: IngressPlan,
    buckets: Vec<TokenBuckets>,
    pub counts: IngressCounts,
}

impl Labeller {
    pub fn new(plan: IngressPlan, now: Time) -> Labeller {
        let buckets = Labeller::buckets(&plan, now);
        Labeller { plan, buckets, counts: IngressCounts::default() }
    }

    fn buckets(plan: &IngressPlan, now: Time) -> Vec<TokenBuckets> {
        let bucket = |policer: &PolicerPlan| {
            let rate_bps = match policer.rate_bps {
                rate if mistaken!(SwitchPolicerRateHigh) => rate * 103 / 100,
                rate => rate,
            };
            let burst_bytes = match policer.burst_bytes {
                bytes if mistaken!(SwitchPolicerBurstHalf) => bytes / 2,
                bytes => bytes,
            };
            TokenBuckets::single_bucket(rate_bps, burst_bytes, now)
        };
        plan.policers.iter().map(bucket).collect()
    }

    pub fn configure(&mut self, now: Time, plan: &IngressPlan) {
        if self.plan.policers != plan.policers {
            self.buckets = Labeller::buckets(plan, now);
        }
        if self.plan.qos && !plan.qos {
            self.counts = IngressCounts::default();
        }
        self.plan = plan.clone();
    }

    /// Labels an arrived frame and counts it in the port's input policy. Returns false to drop it (out of profile).
    pub fn pass(
        &mut self,
        now: Time,
        descriptor: &mut Descriptor,
        policy: Option<&mut Policy>,
        lists: &mut [AccessList],
    ) -> bool {
        let Some(policy) = policy else { return self.classified(now, descriptor, None) };
        let class = policy.apply(now, descriptor, lists).class;
        let passes = self.classified(now, descriptor, Some(class));
        if passes {
            policy.count_sent(class, descriptor.counted_len);
        } else {
            policy.count_dropped(now, class, descriptor.counted_len, DropReason::Police);
        }
        passes
    }

    fn classified(&mut self, now: Time, descriptor: &mut Descriptor, class: Option<usize>) -> bool {
        let plan = &self.plan;
        if !plan.qos {
            return true;
        }
        let cos = if descriptor.tags > 0 { descriptor.cos } else { plan.default_cos };
        self.counts.cos[usize::from(cos)] += 1;
        if descriptor.is_ip() {
            self.counts.dscp[usize::from(descriptor.dscp)] += 1;
        }
        let action = class.filter(|_| plan.source == Source::Policy).map(|class| plan.actions[class]);
        let mut label = match (plan.source, action.map(|action| action.mark)) {
            (Source::Trust(_), _) if mistaken!(TrustIgnored) => Label::default(),
            (Source::Trust(trust), _) | (_, Some(Mark::Trust(trust))) => plan.trusted(trust, descriptor, cos),
            (Source::Override, _) => plan.by_cos(plan.default_cos),
            (_, Some(Mark::Dscp(dscp))) => Label { dscp, ..Label::default() },
            (_, Some(Mark::PortCos)) => plan.by_cos(plan.default_cos),
            (Source::Untrusted | Source::Policy, _) => Label::default(),
        };
        if let Some(policer) = action.and_then(|action| action.policer) {
            // A policer counts the frame with its FCS, as buffers do. Inferred.
            let check = if mistaken!(SwitchPolicerWithoutCheck) { 4 } else { 0 };
            let conforms = self.buckets[policer].colour(now, descriptor.line_len - GAP - check) == Colour::Conform;
            if conforms {
                self.counts.policer.in_profile += 1;
            } else {
                self.counts.policer.out_of_profile += 1;
                match plan.policers[policer].exceed {
                    ExceedAction::Drop => return false,
                    ExceedAction::PolicedDscpTransmit => {
                        let marked = plan.policed_dscp[usize::from(label.dscp)];
                        label.marked_down = Some(marked).filter(|marked| *marked != label.dscp);
                    }
                }
            }
        }
        let at = match label.cos {
            Some(cos) => plan.cos_queue[usize::from(cos)],
            None => plan.dscp_queue[usize::from(label.dscp)],
        };
        self.counts.enqueued[usize::from(at.queue)][usize::from(at.threshold)] += 1;
        descriptor.label = Some(label);
        true
    }
}

impl IngressPlan {
    /// Returns the label of a frame that is classified by its class of service.
    fn by_cos(&self, cos: u8) -> Label {
        Label { dscp: self.cos_dscp[usize::from(cos)], cos: Some(cos), marked_down: None }
    }

    /// Returns the label of a frame with a trusted field. `cos` is the class of service of the tag, or of the port.
    fn trusted(&self, trust: Trust, descriptor: &Descriptor, cos: u8) -> Label {
        match trust {
            Trust::Cos => self.by_cos(cos),
            // A frame without an IP packet has only its class of service; the queue still follows from the DSCP.
            _ if !descriptor.is_ip() => Label { cos: None, ..self.by_cos(cos) },
            Trust::Dscp => {
                let dscp = usize::from(descriptor.dscp);
                Label { dscp: self.mutation.map_or(descriptor.dscp, |map| map[dscp]), ..Label::default() }
            }
            Trust::IpPrecedence => {
                Label { dscp: self.ip_prec_dscp[usize::from(descriptor.precedence())], ..Label::default() }
            }
        }
    }
}
