//! The facade: [`Engine`].

use std::collections::BTreeMap;

use crate::config::{ConfigError, Framing, PortsConfig, RouterConfig};
use crate::counters::{Count, Counters, Resolved};
use crate::packet::Descriptor;
use crate::time::Time;

/// A port, numbered in the order of the ports' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Where a frame comes out of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the router's own IP stack.
    Inside,
    /// Onto the link.
    Wire,
}

/// A frame that leaves the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// When: the link's own clock. [`Side::Wire`]: the last bit has reached the other end. [`Side::Inside`]: the last bit arrived.
    pub time: Time,
    /// By which port.
    pub port: PortId,
    /// On which side of it.
    pub side: Side,
    /// What the frame is now. Where `dscp` or `cos` differ from the frame's, the caller rewrites the bytes.
    pub descriptor: Descriptor,
    /// What the caller gave.
    pub payload: P,
}

/// A frame that the engine dropped, given back so that its buffer can be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// When.
    pub time: Time,
    /// At which port.
    pub port: PortId,
    /// On its way in (`Side::Inside`) or out (`Side::Wire`).
    pub towards: Side,
    /// Why.
    pub reason: DropReason,
    /// What the caller gave.
    pub payload: P,
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// A policer's action.
    Police,
    /// The queue was full.
    Tail,
    /// The flow's share of the queue was full.
    Flow,
    /// The interface is shut down.
    Disabled,
    /// A sender faster than its link ran too far ahead of it ([`crate::defaults::LINK_BACKLOG_FRAMES`]).
    Overrun,
}

impl DropReason {
    /// Every reason, in the order of [`PortTotals`].
    pub const ALL: [DropReason; 5] =
        [DropReason::Police, DropReason::Tail, DropReason::Flow, DropReason::Disabled, DropReason::Overrun];
}

/// What comes out of [`Engine::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A frame leaves.
    Departure(Departure<P>),
    /// A frame was dropped.
    Dropped(Dropped<P>),
}

/// Where all the frames went that one direction of a port was given since the engine was made. `offered = sent + dropped + queued`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// Given to `receive` or `transmit`.
    pub offered: Count,
    /// Gone to the other side: passed inside, or taken up by the serialiser.
    pub sent: Count,
    /// Dropped, in the order of [`DropReason::ALL`].
    pub dropped: [Count; DropReason::ALL.len()],
    /// Still on the arriving link, or in the queues and the transmit ring.
    pub queued: Count,
    /// Arrivals that were earlier than a decision already taken (see [`Engine`] on time).
    pub late_arrivals: u64,
    /// By how much at most, in nanoseconds.
    pub latest_arrival_ns: u64,
}

/// The engine of one router. `P` is whatever the caller wants back with a frame: its bytes, a buffer's number, nothing.
///
/// # Order of calls
/// [`Engine::new`] with the wiring, then [`Engine::configure`] (until then each port is up with its default queueing), then any
/// number of [`receive`](Engine::receive) and [`transmit`](Engine::transmit), and [`poll`](Engine::poll) whenever
/// [`next_deadline`](Engine::next_deadline) has come, and at latest after each batch of frames (drops do not make a deadline).
/// After `receive` or `transmit` ask for the deadline again.
///
/// # Time
/// The engine works in event time.
///
/// - The *arrival* of a frame is when it really came: the kernel's time stamp, for `transmit` the departure time with which the frame left the
///   engine towards the inside. It may be earlier than the `now` of polls that came before. Within a port and a direction arrivals must not
///   decrease; one that does is taken for as late as the one before it.
/// - Policers and markings use the arrival. The serialiser starts a frame at its arrival or when the link is free, whichever is later, and a
///   departure's `time` is computed from there. So rates never drift, however late the caller is.
/// - A decision is taken as late as possible: `poll(now)` settles what must be settled for the departures due by `now`, no more. A queueing
///   decision at some moment is thus settled one line time (plus propagation) after it, and arrivals that come to the engine before that
///   find the port as a punctual caller would have found it. An arrival earlier than a settled decision enters the queue at the moment of that
///   decision; [`PortTotals::late_arrivals`] counts those. To allow for a kernel that forwards slowly, poll with a `now` a little in the past.
/// - `now` of `poll`, `configure`, `counters` and `clear` should not decrease; an earlier one settles nothing.
pub struct Engine<P> {
    names: BTreeMap<String, PortId>,
    ports: Vec<crate::config::PortConfig>,
    outputs: Vec<Output<P>>,
    start: Time,
}

#[allow(unused_variables)]
impl<P> Engine<P> {
    /// An engine with the given wiring, not yet configured.
    ///
    /// # Errors
    /// The path and reason when a link has no rate or there are too many ports.
    pub fn new(ports: &PortsConfig, start: Time) -> Result<Engine<P>, ConfigError> {
        let names = ports.ports.keys().enumerate().map(|(i, name)| (name.clone(), PortId(i as u16))).collect();
        Ok(Engine { names, ports: ports.ports.values().cloned().collect(), outputs: Vec::new(), start })
    }

    /// The ports, in the order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, &str)> {
        self.names.iter().map(|(name, id)| (*id, name.as_str()))
    }

    /// The port of that IOS name.
    pub fn port(&self, name: &str) -> Option<PortId> {
        self.names.get(name).copied()
    }

    /// How frames count on a port's link: the argument of [`crate::packet::parse`].
    ///
    /// # Panics
    /// If there is no such port.
    pub fn framing(&self, port: PortId) -> Framing {
        self.ports[usize::from(port.0)].link.framing
    }

    /// Puts a complete configuration in force, all of it or nothing.
    ///
    /// An attached policy-map whose classes and figures did not change keeps its queues, token buckets and counters. Another one
    /// starts at zero; packets that wait are classified again by it, and count as offered to it.
    ///
    /// # Errors
    /// The path and reason of the first thing that cannot be used; then nothing has changed.
    pub fn configure(&mut self, now: Time, config: &RouterConfig) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The configuration in force.
    pub fn config(&self) -> Option<&RouterConfig> {
        None
    }

    /// A frame came from the link of `port`. It passes the link's clock (unless its sender is paced) and the input policy and comes
    /// out on [`Side::Inside`].
    ///
    /// # Panics
    /// If there is no such port.
    pub fn receive(&mut self, arrival: Time, port: PortId, descriptor: Descriptor, payload: P) {
        self.outputs.push(Output::Departure(Departure {
            time: arrival,
            port,
            side: Side::Inside,
            descriptor,
            payload,
        }));
    }

    /// The router's own IP stack sends a frame by `port`. It passes the output policy, queues, ring and link and comes out on [`Side::Wire`].
    ///
    /// # Panics
    /// If there is no such port.
    pub fn transmit(&mut self, arrival: Time, port: PortId, descriptor: Descriptor, payload: P) {
        self.outputs.push(Output::Departure(Departure { time: arrival, port, side: Side::Wire, descriptor, payload }));
    }

    /// Appends to `into` what has left by `now` or was dropped. In order of time within a port and side; not across ports.
    pub fn poll(&mut self, now: Time, into: &mut Vec<Output<P>>) {
        into.append(&mut self.outputs);
    }

    /// When [`poll`](Engine::poll) will next have something to do. It may then turn out to yield nothing. `None`: not before the next frame.
    pub fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// What was counted, as of `now`. `interface` picks one.
    pub fn counters(&mut self, now: Time, interface: Option<PortId>) -> Counters {
        Counters {
            time_ns: now.0,
            uptime_ns: now.since(self.start).0,
            interfaces: BTreeMap::new(),
            access_lists: BTreeMap::new(),
        }
    }

    /// Zeroes the counters of one interface or, with `None`, of all and of the access lists. Queues and token buckets stay.
    pub fn clear(&mut self, now: Time, interface: Option<PortId>) {}

    /// The configured policy-maps with every default filled in.
    pub fn resolve(&self) -> Resolved {
        Resolved { policy_maps: BTreeMap::new() }
    }

    /// Where the frames of one direction of a port went ([`Side::Inside`]: those given to `receive`). [`Engine::clear`] does not touch these.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn totals(&self, port: PortId, side: Side) -> PortTotals {
        PortTotals::default()
    }
}
