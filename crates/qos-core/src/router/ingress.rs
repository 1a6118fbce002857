//! A port's way in: link arrival and propagation, then the input policy.

use std::collections::VecDeque;

use crate::catalyst::ingress::{IngressCounts, SwitchIngress};
use crate::classify::access_list::AccessList;
use crate::config::defaults::LINK_BACKLOG_FRAMES;
use crate::config::wiring::PortConfig;
use crate::counters::policy::PolicyCounters;
use crate::counters::port::{DirectionCounters, PropagationCounters};
use crate::counters::totals::PortTotals;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::port::{PortId, Side};
use crate::link::delay_line::{DelayLine, InFlight};
use crate::link::impairment::{Fate, Impairment};
use crate::link::outputs::Outputs;
use crate::link::serialiser::Serialiser;
use crate::link::traffic::Traffic;
use crate::plan::port::PortPlan;
use crate::policy::Policy;
use crate::time::{Duration, Time};

/// A port's way in.
#[derive(Debug)]
pub(crate) struct Ingress<P> {
    port: PortId,
    /// The link's clock; none where the sender keeps it.
    link: Option<Serialiser>,
    /// When the last bit of each frame leaves the sender that has not done so yet.
    backlog: VecDeque<Time>,
    impairment: Impairment,
    /// Frames whose last bit has yet to arrive.
    arriving: DelayLine<P>,
    last: Time,
    policy: Option<Policy>,
    /// A switch's port.
    switch: Option<SwitchIngress>,
    enabled: bool,
    traffic: Traffic,
}

impl<P> Ingress<P> {
    pub fn new(port: PortId, plan: &PortPlan, config: &PortConfig, now: Time) -> Ingress<P> {
        Ingress {
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
            policy: None,
            switch: None,
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
        match (&mut self.switch, new.switch.as_deref()) {
            (Some(switch), Some(plan)) => switch.configure(now, &plan.ingress),
            (switch, plan) => *switch = plan.map(|plan| SwitchIngress::new(plan.ingress.clone(), now)),
        }
    }

    /// Makes the index of the policy's classes anew.
    pub fn index(&mut self, lists: &[AccessList]) {
        if let Some(policy) = &mut self.policy {
            policy.index(lists);
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

    /// Passes on what has arrived by `now`.
    pub fn advance(&mut self, now: Time, lists: &mut [AccessList], outputs: &mut Outputs<P>) {
        while let Some(frame) = self.arriving.pop(now) {
            let (time, mut descriptor) = (frame.arrives, frame.descriptor);
            let bytes = descriptor.counted_len;
            if frame.lost {
                self.traffic.lost(bytes);
                outputs.drop_inside(time, self.port, DropReason::Lost, frame.payload);
                continue;
            }
            if !self.enabled {
                self.drop(time, &descriptor, frame.payload, DropReason::Disabled, outputs);
                continue;
            }
            self.traffic.count(time, bytes);
            let policed = match (&mut self.switch, &mut self.policy) {
                (Some(switch), policy) => !switch.pass(time, &mut descriptor, policy.as_mut(), lists),
                (None, Some(policy)) => {
                    let verdict = policy.apply(time, &mut descriptor, lists);
                    if verdict.pass {
                        policy.sent(verdict.class, bytes);
                    }
                    !verdict.pass
                }
                (None, None) => false,
            };
            if policed {
                self.drop(time, &descriptor, frame.payload, DropReason::Police, outputs);
                continue;
            }
            self.traffic.totals.sent.add(bytes);
            outputs.depart_inside(time, self.port, descriptor, frame.payload);
        }
    }

    fn drop(&mut self, time: Time, descriptor: &Descriptor, payload: P, reason: DropReason, outputs: &mut Outputs<P>) {
        self.traffic.dropped(reason, descriptor.counted_len);
        outputs.drop_inside(time, self.port, reason, payload);
    }

    pub fn deadline(&self) -> Option<Time> {
        self.arriving.next()
    }

    /// The least time from the end of a frame's last bit at the sender to its arrival, as far as this end does it.
    pub fn least_delay(&self) -> Duration {
        self.impairment.least()
    }

    pub fn counters(&mut self, now: Time) -> (DirectionCounters, Option<PolicyCounters>) {
        (self.traffic.counters(now), self.policy.as_mut().map(|policy| policy.counters::<P>(now, None)))
    }

    pub fn switch_counts(&self) -> Option<&IngressCounts> {
        self.switch.as_ref().map(|switch| &switch.counts)
    }

    pub fn link_counters(&self) -> PropagationCounters {
        PropagationCounters { lost: self.traffic.lost, in_flight: self.arriving.len() as u64 }
    }

    pub fn clear(&mut self, now: Time) {
        self.traffic.clear(now);
        if let Some(switch) = &mut self.switch {
            switch.counts = IngressCounts::default();
        }
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
