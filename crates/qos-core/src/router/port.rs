//! A router's port.

use crate::classify::access_list::AccessList;
use crate::counters::port::InterfaceCounters;
use crate::link::counters::interface_counters;
use crate::link::inbound::Inbound;
use crate::link::outbound::Outbound;
use crate::link::outputs::Outputs;
use crate::plan::port::{PortPlan, RouterPlan};
use crate::router::egress::Egress;
use crate::router::ingress::Ingress;
use crate::time::Time;

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

    /// The link without the port; what waits is dropped.
    pub fn into_link(mut self, now: Time, outputs: &mut Outputs<P>) -> (Inbound<P>, Outbound<P>) {
        self.egress.give_up(now, outputs);
        (self.ingress.inbound, self.egress.outbound)
    }

    pub fn index(&mut self, lists: &[AccessList]) {
        self.ingress.index(lists);
        self.egress.index(lists);
    }

    pub fn counters(&mut self, now: Time, plan: &PortPlan) -> InterfaceCounters {
        let waiting = (self.egress.queue_counters(), self.egress.ring_counters());
        let ends = (&mut self.ingress.inbound, &mut self.egress.outbound);
        let common = interface_counters(ends, waiting, plan, now);
        InterfaceCounters {
            rate_limit_input: self.ingress.limit_counters(now),
            rate_limit_output: self.egress.limit_counters(now),
            policy_input: self.ingress.policy_counters(now),
            policy_output: self.egress.policy_counters(now),
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
