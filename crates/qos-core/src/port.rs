//! Ports of routers and Catalysts, with a common interface.

use crate::catalyst::buffer_pool::BufferPool;
use crate::catalyst::port::CatalystPort;
use crate::classify::access_list::AccessList;
use crate::config::wiring::PortConfig;
use crate::counters::buckets::ClassBuckets;
use crate::counters::count::Count;
use crate::counters::port::InterfaceCounters;
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::{Descriptor, HeaderRest};
use crate::frame::drop_reason::DropReason;
use crate::frame::port_number::{PortId, Side};
use crate::link::inbound::Inbound;
use crate::link::outbound::Outbound;
use crate::link::outputs::Outputs;
use crate::plan::port::{KindPlan, PortPlan};
use crate::router::port::RouterPort;
use crate::time::{Duration, Time};
use crate::winner_tree::WinnerTree;

/// State shared by the ports of an engine.
#[derive(Debug)]
pub(crate) struct Shared<P> {
    pub lists: Vec<AccessList>,
    /// The memory of a Catalyst, by ASIC; a router has none.
    pub pools: Vec<BufferPool>,
    pub outputs: Outputs<P>,
}

/// A port: its name, wiring, plan and running state.
#[derive(Debug)]
pub(crate) struct NamedPort<P> {
    pub name: String,
    pub config: PortConfig,
    plan: PortPlan,
    seed: u64,
    port: Port<P>,
}

/// A port at work.
#[derive(Debug)]
enum Port<P> {
    Router(Box<RouterPort<P>>),
    Catalyst(Box<CatalystPort<P>>),
}

macro_rules! each {
    ($port:expr, $inner:ident => $call:expr) => {
        match $port {
            Port::Router($inner) => $call,
            Port::Catalyst($inner) => $call,
        }
    };
}

impl<P> Port<P> {
    /// Returns the port with a plan at the end of a link.
    fn new(link: (Inbound<P>, Outbound<P>), plan: &PortPlan, seed: u64, now: Time) -> Port<P> {
        match &plan.kind {
            KindPlan::Router(router) => Port::Router(Box::new(RouterPort::new(link, (plan, router), seed, now))),
            KindPlan::Catalyst(catalyst) => Port::Catalyst(Box::new(CatalystPort::new(link, (plan, catalyst), now))),
        }
    }
}

impl<P> NamedPort<P> {
    /// Returns a port of that number, which runs `plan`. `seed` is that of flow hashes.
    pub fn new(id: PortId, name: &str, config: &PortConfig, plan: PortPlan, seed: u64, now: Time) -> NamedPort<P> {
        let link = (Inbound::new(id, &plan, config, now), Outbound::new(id, &plan, config, now));
        let port = Port::new(link, &plan, seed, now);
        NamedPort { name: name.to_owned(), config: config.clone(), plan, seed, port }
    }

    /// Returns the port with another plan. Before its first configuration a port is a router's; a switch's port then
    /// replaces it at the end of the same link, and waiting packets are dropped. A switch's port keeps its plan if it
    /// is given a router's: [`crate::Engine::configure`] refuses such a configuration.
    pub fn configured(self, now: Time, plan: PortPlan, shared: &mut Shared<P>) -> NamedPort<P> {
        if self.plan == plan {
            return self;
        }
        let NamedPort { name, config, plan: old, seed, port } = self;
        let port = match (port, &plan.kind) {
            (Port::Router(mut port), KindPlan::Router(router)) => {
                port.configure(now, &old, (&plan, router), &mut shared.lists, &mut shared.outputs);
                Port::Router(port)
            }
            (Port::Catalyst(mut port), KindPlan::Catalyst(catalyst)) => {
                port.configure(now, &old, (&plan, catalyst), &mut shared.pools, &mut shared.outputs);
                Port::Catalyst(port)
            }
            (Port::Router(port), KindPlan::Catalyst(_)) => {
                Port::new(port.into_link(now, &mut shared.outputs), &plan, seed, now)
            }
            (port @ Port::Catalyst(_), KindPlan::Router(_)) => {
                return NamedPort { name, config, plan: old, seed, port }
            }
        };
        NamedPort { name, config, plan, seed, port }
    }

    /// Rebuilds the indexes of the policies' classes.
    pub fn index(&mut self, lists: &[AccessList]) {
        each!(&mut self.port, port => port.index(lists));
    }

    /// Accepts a frame from the link.
    #[inline]
    pub fn receive(&mut self, arrival: Time, descriptor: Descriptor, payload: P, outputs: &mut Outputs<P>) {
        each!(&mut self.port, port => port.ingress.inbound.receive(arrival, descriptor, payload, outputs));
    }

    /// Prepares a [`transmit`](Self::transmit), which must follow. If a Catalyst's memory lacks cells for the frame,
    /// returns its ASIC and the time up to which the ASIC's ports should be settled first.
    #[inline]
    pub fn prepare(&mut self, arrival: Time, descriptor: &Descriptor, shared: &mut Shared<P>) -> Option<(usize, Time)> {
        match &mut self.port {
            Port::Router(_) => None,
            Port::Catalyst(port) => {
                let asic = port.egress.asic();
                Some((asic, port.egress.prepare(arrival, descriptor, &mut shared.pools[asic])?))
            }
        }
    }

    /// Queues an outgoing frame.
    #[inline]
    pub fn transmit(&mut self, arrival: Time, descriptor: &mut Descriptor, payload: P, shared: &mut Shared<P>) {
        match &mut self.port {
            Port::Router(port) => {
                port.egress.transmit(arrival, descriptor, payload, &mut shared.lists, &mut shared.outputs);
            }
            Port::Catalyst(port) => {
                let pool = &mut shared.pools[port.egress.asic()];
                port.egress.transmit(*descriptor, payload, pool, &mut shared.outputs);
            }
        }
    }

    /// Returns the cells of a Catalyst's memory that are due by `now`.
    pub fn settle(&mut self, now: Time, pools: &mut [BufferPool]) {
        match &mut self.port {
            Port::Router(_) => {}
            Port::Catalyst(port) => {
                let pool = &mut pools[port.egress.asic()];
                port.egress.settle(now, pool);
            }
        }
    }

    /// Settles the output of a router's port up to `now`, as the arrival of a packet does.
    pub fn settle_outbound(&mut self, now: Time, outputs: &mut Outputs<P>) {
        if let Port::Router(port) = &mut self.port {
            port.egress.settle(now, outputs);
        }
    }

    /// Passes on frames to the inside that have arrived by `now`.
    pub fn advance_in(&mut self, now: Time, shared: &mut Shared<P>) {
        each!(&mut self.port, port => port.ingress.advance(now, &mut shared.lists, &mut shared.outputs));
    }

    /// Passes on frames that have reached the other end of the link by `now`.
    #[inline]
    pub fn advance_out(&mut self, now: Time, shared: &mut Shared<P>) {
        match &mut self.port {
            Port::Router(port) => port.egress.advance(now, &mut shared.outputs),
            Port::Catalyst(port) => {
                let pool = &mut shared.pools[port.egress.asic()];
                port.egress.advance(now, pool, &mut shared.outputs);
            }
        }
    }

    /// Returns the minimum delay of the link to this end, as far as this end simulates it.
    pub fn least_delay(&self) -> Duration {
        each!(&self.port, port => port.ingress.inbound.least_delay())
    }

    /// Returns the time at which the ingress next has work to do.
    #[inline]
    pub fn in_due(&self) -> Option<Time> {
        each!(&self.port, port => port.ingress.inbound.deadline())
    }

    /// Returns the time at which the output next has work to do. Reports to a Catalyst's memory when this port, of that
    /// number, returns cells.
    #[inline]
    pub fn out_due(&self, index: usize, pools: &mut [BufferPool]) -> Option<Time> {
        match &self.port {
            Port::Router(port) => port.egress.deadline(),
            Port::Catalyst(port) => {
                pools[port.egress.asic()].set_release(index, port.egress.next_release());
                port.egress.deadline()
            }
        }
    }

    /// Returns the counters.
    pub fn counters(&mut self, now: Time, rest: &dyn Fn(&P) -> HeaderRest) -> InterfaceCounters {
        match &mut self.port {
            Port::Router(port) => port.counters(now, &self.plan, rest),
            Port::Catalyst(port) => port.counters(now, &self.plan),
        }
    }

    /// Zeroes the counters; queues and token buckets stay.
    pub fn clear(&mut self, now: Time) {
        each!(&mut self.port, port => port.clear(now));
    }

    /// Applies the input policy of a router's port to a packet as if its last bit had arrived from the link at `now`.
    /// Returns the drop reason, if any.
    pub fn admit(&mut self, now: Time, descriptor: &mut Descriptor, lists: &mut [AccessList]) -> Option<DropReason> {
        if !self.plan.enabled {
            return Some(DropReason::Disabled);
        }
        match &mut self.port {
            Port::Router(port) => port.ingress.refuses(now, descriptor, lists),
            Port::Catalyst(_) => None,
        }
    }

    /// Returns the levels of the token buckets of a router port's policy.
    pub fn buckets(&self, now: Time, side: Side) -> Vec<ClassBuckets> {
        match (&self.port, side) {
            (Port::Router(port), Side::Inside) => port.ingress.buckets(now),
            (Port::Router(port), Side::Wire) => port.egress.buckets(now),
            (Port::Catalyst(_), _) => Vec::new(),
        }
    }

    /// Returns the delay of the link from here, as far as this end simulates it; none if it varies.
    pub fn delay_out(&self) -> Option<Duration> {
        each!(&self.port, port => port.egress.outbound.delay())
    }

    /// Counts of the frames of one direction by outcome.
    pub fn totals(&self, side: Side) -> PortTotals {
        match side {
            Side::Inside => each!(&self.port, port => port.ingress.inbound.totals()),
            Side::Wire => each!(&self.port, port => port.egress.totals()),
        }
    }

    /// Returns the port of a switch.
    #[cfg(test)]
    pub fn catalyst(&mut self) -> &mut CatalystPort<P> {
        match &mut self.port {
            Port::Catalyst(port) => port,
            Port::Router(_) => panic!("{} is a router's", self.name),
        }
    }

    /// Checks that every packet and byte is accounted for.
    pub fn audit(&self) -> Result<(), String> {
        for totals in [self.totals(Side::Inside), self.totals(Side::Wire)] {
            let dropped = totals.dropped.into_iter().fold(Count::default(), Count::plus);
            if totals.offered != totals.sent.plus(dropped).plus(totals.queued) {
                return Err(format!("offered is not sent + dropped + queued: {totals:?}"));
            }
        }
        each!(&self.port, port => port.audit())
    }
}

/// Checks that the cells held by the ports in each ASIC's memory equal its counts.
pub(crate) fn audit_memory<P>(ports: &[NamedPort<P>], pools: &[BufferPool]) -> Result<(), String> {
    for (asic, pool) in pools.iter().enumerate() {
        let held = ports.iter().filter_map(|port| match &port.port {
            Port::Catalyst(port) if port.egress.asic() == asic => Some(port.egress.held()),
            Port::Catalyst(_) | Port::Router(_) => None,
        });
        pool.audit(held).map_err(|what| format!("memory {asic}: {what}"))?;
    }
    Ok(())
}

/// Returns the key of a deadline among others.
#[inline]
pub(crate) fn due_key(deadline: Option<Time>) -> u64 {
    deadline.map_or(WinnerTree::<u64>::NONE, |time| time.0)
}
