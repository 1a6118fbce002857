//! Counters and health of the data plane.

use qos_core::Side;

use super::port::{Interface, Port};
use super::{Counts, Dataplane};
use crate::health::Health;
use crate::netdev;

impl Dataplane {
    /// Returns the state of the daemon.
    pub fn health(&mut self) -> Health {
        Health {
            received: self.counts.received,
            transmitted: self.counts.transmitted,
            lost_input: self.lost() - self.counts.lost_before,
            malformed: self.counts.malformed,
            unsent: self.counts.unsent + self.undelivered(),
            late_arrivals: self.late_arrivals() - self.counts.late_before,
            lateness_ns: self.lateness.quantiles(),
            lateness_by_port: self.port_names().map(str::to_owned).zip(self.lateness.by_port()).collect(),
            late_over_budget: self.lateness.over_budget(),
            behind_ns: self.lateness.behind_ns(),
            budget_ns: self.lateness.budget_ns(),
            forwarding: self.forwarding.health(),
        }
    }

    /// Restarts the counters of the health.
    pub(super) fn clear_health(&mut self) {
        self.counts = Counts { lost_before: self.lost(), late_before: self.late_arrivals(), ..Counts::default() };
        self.lateness.clear();
        self.forwarding.clear();
        self.count_undelivered();
    }

    /// Returns the ring overflows since the start.
    fn lost(&mut self) -> u64 {
        self.ports.iter_mut().flat_map(Port::interfaces_mut).map(|i| i.ring.lost()).sum()
    }

    /// Returns the number of frames that the kernel delivered too late for their event time, from the links or after
    /// forwarding, since the start.
    fn late_arrivals(&self) -> u64 {
        let came = |port: &Port| port.wire.interface().map_or(0, |interface| interface.order.late);
        let back = |port: &Port| self.engine.totals(port.id, Side::Wire).late_arrivals;
        self.ports.iter().map(|port| came(port) + back(port)).sum()
    }

    /// Returns the number of frames that the kernel accepted but could not deliver since the last clearing.
    fn undelivered(&self) -> u64 {
        let now = netdev::read(&self.outside).unwrap_or_default();
        let of = |i: &Interface| {
            now.iter().find(|u| u.name == i.name).map_or(0, |u| u.frames.saturating_sub(i.unsent_before))
        };
        self.ports.iter().flat_map(Port::interfaces).map(of).sum()
    }

    pub(super) fn count_undelivered(&mut self) {
        let now = netdev::read(&self.outside).unwrap_or_default();
        for interface in self.ports.iter_mut().flat_map(Port::interfaces_mut) {
            interface.unsent_before = now.iter().find(|u| u.name == interface.name).map_or(0, |u| u.frames);
        }
    }
}
