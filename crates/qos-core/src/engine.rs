//! The facade: [`Engine`].

use std::collections::{BTreeMap, BTreeSet};

use crate::catalyst::buffer_pool::BufferPool;
use crate::classify::access_list::{AccessList, LaterFragments};
use crate::compile::configuration::{compile, Compiled};
use crate::compile::{port, wiring};
use crate::config::router::RouterConfig;
use crate::config::wiring::PortsConfig;
use crate::counters::buckets::ClassBuckets;
use crate::counters::port::{AccessEntryCounters, Counters};
use crate::counters::resolved::Resolved;
use crate::counters::totals::PortTotals;
use crate::error::ConfigError;
use crate::frame::descriptor::{Descriptor, HeaderRest};
use crate::frame::drop_reason::DropReason;
use crate::frame::output::Output;
use crate::frame::port_number::{PortId, Side};
use crate::link::outputs::Outputs;
use crate::port::{audit_memory, due_key, NamedPort, Shared};
use crate::time::{Duration, Time};
use crate::winner_tree::WinnerTree;
use crate::wire::framing::Framing;

/// Engine of one router. `P` is returned to the caller with a frame: its bytes, the number of a buffer, or nothing.
///
/// # Order of calls
/// [`Engine::new`] with the wiring, then [`Engine::configure`] (until then each port is up with its default queueing),
/// then any number of [`receive`](Engine::receive) and [`transmit`](Engine::transmit), and [`poll`](Engine::poll) at
/// each [`next_deadline`](Engine::next_deadline), and at the latest after each batch of frames (drops have no
/// deadline). After `receive` or `transmit`, read the deadline again.
///
/// # Time
/// The engine works in event time.
///
/// - The *arrival* of a frame is the time at which it really arrived: the kernel's time stamp, for `transmit` the
///   departure time with which the frame left the engine towards the inside. It may be earlier than the `now` of
///   previous polls. Within a port and a direction arrivals must not decrease; a decreasing arrival counts as the
///   previous one.
/// - Policers and markings use the arrival. The serialiser starts a frame at its arrival or when the link is free,
///   whichever is later, and a departure's `time` is computed from there. So rates never drift, however late the caller
///   is.
/// - A decision is taken as late as possible: `poll(now)` settles what must be settled for the departures due by `now`,
///   no more. A queueing decision is thus settled one line time (plus propagation) after its own time, and frames that
///   are passed to the engine before that find the port in the same state as with a punctual caller. An arrival earlier
///   than a settled decision enters the queue at the time of that decision; [`PortTotals::late_arrivals`] counts those.
///   To allow for a kernel that forwards slowly, poll with a `now` a little in the past.
/// - `now` of `poll`, `configure`, `counters` and `clear` should not decrease; an earlier one settles nothing.
#[derive(Debug)]
pub struct Engine<P> {
    names: BTreeMap<String, PortId>,
    ports: Vec<NamedPort<P>>,
    shared: Shared<P>,
    /// Numbers of the access lists; a list has the same number as long as it is configured.
    access_list_numbers: BTreeMap<String, usize>,
    config: Option<RouterConfig>,
    resolved: Resolved,
    /// Ports whose links have a delay.
    delayed: Vec<usize>,
    /// Time of the next event of each port's input and output, so that a poll costs nothing for idle ports.
    in_due: WinnerTree,
    out_due: WinnerTree,
    start: Time,
}

impl<P> Engine<P> {
    /// Returns an engine with the given wiring, not yet configured.
    ///
    /// # Errors
    /// The path and reason when a link has no rate or there are too many ports.
    pub fn new(ports: &PortsConfig, start: Time) -> Result<Engine<P>, ConfigError> {
        let mut engine = Engine {
            names: BTreeMap::new(),
            ports: Vec::new(),
            shared: Shared { lists: Vec::new(), pools: Vec::new(), outputs: Outputs(Vec::new()) },
            access_list_numbers: BTreeMap::new(),
            config: None,
            resolved: Resolved { policy_maps: BTreeMap::new() },
            delayed: Vec::new(),
            in_due: WinnerTree::new(ports.ports.len()),
            out_due: WinnerTree::new(ports.ports.len()),
            start,
        };
        for (index, (name, config)) in ports.ports.iter().enumerate() {
            let Ok(number) = u16::try_from(index) else {
                return Err(ConfigError::too_much(
                    "ports",
                    format!("{} ports: at most 65536 are possible", ports.ports.len()),
                ));
            };
            wiring::check(&config.link, &format!("ports.{name}.link"))?;
            let id = PortId(number);
            let port = NamedPort::new(id, name, config, port::unconfigured(config), ports.seed, start);
            if port.least_delay() > Duration::ZERO {
                engine.delayed.push(index);
            }
            engine.names.insert(name.clone(), id);
            engine.ports.push(port);
        }
        Ok(engine)
    }

    /// Returns the ports, in the order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, &str)> {
        self.names.iter().map(|(name, id)| (*id, name.as_str()))
    }

    /// Returns the port with an IOS name.
    pub fn port(&self, name: &str) -> Option<PortId> {
        self.names.get(name).copied()
    }

    /// Returns the framing of a port's link: the argument of [`crate::frame::descriptor::parse`].
    ///
    /// # Panics
    /// If there is no such port.
    pub fn framing(&self, port: PortId) -> Framing {
        self.ports[usize::from(port.0)].config.link.framing
    }

    /// Activates a complete configuration, or changes nothing.
    ///
    /// An attached policy-map with unchanged classes and values keeps its queues, token buckets and counters. A changed
    /// one starts at zero; waiting packets are classified again by it, and count as offered to it. A changed access
    /// list restarts its hit counter, but policies that use it go on. An interface that is shut down drops what waits.
    ///
    /// # Errors
    /// The path and reason of the first thing that cannot be used; then nothing has changed.
    pub fn configure(&mut self, now: Time, config: &RouterConfig) -> Result<(), ConfigError> {
        let numbers = self.numbered(config);
        let wiring = self.ports.iter().map(|port| (port.name.as_str(), &port.config));
        let Compiled { ports, resolved, reserved_cells } = compile(config, &self.names, &numbers, wiring)?;
        if self.config.as_ref().is_some_and(|before| before.switch.is_some() != config.switch.is_some()) {
            let message = "a router cannot become a switch, nor a switch a router: start another daemon";
            return Err(ConfigError::new("switch", message));
        }
        // Everything is checked: nothing fails from here on.
        self.advance(now);
        BufferPool::reserve(&mut self.shared.pools, &reserved_cells, self.ports.len());
        let later_fragments = match config.switch {
            Some(_) => LaterFragments::Unmatched,
            None => LaterFragments::ByNetworkLayer,
        };
        let lists = &mut self.shared.lists;
        lists.resize(
            numbers.values().map(|number| number + 1).max().unwrap_or(0),
            AccessList::new("", &[], later_fragments),
        );
        for (name, entries) in &config.access_lists {
            let list = &mut lists[numbers[name]];
            if list.name != *name || list.entries != *entries {
                *list = AccessList::new(name, entries, later_fragments);
            }
        }
        self.access_list_numbers = numbers;
        let plans = std::mem::take(&mut self.ports).into_iter().zip(ports);
        self.ports = plans.map(|(port, plan)| port.configured(now, plan, &mut self.shared)).collect();
        for index in 0..self.ports.len() {
            // Also if the policies stay: their access lists may have changed.
            self.ports[index].index(&self.shared.lists);
            self.note_in(index);
            self.note_out(index);
        }
        self.resolved = resolved;
        self.config = Some(config.clone());
        Ok(())
    }

    /// Stores the time at which a port's input next has work to do.
    fn note_in(&mut self, index: usize) {
        self.in_due.set(index, due_key(self.ports[index].in_due()));
    }

    /// Stores the time at which a port's output next has work to do.
    #[inline]
    fn note_out(&mut self, index: usize) {
        let due = self.ports[index].out_due(index, &mut self.shared.pools);
        self.out_due.set(index, due_key(due));
    }

    /// numbers for the access lists of a configuration: active lists keep theirs.
    fn numbered(&self, config: &RouterConfig) -> BTreeMap<String, usize> {
        let mut numbers: BTreeMap<String, usize> = config
            .access_lists
            .keys()
            .filter_map(|name| Some((name.clone(), *self.access_list_numbers.get(name)?)))
            .collect();
        let taken: BTreeSet<usize> = numbers.values().copied().collect();
        let mut free = (0..).filter(|number| !taken.contains(number));
        for name in config.access_lists.keys() {
            if !numbers.contains_key(name) {
                numbers.extend(free.next().map(|number| (name.clone(), number)));
            }
        }
        numbers
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> Option<&RouterConfig> {
        self.config.as_ref()
    }

    /// Accepts a frame from the link of `port`. It passes the link's clock (unless its sender is paced) and the input
    /// policy, and leaves on [`Side::Inside`].
    ///
    /// # Panics
    /// If there is no such port.
    pub fn receive(&mut self, arrival: Time, port: PortId, descriptor: Descriptor, payload: P) {
        let index = usize::from(port.0);
        self.ports[index].receive(arrival, descriptor, payload, &mut self.shared.outputs);
        self.note_in(index);
    }

    /// Accepts a frame that the router's own IP stack sends by `port`. It passes the output policy, queues, ring and
    /// link, and leaves on [`Side::Wire`].
    ///
    /// # Panics
    /// If there is no such port.
    pub fn transmit(&mut self, arrival: Time, port: PortId, mut descriptor: Descriptor, payload: P) {
        let index = usize::from(port.0);
        // If a switch lacks memory for the frame, its ports first return the cells that are due.
        if let Some((asic, now)) = self.ports[index].prepare(arrival, &descriptor, &mut self.shared) {
            self.note_out(index);
            self.settle_memory(asic, now);
        }
        let port = &mut self.ports[index];
        port.transmit(arrival, &mut descriptor, payload, &mut self.shared);
        self.out_due.set(index, due_key(port.out_due(index, &mut self.shared.pools)));
    }

    /// Lets the ports of a switch's ASIC return the cells that are due by `now`.
    fn settle_memory(&mut self, asic: usize, now: Time) {
        while let Some(other) = self.shared.pools[asic].release_due(now) {
            self.ports[other].settle(now, &mut self.shared.pools);
            self.note_out(other);
        }
    }

    /// Appends the frames to `into` that have left by `now` or were dropped: in order of time within a port and side,
    /// not across ports.
    pub fn poll(&mut self, now: Time, into: &mut Vec<Output<P>>) {
        if !self.shared.outputs.0.is_empty() {
            into.append(&mut self.shared.outputs.0);
        }
        if self.in_due.least_key().min(self.out_due.least_key()) <= now.0 {
            // Outputs are written to their destination, after earlier ones.
            std::mem::swap(&mut self.shared.outputs.0, into);
            self.advance(now);
            std::mem::swap(&mut self.shared.outputs.0, into);
        }
    }

    /// Does the input part of [`poll`](Engine::poll): appends the frames that have left towards the inside by `now`,
    /// and settles no output. A late caller can thus pass those frames through the router's own IP stack and to
    /// [`transmit`](Engine::transmit) before a `poll` with the same `now` settles the output.
    ///
    /// Frames in transit over a link's delay may be returned up to `ahead` before their time, which does not change,
    /// provided that no frame that enters the link from now on can arrive before them. The caller can thus pass them
    /// through its IP stack by their time.
    pub fn poll_inside(&mut self, now: Time, ahead: Duration, into: &mut Vec<Output<P>>) {
        if !self.shared.outputs.0.is_empty() {
            into.append(&mut self.shared.outputs.0);
        }
        if ahead == Duration::ZERO && self.in_due.least_key() > now.0 {
            return;
        }
        // Written to its destination, as by `poll`.
        std::mem::swap(&mut self.shared.outputs.0, into);
        self.advance_in(now);
        if ahead > Duration::ZERO {
            for index in 0..self.delayed.len() {
                let index = self.delayed[index];
                let port = &mut self.ports[index];
                port.advance_in(now + ahead.min(port.least_delay()), &mut self.shared);
                self.note_in(index);
            }
        }
        std::mem::swap(&mut self.shared.outputs.0, into);
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        if self.in_due.least_key() <= now.0 {
            self.advance_in(now);
        }
        while self.out_due.least_key() <= now.0 {
            let Some(index) = self.out_due.least() else { return };
            let port = &mut self.ports[index];
            port.advance_out(now, &mut self.shared);
            self.out_due.set(index, due_key(port.out_due(index, &mut self.shared.pools)));
        }
    }

    fn advance_in(&mut self, now: Time) {
        while self.in_due.least_key() <= now.0 {
            let Some(index) = self.in_due.least() else { return };
            self.ports[index].advance_in(now, &mut self.shared);
            self.note_in(index);
        }
    }

    /// Returns the time at which [`poll`](Engine::poll) next has work to do; the poll may still yield nothing. `None`:
    /// not before the next frame.
    pub fn next_deadline(&self) -> Option<Time> {
        let next = self.in_due.least_key().min(self.out_due.least_key());
        (next != WinnerTree::<u64>::NONE).then_some(Time(next))
    }

    /// Returns the output part of [`next_deadline`](Engine::next_deadline): the time at which a frame that the engine
    /// holds for a link may next leave, as far as is known.
    pub fn next_departure(&self) -> Option<Time> {
        let next = self.out_due.least_key();
        (next != WinnerTree::<u64>::NONE).then_some(Time(next))
    }

    /// Returns the counters as of `now`, of all interfaces or of `interface` only. Packets that leave by `now` are
    /// saved for the next poll.
    ///
    /// Identification and time to live of the first packet in each conversation are reported as 0; see
    /// [`counters_with`](Engine::counters_with).
    pub fn counters(&mut self, now: Time, interface: Option<PortId>) -> Counters {
        self.counters_with(now, interface, &|_| HeaderRest::default())
    }

    /// Returns the same counters, with the headers of waiting packets from `rest`.
    pub fn counters_with(&mut self, now: Time, interface: Option<PortId>, rest: &dyn Fn(&P) -> HeaderRest) -> Counters {
        self.advance(now);
        for asic in 0..self.shared.pools.len() {
            self.settle_memory(asic, now);
        }
        let wanted = |index: usize| interface.is_none_or(|wanted| usize::from(wanted.0) == index);
        let ports = self.ports.iter_mut().enumerate().filter(|(index, _)| wanted(*index));
        let interfaces = ports.map(|(_, port)| (port.name.clone(), port.counters(now, rest))).collect();
        let entries = |number: &usize| {
            let hits = self.shared.lists[*number].hits.iter();
            hits.map(|packets| AccessEntryCounters { packets: *packets }).collect()
        };
        Counters {
            time_ns: now.0,
            uptime_ns: now.since(self.start).0,
            interfaces,
            access_lists: self.access_list_numbers.iter().map(|(name, n)| (name.clone(), entries(n))).collect(),
            switch: (!self.shared.pools.is_empty()).then(|| BufferPool::counters(&self.shared.pools)),
        }
    }

    /// Admits a packet to a router's port as if its last bit had arrived from the link at `now`: filters, marks and
    /// polices it, and counts it in policies and access lists, but not on the link. Returns the drop reason, if any.
    /// For questions about one packet; otherwise use [`receive`](Engine::receive). A switch's port passes every packet.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn admit(&mut self, now: Time, port: PortId, descriptor: &mut Descriptor) -> Option<DropReason> {
        self.ports[usize::from(port.0)].admit(now, descriptor, &mut self.shared.lists)
    }

    /// Settles the output of a router's port up to `now`, as the arrival of a packet there does. Its queues are then in
    /// the state that a packet finds at that time.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn settle_outbound(&mut self, now: Time, port: PortId) {
        let index = usize::from(port.0);
        self.ports[index].settle_outbound(now, &mut self.shared.outputs);
        self.note_out(index);
    }

    /// Returns the tokens at `now` in the buckets of a router port's input policy ([`Side::Inside`]) or output policy,
    /// by class, a parent before its children.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn buckets(&self, now: Time, port: PortId, side: Side) -> Vec<ClassBuckets> {
        self.ports[usize::from(port.0)].buckets(now, side)
    }

    /// Returns the time of a frame from its last bit on the wire of a port to its departure on [`Side::Wire`]; `None`
    /// if it varies.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn delay_out(&self, port: PortId) -> Option<Duration> {
        self.ports[usize::from(port.0)].delay_out()
    }

    /// Zeroes the counters of one interface or, with `None`, of all and of the access lists. Queues and token buckets
    /// stay.
    pub fn clear(&mut self, now: Time, interface: Option<PortId>) {
        self.advance(now);
        for (index, port) in self.ports.iter_mut().enumerate() {
            if interface.is_none_or(|wanted| usize::from(wanted.0) == index) {
                port.clear(now);
            }
        }
        if interface.is_none() {
            self.shared.lists.iter_mut().for_each(|list| list.hits.fill(0));
        }
    }

    /// Returns the configured policy-maps with every default filled in.
    pub fn resolve(&self) -> Resolved {
        self.resolved.clone()
    }

    /// Returns outcomes of the frames of one direction of a port ([`Side::Inside`]: those given to `receive`).
    /// [`Engine::clear`] does not change these counters.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn totals(&self, port: PortId, side: Side) -> PortTotals {
        self.ports[usize::from(port.0)].totals(side)
    }

    /// Checks that every packet and byte is accounted for: offered = sent + dropped + queued, by port and by class.
    /// Costs time proportional to the packets queued; meant for tests.
    ///
    /// # Errors
    /// Inconsistencies of the counters.
    pub fn audit(&self) -> Result<(), String> {
        for port in &self.ports {
            port.audit().map_err(|what| format!("port {}: {what}", port.name))?;
        }
        audit_memory(&self.ports, &self.shared.pools)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalyst::buffer_pool::QueueBuffers;
    use crate::config::catalyst::Trust;
    use crate::config::policy::PolicyClass;
    use crate::frame::label::Label;
    use crate::switch_configurations::{config, defaults, interface, name, port, started};

    const SECOND: Time = Time(1_000_000_000);

    /// Returns a switch of two ports: the first with an input policy, the second with frames that wait.
    fn switch() -> Engine<u64> {
        let class = PolicyClass { trust: Some(Trust::Dscp), ..PolicyClass::new("class-default") };
        let config = config(defaults())
            .policy_map("P", vec![class])
            .interface(name(1), interface(port()).input("P"))
            .interface(name(2), interface(port()));
        let mut engine = started(2, &config);
        for number in 0..10 {
            let frame = crate::frame::descriptor::parse(&[0; 1_000], Framing::Ethernet);
            let frame = Descriptor { label: Some(Label::default()), ..frame };
            engine.transmit(Time(0), PortId(1), frame, number);
        }
        engine
    }

    #[test]
    fn audit_reports_unbalanced_counters() {
        let spoilt = |spoil: fn(&mut Engine<u64>)| {
            let mut engine = switch();
            spoil(&mut engine);
            engine.audit()
        };
        assert_eq!(spoilt(|_| ()), Ok(()));
        let found = |spoil, part: &str| {
            let found = spoilt(spoil).unwrap_err();
            assert!(found.contains(part), "{found}, and not {part}");
        };
        found(
            |engine| engine.shared.pools[0].take(&mut QueueBuffers::default(), QueueBuffers { reserved: 1, common: 0 }),
            "memory 0: queues hold",
        );
        found(|engine| engine.ports[1].catalyst().egress.outbound.settled = SECOND, "is expected");
        found(
            |engine| engine.ports[0].catalyst().ingress.policy().unwrap().count_sent(0, 100),
            "class class-default: offered",
        );
        found(|engine| engine.ports[0].catalyst().ingress.policy().unwrap().count_queued(0, 100), "are in queues");
    }
}
