//! A port's way in: link arrival, then the input policy.

use crate::classifier::AccessList;
use crate::counters::{DirectionCounters, PolicyCounters};
use crate::defaults::LINK_BACKLOG_FRAMES;
use crate::delay::DelayLine;
use crate::engine::{DropReason, PortId, PortTotals};
use crate::packet::Descriptor;
use crate::plan::PortPlan;
use crate::policy::Policy;
use crate::port::{Outputs, Traffic};
use crate::serialiser::Serialiser;
use crate::time::{Duration, Time};

/// A port's way in.
#[derive(Debug)]
pub(crate) struct Ingress<P> {
    port: PortId,
    /// The link's clock; none where the sender keeps it.
    link: Option<Serialiser>,
    /// Frames whose last bit has yet to arrive.
    arriving: DelayLine<P>,
    last: Time,
    policy: Option<Policy>,
    enabled: bool,
    traffic: Traffic,
}

impl<P> Ingress<P> {
    pub fn new(port: PortId, plan: &PortPlan, paced_by_peer: bool, now: Time) -> Ingress<P> {
        Ingress {
            port,
            link: (!paced_by_peer).then(|| Serialiser::new(plan.rate, now)),
            arriving: DelayLine::new(Duration::ZERO),
            last: now,
            policy: None,
            enabled: plan.enabled,
            traffic: Traffic::new(now, plan.load_interval_s),
        }
    }

    pub fn configure(&mut self, now: Time, old: &PortPlan, new: &PortPlan) {
        if let Some(link) = &mut self.link {
            link.set_rate(new.rate);
        }
        self.enabled = new.enabled;
        self.traffic.load_interval_s = new.load_interval_s;
        if new.input != old.input || new.police_in_drop_rate != old.police_in_drop_rate {
            self.policy =
                new.input.clone().map(|plan| Policy::new(plan, now, new.load_interval_s, new.police_in_drop_rate));
        } else if let Some(policy) = &mut self.policy {
            policy.set_load_interval(new.load_interval_s);
        }
    }

    /// A frame came from the link.
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
        if self.arriving.len() >= LINK_BACKLOG_FRAMES {
            return self.drop(arrival, &descriptor, payload, DropReason::Overrun, outputs);
        }
        let arrived = match &mut self.link {
            Some(link) => link.take(arrival, descriptor.line_len),
            None => arrival,
        };
        self.arriving.push(arrived, descriptor, payload);
    }

    /// Passes on what has arrived by `now`.
    pub fn advance(&mut self, now: Time, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        while let Some(frame) = self.arriving.pop(now) {
            let (time, mut descriptor) = (frame.arrives, frame.descriptor);
            let bytes = descriptor.counted_len;
            if !self.enabled {
                self.drop(time, &descriptor, frame.payload, DropReason::Disabled, outputs);
                continue;
            }
            self.traffic.count(time, bytes);
            let verdict = self.policy.as_mut().map(|policy| (policy.apply(time, &mut descriptor, lists), policy));
            match verdict {
                Some((verdict, _)) if !verdict.pass => {
                    self.drop(time, &descriptor, frame.payload, DropReason::Police, outputs);
                }
                passed => {
                    if let Some((verdict, policy)) = passed {
                        policy.sent(verdict.class, bytes);
                    }
                    self.traffic.totals.sent.add(bytes);
                    outputs.depart_inside(time, self.port, descriptor, frame.payload);
                }
            }
        }
    }

    fn drop(&mut self, time: Time, descriptor: &Descriptor, payload: P, reason: DropReason, outputs: &mut Outputs<P>) {
        self.traffic.dropped(reason, descriptor.counted_len);
        outputs.drop_inside(time, self.port, reason, payload);
    }

    pub fn deadline(&self) -> Option<Time> {
        self.arriving.next()
    }

    pub fn counters(&mut self, now: Time) -> (DirectionCounters, Option<PolicyCounters>) {
        (self.traffic.counters(now), self.policy.as_mut().map(|policy| policy.counters::<P>(now, None)))
    }

    pub fn clear(&mut self, now: Time) {
        self.traffic.clear(now);
        if let Some(policy) = &mut self.policy {
            policy.clear(now);
        }
    }

    pub fn totals(&self) -> PortTotals {
        let mut totals = self.traffic.totals;
        self.arriving.iter().for_each(|frame| totals.queued.add(frame.descriptor.counted_len));
        totals
    }

    pub fn audit(&self) -> Result<(), String> {
        self.policy.as_ref().map_or(Ok(()), |policy| policy.audit(std::iter::empty()))
    }
}
