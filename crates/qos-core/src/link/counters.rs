//! Counters of an interface, independent of the components between the two ends of its link.

use std::collections::BTreeMap;

use crate::counters::count::Count;
use crate::counters::port::{InterfaceCounters, InterfaceQueueCounters, LinkCounters, RingCounters};
use crate::link::inbound::Inbound;
use crate::link::outbound::{Outbound, OutboundCounters};
use crate::plan::port::PortPlan;
use crate::time::Time;

/// Returns the counters of an interface without those of its policies and of a switch.
pub(crate) fn interface_counters<P>(
    (inbound, outbound): (&mut Inbound<P>, &mut Outbound<P>),
    (queue, tx_ring): (InterfaceQueueCounters, RingCounters),
    plan: &PortPlan,
    now: Time,
) -> InterfaceCounters {
    let OutboundCounters { output, queueing_delay, link } = outbound.counters(now);
    InterfaceCounters {
        enabled: plan.enabled,
        load_interval_s: plan.load_interval_s,
        line_rate_bps: plan.rate.0,
        input: inbound.counters(now),
        output,
        queue,
        conversations: Vec::new(),
        random_detect: None,
        numbered_queues: Vec::new(),
        shapers: Vec::new(),
        tree: Vec::new(),
        tx_ring,
        queueing_delay,
        link: LinkCounters { input: inbound.link_counters(), output: link },
        access_list_hits: None,
        denied_input: Count::default(),
        denied_output: Count::default(),
        rate_limit_input: Vec::new(),
        rate_limit_output: Vec::new(),
        policy_input: None,
        policy_output: None,
        subinterfaces: BTreeMap::new(),
        switch: None,
    }
}
