//! Forwarding: packets in transit leave by the port and to the neighbour that the router's kernel would choose.
//!
//! The kernel of the router's namespace is authoritative. Its links, addresses, routes, neighbours, rules and settings
//! are followed by netlink ([`mirror`], [`kernel`]); plain packets are forwarded here, and everything else is the
//! kernel's: packets for the router itself, at the end of their life, longer than the next link takes, to neighbours
//! that are not known, with options, and all packets while something is in use that is not known here (`watch`).

pub mod fib;
pub mod kernel;
pub mod mirror;
pub(crate) mod netlink;
pub mod packet;
mod watch;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};

use netlink_packet_core::ParseableParametrized;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use schemars::JsonSchema;
use serde::Serialize;

use self::kernel::{Link, Way};
use self::mirror::Mirror;
use self::netlink::{dump, LINKS};
use self::packet::{Mac, Packet};
use self::watch::Watch;
use crate::namespace::Namespace;

/// Number of flows with a stored path: a power of two.
const FLOWS: usize = 1024;

/// A side of a port that leads to the router's kernel: of the port itself, or of one of its subinterfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inside {
    /// Index of the port.
    pub port: u16,
    /// Index of the subinterface.
    pub subinterface: Option<u16>,
}

/// Forwarding of packets in transit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ForwardingHealth {
    /// Packets that the daemon has forwarded itself.
    pub forwarded: u64,
    /// Frames that it has handed to the router's kernel: for the router itself, and those that only the kernel can
    /// forward.
    pub handed_to_kernel: u64,
    /// Reason why the kernel forwards all packets; null while the daemon does.
    pub through_kernel: Option<String>,
    /// Number of requests to the kernel for all its routes.
    pub dumps: u64,
    /// Number of overflows of the kernel's notifications, after which everything had to be requested again.
    pub overruns: u64,
}

/// The path of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    generation: u64,
    input: Inside,
    to: Mac,
    source: IpAddr,
    destination: IpAddr,
    output: Inside,
    way: Way,
}

/// Versions of the state from which the insides were computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    dumps: u64,
    trouble: Option<&'static str>,
    version: u64,
}

/// Forwards packets between the insides of the ports.
#[derive(Debug)]
pub struct Forwarding {
    mirror: Option<Mirror>,
    watch: Option<Watch>,
    /// Namespace of the ports.
    outside: Namespace,
    /// The insides with their numbers in the daemon's namespace.
    insides: Vec<(Inside, u32)>,
    /// Numbers in the router's namespace, with the insides.
    links: HashMap<Inside, u32>,
    outputs: HashMap<u32, Inside>,
    /// Reason why the kernel currently forwards everything.
    reason: Option<String>,
    /// State from which the above was computed.
    seen: Seen,
    /// The version of the watch at the last complete request.
    asked: u64,
    flows: Box<[Option<Flow>]>,
    forwarded: u64,
    handed: u64,
    /// Dumps and overruns before the last clearing.
    before: (u64, u64),
}

impl Forwarding {
    /// Opens the mirror of a namespace's kernel, for ports in the namespace `outside`. If that fails, the kernel
    /// forwards everything, and the health reports the reason.
    pub fn open(namespace: &Namespace, outside: Namespace) -> Self {
        let opened = match namespace {
            Namespace::None => Err("the router's network namespace is not known (--kernel-netns)".to_owned()),
            Namespace::Other(_) => Mirror::open(namespace)
                .and_then(|mirror| Ok((mirror, Watch::start(namespace)?)))
                .map_err(|error| format!("cannot follow changes of the router's kernel: {error}")),
        };
        let (mirror, watch, broken) = match opened {
            Ok((mirror, watch)) => (Some(mirror), Some(watch), None),
            Err(broken) => (None, None, Some(broken)),
        };
        Self {
            mirror,
            watch,
            outside,
            reason: broken,
            insides: Vec::new(),
            links: HashMap::new(),
            outputs: HashMap::new(),
            seen: Seen::default(),
            asked: 0,
            flows: vec![None; FLOWS].into_boxed_slice(),
            forwarded: 0,
            handed: 0,
            before: (0, 0),
        }
    }

    /// Returns the descriptor that is readable when the kernel has messages.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.mirror.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Sets the inside interfaces of the ports, with their numbers in the daemon's namespace.
    pub fn attach(&mut self, insides: impl Iterator<Item = (Inside, u32)>) {
        self.insides = insides.collect();
        self.bind();
    }

    /// Processes the kernel's messages.
    pub fn follow(&mut self) {
        let (Some(mirror), Some(watch)) = (&mut self.mirror, &self.watch) else { return };
        let version = watch.version();
        if version != self.asked {
            // The watch may have found a setting that the mirror read earlier.
            if self.asked != 0 {
                mirror.renew();
            }
            self.asked = version;
        }
        mirror.follow();
        if self.seen != (Seen { dumps: mirror.dumps(), trouble: mirror.trouble(), version }) {
            self.bind();
        }
    }

    /// Finds the insides in the router's namespace, and checks it for unknown features.
    fn bind(&mut self) {
        let (Some(mirror), Some(watch)) = (&mut self.mirror, &self.watch) else { return };
        let trouble = mirror.trouble();
        self.seen = Seen { dumps: mirror.dumps(), trouble, version: watch.version() };
        self.links.clear();
        self.outputs.clear();
        self.flows.fill(None);
        let Some(kernel) = mirror.kernel() else {
            self.reason = trouble.map(str::to_owned);
            return;
        };
        let peers = match self.outside.visit().and_then(|()| peers()) {
            Ok(peers) => peers,
            Err(error) => {
                self.reason = Some(format!("the ports' interfaces are unknown: {error}"));
                return;
            }
        };
        for (inside, number) in &self.insides {
            let link = peers.get(number).and_then(|peer| kernel.other_end(*number, *peer));
            if let Some(link) = link {
                self.links.insert(*inside, link);
                self.outputs.insert(link, *inside);
            }
        }
        self.reason = match watch.found() {
            None => Some("the other functions of the kernel are not known yet".to_owned()),
            Some(found) => found.unknown.or_else(|| kernel.unknown(self.outputs.keys().copied())),
        };
    }

    /// Returns the inside by which a frame from `input` leaves, and its new headers; `None` if the kernel must forward
    /// it.
    pub fn way(&mut self, input: Inside, frame: &[u8]) -> Option<(Inside, Packet, Way)> {
        let found = self.find(input, frame);
        match found {
            Some(_) => self.forwarded += 1,
            None => self.handed += 1,
        }
        found
    }

    fn find(&mut self, input: Inside, frame: &[u8]) -> Option<(Inside, Packet, Way)> {
        if self.reason.is_some() {
            return None;
        }
        let mirror = self.mirror.as_mut()?;
        let packet = Packet::of(frame)?;
        let generation = mirror.generation();
        let flow = &mut self.flows[slot(&packet)];
        let known = flow.filter(|known| {
            (known.generation, known.input) == (generation, input)
                && (known.source, known.destination) == (packet.source, packet.destination)
        });
        let (output, way) = match known {
            // The kernel checks the frame's address.
            Some(known) if known.to == packet.to => (known.output, known.way),
            _ => {
                let way = mirror.kernel()?.way(*self.links.get(&input)?, &packet)?;
                let output = *self.outputs.get(&way.link)?;
                let Packet { to, source, destination, .. } = packet;
                *flow = Some(Flow { generation, input, to, source, destination, output, way });
                (output, way)
            }
        };
        (packet.length <= way.mtu).then_some((output, packet, way))
    }

    /// Returns the counters and state of forwarding.
    pub fn health(&self) -> ForwardingHealth {
        let (dumps, overruns) = self.totals();
        ForwardingHealth {
            forwarded: self.forwarded,
            handed_to_kernel: self.handed,
            through_kernel: self.reason.clone(),
            dumps: dumps - self.before.0,
            overruns: overruns - self.before.1,
        }
    }

    /// Restarts the counters.
    pub fn clear(&mut self) {
        self.before = self.totals();
        (self.forwarded, self.handed) = (0, 0);
    }

    fn totals(&self) -> (u64, u64) {
        self.mirror.as_ref().map_or((0, 0), |mirror| (mirror.dumps(), mirror.overruns()))
    }
}

/// Returns the index at which the path of a flow is stored. Forced collisions of flows only cost a lookup each.
fn slot(packet: &Packet) -> usize {
    let word = |address: IpAddr| match address {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            bits as u64 ^ (bits >> 64) as u64
        }
    };
    let mixed = (word(packet.source) ^ word(packet.destination).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % FLOWS
}

/// Returns the numbers of the other ends of the pairs in this thread's namespace.
fn peers() -> io::Result<HashMap<u32, u32>> {
    let mut peers = HashMap::new();
    dump(NETLINK_ROUTE, LINKS, |kind, body| {
        if let Ok(RouteNetlinkMessage::NewLink(link)) = RouteNetlinkMessage::parse_with_param(body, kind) {
            peers.insert(link.header.index, Link::of(&link).peer);
        }
    })?;
    Ok(peers)
}
