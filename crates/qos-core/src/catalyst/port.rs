//! A port of a Catalyst.

use crate::catalyst::buffer_pool::BufferPool;
use crate::catalyst::egress::Egress;
use crate::catalyst::ingress::Ingress;
use crate::classify::access_list::AccessList;
use crate::counters::port::{InterfaceCounters, RingCounters};
use crate::link::counters::interface_counters;
use crate::link::inbound::Inbound;
use crate::link::outbound::Outbound;
use crate::link::outputs::Outputs;
use crate::plan::catalyst::CatalystPlan;
use crate::plan::port::PortPlan;
use crate::time::Time;

/// A port of a Catalyst.
#[derive(Debug)]
pub(crate) struct CatalystPort<P> {
    pub ingress: Ingress<P>,
    pub egress: Egress<P>,
}

impl<P> CatalystPort<P> {
    pub fn new(
        (inbound, outbound): (Inbound<P>, Outbound<P>),
        (plan, catalyst): (&PortPlan, &CatalystPlan),
        now: Time,
    ) -> CatalystPort<P> {
        CatalystPort {
            ingress: Ingress::new(inbound, plan, &catalyst.ingress, now),
            egress: Egress::new(outbound, plan, &catalyst.egress),
        }
    }

    pub fn configure(
        &mut self,
        now: Time,
        old: &PortPlan,
        (plan, catalyst): (&PortPlan, &CatalystPlan),
        pools: &mut [BufferPool],
        outputs: &mut Outputs<P>,
    ) {
        self.ingress.configure(now, old, plan, &catalyst.ingress);
        let pool = &mut pools[self.egress.asic()];
        self.egress.configure(now, plan, &catalyst.egress, pool, outputs);
    }

    pub fn index(&mut self, lists: &[AccessList]) {
        self.ingress.index(lists);
    }

    pub fn counters(&mut self, now: Time, plan: &PortPlan) -> InterfaceCounters {
        let waiting = (self.egress.queue_counters(), RingCounters { limit: 0, depth: 0 });
        let ends = (&mut self.ingress.inbound, &mut self.egress.outbound);
        let common = interface_counters(ends, waiting, plan, now);
        InterfaceCounters {
            policy_input: self.ingress.policy_counters(now),
            switch: Some(self.egress.port_counters(self.ingress.counts())),
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
