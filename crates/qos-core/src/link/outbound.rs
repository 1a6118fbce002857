//! Sending end of a link: the link's clock, propagation, and counters of sent frames.

use crate::config::defaults;
use crate::config::wiring::PortConfig;
use crate::counters::count::Count;
use crate::counters::port::{DirectionCounters, PropagationCounters, QueueingDelayCounters};
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::port_number::{PortId, Side};
use crate::link::delay_line::{DelayLine, InFlight};
use crate::link::impairment::{Fate, Impairment};
use crate::link::outputs::Outputs;
use crate::link::serialiser::Serialiser;
use crate::link::traffic::Traffic;
use crate::meter::queueing_delay::QueueingDelay;
use crate::plan::port::PortPlan;
use crate::time::{Duration, Time};

/// The end of a link at which frames leave, without the queues in front of it, the same for ports of routers and
/// switches.
#[derive(Debug)]
pub(crate) struct Outbound<P> {
    pub port: PortId,
    pub link: Serialiser,
    impairment: Impairment,
    wire: DelayLine<P>,
    /// Everything up to here is settled.
    pub settled: Time,
    /// The last arrival.
    pub last: Time,
    pub enabled: bool,
    pub traffic: Traffic,
    delay: QueueingDelay,
}

impl<P> Outbound<P> {
    pub fn new(port: PortId, plan: &PortPlan, config: &PortConfig, now: Time) -> Outbound<P> {
        Outbound {
            port,
            link: Serialiser::new(plan.rate, now),
            impairment: if config.paced_by_peer {
                Impairment::first_half(&config.link)
            } else {
                Impairment::of(&config.link, Side::Wire)
            },
            wire: DelayLine::new(now),
            settled: now,
            last: now,
            enabled: plan.enabled,
            traffic: Traffic::new(now, plan.load_interval_s),
            delay: QueueingDelay::new(),
        }
    }

    pub fn configure(&mut self, plan: &PortPlan) {
        self.link.set_rate(plan.rate);
        self.link.set_sustained(plan.sustained);
        self.enabled = plan.enabled;
        self.traffic.load_interval_s = plan.load_interval_s;
    }

    /// Records a frame that reaches the port. Returns its arrival, not before the previous one, and the time at which
    /// it joins, not before the settled time.
    #[inline]
    pub fn arrive(&mut self, arrival: Time, bytes: u32) -> (Time, Time) {
        self.traffic.totals.offered.add(bytes);
        let arrival = arrival.max(self.last);
        self.last = arrival;
        if arrival < self.settled {
            self.traffic.late(self.settled.since(arrival));
        }
        (arrival, arrival.max(self.settled))
    }

    /// Starts a frame on the line at `now` that reached the port at `arrival`; its last bit is on the wire at `end`.
    #[inline]
    pub fn start(&mut self, (now, end): (Time, Time), arrival: Time, descriptor: Descriptor, payload: P) {
        let bytes = descriptor.counted_len;
        self.traffic.count(now, bytes);
        self.delay.record(now.since(arrival));
        let Fate { arrives, lost } = self.impairment.pass(end);
        if lost {
            self.traffic.count_lost(bytes);
        } else {
            self.traffic.totals.sent.add(bytes);
        }
        self.wire.push(InFlight { arrives, lost, descriptor, payload });
    }

    /// Returns the earliest time at which a frame with its last bit on the wire at `end` can reach the other end.
    #[inline]
    pub fn reaches(&self, end: Time) -> Time {
        end + self.impairment.least()
    }

    /// Returns the time from a frame's last bit on the wire to the other end; `None` if it varies.
    pub fn delay(&self) -> Option<Duration> {
        self.impairment.always()
    }

    /// Passes on frames that have reached the other end by `now`. Must be called after all due frames have started:
    /// with jitter, a later frame may arrive earlier.
    #[inline]
    pub fn deliver(&mut self, now: Time, outputs: &mut Outputs<P>) {
        while let Some(InFlight { arrives, lost, descriptor, payload }) = self.wire.pop(now) {
            if lost {
                outputs.drop_wire(arrives, self.port, DropReason::Lost, payload);
            } else {
                outputs.depart_wire(arrives, self.port, descriptor, payload);
            }
        }
    }

    /// Returns the time of the next event: a frame reaches the other end, or the next frame starts at `due`.
    #[inline]
    pub fn deadline(&self, due: Option<Time>) -> Option<Time> {
        match (self.wire.next(), due) {
            (Some(next), Some(due)) => Some(next.min(due)),
            (next, due) => next.or(due),
        }
    }

    pub fn drop(&mut self, now: Time, bytes: u32, payload: P, reason: DropReason, outputs: &mut Outputs<P>) {
        let shown = match reason {
            DropReason::Police => defaults::OUTPUT_DROPS_COUNT_POLICE,
            DropReason::Denied => false,
            _ => true,
        };
        self.traffic.count_dropped(reason, bytes, shown);
        outputs.drop_wire(now, self.port, reason, payload);
    }

    pub fn counters(&mut self, now: Time) -> OutboundCounters {
        OutboundCounters {
            output: self.traffic.counters(now),
            queueing_delay: self.delay.counters(),
            link: PropagationCounters { lost: self.traffic.lost, in_flight: self.wire.len() as u64 },
        }
    }

    pub fn clear(&mut self, now: Time) {
        self.traffic.clear(now);
        self.delay.clear();
    }

    /// Returns the totals; `queued` is the number of packets in front of the line.
    pub fn totals(&self, queued: Count) -> PortTotals {
        PortTotals { queued, ..self.traffic.totals }
    }
}

/// Counters of sent frames.
pub(crate) struct OutboundCounters {
    pub output: DirectionCounters,
    pub queueing_delay: Option<QueueingDelayCounters>,
    pub link: PropagationCounters,
}
