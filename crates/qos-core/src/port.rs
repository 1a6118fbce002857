//! A port's way out: a router's or a switch's.

use crate::catalyst::buffer_pool::Pool;
use crate::catalyst::egress::SwitchEgress;
use crate::classify::access_list::AccessList;
use crate::counters::totals::PortTotals;
use crate::link::line::EgressCounters;
use crate::link::outputs::Outputs;
use crate::plan::port::PortPlan;
use crate::router::egress::Egress;
use crate::time::Time;

/// A port's way out. `pools` is the switch's memory, empty in a router.
#[derive(Debug)]
pub(crate) enum WayOut<P> {
    Router(Box<Egress<P>>),
    Switch(Box<SwitchEgress<P>>),
}

macro_rules! each {
    ($way:expr, $inner:ident => $call:expr) => {
        match $way {
            WayOut::Router($inner) => $call,
            WayOut::Switch($inner) => $call,
        }
    };
}

impl<P> WayOut<P> {
    /// The same port as a switch's: what waits is dropped.
    pub fn into_switch(self, now: Time, plan: &PortPlan, outputs: &mut Outputs<P>) -> WayOut<P> {
        match (self, &plan.switch) {
            (WayOut::Router(egress), Some(switch)) => {
                let line = egress.into_line(now, outputs);
                WayOut::Switch(Box::new(SwitchEgress::new(line, plan.enabled, &switch.egress)))
            }
            (as_it_was, _) => as_it_was,
        }
    }

    pub fn configure(
        &mut self,
        now: Time,
        old: &PortPlan,
        new: &PortPlan,
        lists: &mut [AccessList],
        pools: &mut [Pool],
        outputs: &mut Outputs<P>,
    ) {
        match (self, &new.switch) {
            (WayOut::Router(egress), _) => egress.configure(now, old, new, lists, outputs),
            (WayOut::Switch(egress), Some(plan)) => {
                let pool = &mut pools[egress.asic()];
                egress.configure(now, new, &plan.egress, pool, outputs);
            }
            (WayOut::Switch(_), None) => unreachable!("a switch stays one"),
        }
    }

    /// Makes the index of the output policy's classes anew; a switch has none.
    pub fn index(&mut self, lists: &[AccessList]) {
        match self {
            WayOut::Router(egress) => egress.index(lists),
            WayOut::Switch(_) => {}
        }
    }

    pub fn advance(&mut self, now: Time, pools: &mut [Pool], outputs: &mut Outputs<P>) {
        match self {
            WayOut::Router(egress) => egress.advance(now, outputs),
            WayOut::Switch(egress) => {
                let pool = &mut pools[egress.asic()];
                egress.advance(now, pool, outputs);
            }
        }
    }

    pub fn as_switch(&self) -> Option<&SwitchEgress<P>> {
        match self {
            WayOut::Router(_) => None,
            WayOut::Switch(egress) => Some(egress),
        }
    }

    pub fn deadline(&self) -> Option<Time> {
        each!(self, egress => egress.deadline())
    }

    pub fn counters(&mut self, now: Time, plan: &PortPlan) -> EgressCounters {
        each!(self, egress => egress.counters(now, plan))
    }

    pub fn clear(&mut self, now: Time) {
        each!(self, egress => egress.clear(now));
    }

    pub fn totals(&self) -> PortTotals {
        each!(self, egress => egress.totals())
    }

    pub fn audit(&self) -> Result<(), String> {
        each!(self, egress => egress.audit())
    }
}
