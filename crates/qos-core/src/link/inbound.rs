//! Receiving end of a link: the link's clock, propagation, and counters of received frames.

use std::collections::VecDeque;

use crate::config::defaults::LINK_BACKLOG_FRAMES;
use crate::config::wiring::PortConfig;
use crate::counters::port::{DirectionCounters, PropagationCounters};
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::port_number::{PortId, Side};
use crate::link::delay_line::{DelayLine, InFlight};
use crate::link::impairment::{Fate, Impairment};
use crate::link::outputs::Outputs;
use crate::link::serialiser::Serialiser;
use crate::link::traffic::Traffic;
use crate::plan::port::PortPlan;
use crate::time::{Duration, Time};

/// The end of a link at which frames arrive, the same for ports of routers and switches.
#[derive(Debug)]
pub(crate) struct Inbound<P> {
    port: PortId,
    /// Clock of the link; none if the sender keeps it.
    link: Option<Serialiser>,
    /// Times at which the last bits of outstanding frames leave the sender.
    backlog: VecDeque<Time>,
    impairment: Impairment,
    /// Frames whose last bit has not arrived yet.
    arriving: DelayLine<P>,
    last: Time,
    enabled: bool,
    traffic: Traffic,
}

impl<P> Inbound<P> {
    pub fn new(port: PortId, plan: &PortPlan, config: &PortConfig, now: Time) -> Inbound<P> {
        Inbound {
            port,
            link: (!config.paced_by_peer).then(|| Serialiser::new(plan.rate, now)),
            backlog: VecDeque::new(),
            impairment: if config.paced_by_peer {
                Impairment::second_half(&config.link)
            } else {
                Impairment::of(&config.link, Side::Inside)
            },
            arriving: DelayLine::new(now),
            last: now,
            enabled: plan.enabled,
            traffic: Traffic::new(now, plan.load_interval_s),
        }
    }

    pub fn configure(&mut self, plan: &PortPlan) {
        if let Some(link) = &mut self.link {
            link.set_rate(plan.rate);
        }
        self.enabled = plan.enabled;
        self.traffic.load_interval_s = plan.load_interval_s;
    }

    /// Accepts a frame from the link.
    pub fn receive(&mut self, arrival: Time, mut descriptor: Descriptor, payload: P, outputs: &mut Outputs<P>) {
        descriptor.input_port = Some(self.port);
        self.traffic.totals.offered.add(descriptor.counted_len);
        if arrival < self.last {
            self.traffic.late(self.last.since(arrival));
        }
        let arrival = arrival.max(self.last);
        self.last = arrival;
        if !self.enabled {
            return self.drop(arrival, &descriptor, payload, DropReason::Disabled, outputs);
        }
        let passed = match &mut self.link {
            Some(link) => {
                while self.backlog.front().is_some_and(|end| *end <= arrival) {
                    self.backlog.pop_front();
                }
                if self.backlog.len() >= LINK_BACKLOG_FRAMES {
                    return self.drop(arrival, &descriptor, payload, DropReason::Overrun, outputs);
                }
                let end = link.take(arrival, descriptor.line_len);
                self.backlog.push_back(end);
                end
            }
            None => arrival,
        };
        let Fate { arrives, lost } = self.impairment.pass(passed);
        self.arriving.push(InFlight { arrives, lost, descriptor, payload });
    }

    /// Returns the next frame that has arrived by `now`, except lost frames and those at a port that is shut down.
    pub fn next(&mut self, now: Time, outputs: &mut Outputs<P>) -> Option<InFlight<P>> {
        while let Some(frame) = self.arriving.pop(now) {
            let bytes = frame.descriptor.counted_len;
            if frame.lost {
                self.traffic.count_lost(bytes);
                outputs.drop_inside(frame.arrives, self.port, DropReason::Lost, frame.payload);
            } else if !self.enabled {
                self.drop(frame.arrives, &frame.descriptor, frame.payload, DropReason::Disabled, outputs);
            } else {
                self.traffic.count(frame.arrives, bytes);
                return Some(frame);
            }
        }
        None
    }

    /// Applies the decision of the input policy on a frame of [`next`](Self::next): it goes inside, or is dropped.
    pub fn apply_decision(&mut self, pass: bool, frame: InFlight<P>, outputs: &mut Outputs<P>) {
        let InFlight { arrives, descriptor, payload, .. } = frame;
        if pass {
            self.traffic.totals.sent.add(descriptor.counted_len);
            outputs.depart_inside(arrives, self.port, descriptor, payload);
        } else {
            self.drop(arrives, &descriptor, payload, DropReason::Police, outputs);
        }
    }

    /// Drops a frame of [`next`](Self::next) that does not reach the input policy.
    pub fn refuse(&mut self, reason: DropReason, frame: InFlight<P>, outputs: &mut Outputs<P>) {
        let InFlight { arrives, descriptor, payload, .. } = frame;
        self.drop(arrives, &descriptor, payload, reason, outputs);
    }

    fn drop(&mut self, time: Time, descriptor: &Descriptor, payload: P, reason: DropReason, outputs: &mut Outputs<P>) {
        self.traffic.count_dropped(reason, descriptor.counted_len, reason != DropReason::Denied);
        outputs.drop_inside(time, self.port, reason, payload);
    }

    pub fn deadline(&self) -> Option<Time> {
        self.arriving.next()
    }

    /// Returns the minimum time from a frame's last bit at the sender to its arrival, as far as this end simulates it.
    pub fn least_delay(&self) -> Duration {
        self.impairment.least()
    }

    pub fn counters(&mut self, now: Time) -> DirectionCounters {
        self.traffic.counters(now)
    }

    pub fn link_counters(&self) -> PropagationCounters {
        PropagationCounters { lost: self.traffic.lost, in_flight: self.arriving.len() as u64 }
    }

    pub fn clear(&mut self, now: Time) {
        self.traffic.clear(now);
    }

    pub fn totals(&self) -> PortTotals {
        let mut totals = self.traffic.totals;
        self.arriving.iter().for_each(|frame| totals.queued.add(frame.descriptor.counted_len));
        totals
    }
}
