//! A router's port.

use std::collections::BTreeMap;

use crate::classify::access_list::AccessList;
use crate::counters::count::Count;
use crate::counters::policy::PolicyCounters;
use crate::counters::port::{InterfaceCounters, SubinterfaceCounters};
use crate::frame::descriptor::HeaderRest;
use crate::link::counters::interface_counters;
use crate::link::inbound::Inbound;
use crate::link::outbound::Outbound;
use crate::link::outputs::Outputs;
use crate::plan::classes::SUBINTERFACES;
use crate::plan::port::{PortPlan, RouterPlan, SubinterfacePlan};
use crate::router::egress::Egress;
use crate::router::ingress::Ingress;
use crate::router::vlans::Vlans;
use crate::time::Time;

/// Returns the counters of the policy of a port, or of each policy of its subinterfaces.
fn by_subinterface(
    plan: &PortPlan,
    counters: Option<PolicyCounters>,
) -> (Option<PolicyCounters>, BTreeMap<String, PolicyCounters>) {
    match counters {
        Some(together) if together.policy == SUBINTERFACES && !plan.subinterfaces.is_empty() => {
            let each = together.classes.into_iter().filter_map(|class| Some((class.name, class.child?)));
            (None, each.collect())
        }
        own => (own, BTreeMap::new()),
    }
}

/// A router's port.
#[derive(Debug)]
pub(crate) struct RouterPort<P> {
    pub ingress: Ingress<P>,
    pub egress: Egress<P>,
}

impl<P> RouterPort<P> {
    pub fn new(
        (inbound, outbound): (Inbound<P>, Outbound<P>),
        (plan, router): (&PortPlan, &RouterPlan),
        seed: u64,
        now: Time,
    ) -> RouterPort<P> {
        RouterPort {
            ingress: Ingress::new(inbound, (plan, router), now),
            egress: Egress::new(outbound, plan, router, seed, now),
        }
    }

    pub fn configure(
        &mut self,
        now: Time,
        old: &PortPlan,
        (plan, router): (&PortPlan, &RouterPlan),
        lists: &mut [AccessList],
        outputs: &mut Outputs<P>,
    ) {
        self.ingress.configure(now, old, (plan, router));
        self.egress.configure(now, plan, router, lists, outputs);
    }

    /// Returns the link without the port; waiting packets are dropped.
    pub fn into_link(mut self, now: Time, outputs: &mut Outputs<P>) -> (Inbound<P>, Outbound<P>) {
        self.egress.give_up(now, outputs);
        (self.ingress.inbound, self.egress.outbound)
    }

    pub fn index(&mut self, lists: &[AccessList]) {
        self.ingress.index(lists);
        self.egress.index(lists);
    }

    pub fn counters(&mut self, now: Time, plan: &PortPlan, rest: &dyn Fn(&P) -> HeaderRest) -> InterfaceCounters {
        let waiting = (self.egress.queue_counters(), self.egress.ring_counters());
        let ends = (&mut self.ingress.inbound, &mut self.egress.outbound);
        let common = interface_counters(ends, waiting, plan, now);
        let (policy_input, mut input) = by_subinterface(plan, self.ingress.policy_counters(now));
        let (policy_output, mut output) = by_subinterface(plan, self.egress.policy_counters(now));
        let subinterfaces = plan.subinterfaces.iter().enumerate().map(|(number, subinterface)| {
            let SubinterfacePlan { name, enabled, vlan, native } = subinterface.clone();
            let counted = |vlans: &Option<Box<Vlans>>| vlans.as_ref().map_or_else(Count::default, |v| v.count(number));
            let counters = SubinterfaceCounters {
                enabled,
                vlan,
                native,
                input: counted(&self.ingress.vlans),
                output: counted(&self.egress.vlans),
                policy_input: input.remove(&name),
                policy_output: output.remove(&name),
            };
            (name, counters)
        });
        let subinterfaces = subinterfaces.collect();
        InterfaceCounters {
            denied_input: self.ingress.denied(),
            denied_output: self.egress.denied(),
            rate_limit_input: self.ingress.limit_counters(now),
            rate_limit_output: self.egress.limit_counters(now),
            conversations: self.egress.conversations(rest),
            random_detect: self.egress.random_detect_counters(),
            numbered_queues: self.egress.numbered_counters(),
            shapers: self.egress.shaper_counters(),
            tree: self.egress.tree_counters(),
            policy_input,
            policy_output,
            subinterfaces,
            ..common
        }
    }

    pub fn clear(&mut self, now: Time) {
        self.ingress.clear(now);
        self.egress.clear(now);
    }

    pub fn audit(&self) -> Result<(), String> {
        self.ingress.audit()?;
        self.egress.audit()
    }
}
