//! What is left of a port's egress without its queues.

use crate::counters::policy::PolicyCounters;
use crate::counters::port::{
    DirectionCounters, InterfaceQueueCounters, PropagationCounters, QueueingDelayCounters, RingCounters,
};
use crate::frame::port::PortId;
use crate::link::delay_line::DelayLine;
use crate::link::impairment::Impairment;
use crate::link::serialiser::Serialiser;
use crate::link::traffic::Traffic;
use crate::meter::queueing_delay::QueueingDelay;
use crate::time::Time;

/// What is left of a port's way out without its queues.
#[derive(Debug)]
pub(crate) struct Line<P> {
    pub port: PortId,
    pub link: Serialiser,
    pub impairment: Impairment,
    pub wire: DelayLine<P>,
    pub settled: Time,
    pub last: Time,
    pub traffic: Traffic,
    pub delay: QueueingDelay,
}

/// The earlier of two times that may be.
pub(crate) fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What the way out counted.
pub(crate) struct EgressCounters {
    pub output: DirectionCounters,
    pub queue: InterfaceQueueCounters,
    pub tx_ring: RingCounters,
    pub queueing_delay: Option<QueueingDelayCounters>,
    pub policy: Option<PolicyCounters>,
    pub link: PropagationCounters,
}
