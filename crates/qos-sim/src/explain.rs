//! Question about one packet at a router, and the answer: the router's counters, token buckets and queues before and
//! after it, and its departure time. The JSON documents that `docs/internals/simulator.md` describes, as types.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use qos_core::counters::{AccessEntryCounters, ClassBuckets, InterfaceCounters};
use qos_core::frame::flow_key;
use qos_core::{ConfigError, Descriptor, Network as Family, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::{Network, LONGEST_NS};
use crate::scenario::{NodeKind, Scenario};

/// A packet that arrives at a router at a given time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// A name under `nodes`.
    pub router: String,
    /// Arrival time of the packet's last bit, after the start of the run.
    #[serde(default)]
    pub at_ns: u64,
    /// The packet.
    pub packet: QuestionPacket,
    /// Input port. Null: none; it passes no input policy, and the output side treats it as forwarded.
    pub input: Option<Place>,
    /// The router's routes. The longest prefix that contains the destination decides; of equal ones the first.
    pub routes: Vec<QuestionRoute>,
    /// The router's own addresses.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
}

/// A port of the router, or a VLAN there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The interface at the end of a link.
    pub interface: String,
    /// The VLAN of a frame's tag.
    pub vlan: Option<u16>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionRoute {
    /// Destinations.
    #[schemars(with = "String")]
    pub prefix: IpNet,
    /// Output port. Null: the packet is dropped.
    pub output: Option<Place>,
}

/// The headers of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionPacket {
    /// IP protocol.
    pub protocol: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// Source port with TCP and UDP.
    pub source_port: Option<u16>,
    /// Destination port with TCP and UDP.
    pub destination_port: Option<u16>,
    /// Type with ICMP.
    pub icmp_type: Option<u8>,
    /// Code with ICMP.
    pub icmp_code: Option<u8>,
    /// TCP: it acknowledges or resets.
    #[serde(default)]
    pub established: bool,
    /// Code point.
    #[serde(default)]
    pub dscp: u8,
    /// Explicit congestion notification.
    #[serde(default)]
    pub ecn: u8,
    /// Class of service of the tag on input.
    #[serde(default)]
    pub cos: u8,
    /// Bytes of the IP packet.
    pub length: u32,
}

/// Fate of the packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Arrival time, after the start of the run.
    pub at_ns: u64,
    /// Treatment on input; null without an input port.
    pub input: Option<InputPassage>,
    /// Index of the route that it took; null if it reached none.
    pub route: Option<usize>,
    /// End of its path.
    pub end: End,
    /// Treatment on output; null if it did not reach the output.
    pub output: Option<OutputPassage>,
}

/// End of a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It left by the output interface.
    Sent,
    /// The output interface dropped it.
    DroppedAtOutput,
    /// The input interface dropped it.
    DroppedAtInput,
    /// It was addressed to the router.
    Received,
    /// No route has its destination.
    NoRoute,
    /// The route of the packet discards packets.
    NullRoute,
    /// It is still waiting at the end of the run.
    Waiting,
}

/// State of an interface at some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceState {
    /// Counters and queues.
    pub interface: InterfaceCounters,
    /// Tokens in the buckets of its policy in this direction, a parent class before its children.
    pub buckets: Vec<ClassBuckets>,
    /// Hits of all access lists.
    pub access_lists: BTreeMap<String, Vec<AccessEntryCounters>>,
}

/// Fields of a packet at some point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Marks {
    pub dscp: u8,
    pub ecn: u8,
    pub cos: u8,
    pub qos_group: u16,
    pub discard_class: u8,
    /// VLAN of its tag.
    pub vlan: Option<u16>,
    /// Bytes that policers and queues count.
    pub counted_bytes: u32,
    /// Bytes that it takes on the wire.
    pub line_bytes: u32,
}

impl Marks {
    pub(crate) fn of(descriptor: &Descriptor) -> Marks {
        let Descriptor { dscp, ecn, cos, qos_group, discard_class, counted_len, line_len, .. } = *descriptor;
        let vlan = (descriptor.tags > 0).then_some(descriptor.vlan);
        Marks { dscp, ecn, cos, qos_group, discard_class, vlan, counted_bytes: counted_len, line_bytes: line_len }
    }
}

/// Treatment of a packet on input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputPassage {
    /// The packet on arrival.
    pub came: Marks,
    /// The packet after input.
    pub went: Marks,
    /// Drop reason, by the name of the counters.
    pub dropped: Option<String>,
    /// The interface before it.
    pub before: InterfaceState,
    /// The interface after it.
    pub after: InterfaceState,
}

/// Treatment of a packet on output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputPassage {
    /// The packet on arrival.
    pub came: Marks,
    /// The packet at its departure; null if it did not leave.
    pub left: Option<Marks>,
    /// Drop reason, by the name of the counters.
    pub dropped: Option<String>,
    /// Time at which it was dropped or reached the other end of the link, after the start of the run.
    pub time_ns: Option<u64>,
    /// Time at which its last bit was on the wire; null if it was not, or if the link's delay varies.
    pub sent_ns: Option<u64>,
    /// The interface before it.
    pub before: InterfaceState,
    /// The interface just after the arrival of the packet, which waits, has left its queue, or was dropped.
    pub after: InterfaceState,
}

impl Question {
    /// Reads a question from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    pub fn from_json(text: &str) -> Result<Question, ConfigError> {
        qos_core::config::from_json(text)
    }

    /// Returns the packet, before a link frames it.
    fn descriptor(&self) -> Descriptor {
        let packet = &self.packet;
        let mut descriptor = Descriptor {
            network: if packet.source.is_ipv6() { Family::Ipv6 } else { Family::Ipv4 },
            network_len: packet.length,
            protocol: packet.protocol,
            source: packet.source,
            destination: packet.destination,
            source_port: packet.source_port,
            destination_port: packet.destination_port,
            icmp: packet.icmp_type.map(|kind| (kind, packet.icmp_code.unwrap_or(0))),
            established: packet.established,
            dscp: packet.dscp,
            ecn: packet.ecn,
            ..Descriptor::UNKNOWN
        };
        descriptor.flow = flow_key(&descriptor);
        descriptor
    }

    /// Finds the named objects in the network.
    pub(crate) fn resolve(&self, scenario: &Scenario, network: &Network, start: Time) -> Result<Asked, ConfigError> {
        let wrong = |path: &str, message: String| Err(ConfigError::new(path, message));
        let node = network.node(&self.router, "router")?;
        let config = &scenario.nodes[&self.router];
        if config.kind != NodeKind::Router {
            return wrong("router", format!("found {:?}, a host, expected a router", self.router));
        }
        if config.configuration.as_ref().is_some_and(|config| config.switch.is_some()) {
            return wrong("router", format!("found {:?}, a switch, expected a router", self.router));
        }
        if self.at_ns > LONGEST_NS {
            return wrong("at_ns", format!("found more than {LONGEST_NS} ns, the longest time"));
        }
        let packet = &self.packet;
        if packet.source.is_ipv4() != packet.destination.is_ipv4() {
            return wrong(
                "packet.destination",
                format!("found {}, expected the same address family as the source", packet.destination),
            );
        }
        if packet.dscp > 63 || packet.ecn > 3 || packet.cos > 7 || packet.length > 65_535 {
            return wrong("packet", "found a value out of range in dscp, ecn, cos or length".to_owned());
        }
        let find = |place: &Place, path: String| match network.interface(node, &place.interface) {
            Some(end) => Ok(Port { end: network.physical(end), vlan: place.vlan }),
            None => {
                let message = format!("found {:?}, not an interface with a link on {}", place.interface, self.router);
                Err(ConfigError::new(path, message))
            }
        };
        let input = self.input.as_ref().map(|place| find(place, "input.interface".into())).transpose()?;
        let mut routes = Vec::new();
        for (number, route) in self.routes.iter().enumerate() {
            let output = route.output.as_ref().map(|place| find(place, format!("routes[{number}].output.interface")));
            routes.push((route.prefix.trunc(), output.transpose()?));
        }
        let best = routes.iter().enumerate().filter(|(_, (prefix, _))| prefix.contains(&packet.destination));
        // For equal values `max_by_key` returns the last one.
        let best = best.rev().max_by_key(|(_, (prefix, _))| prefix.prefix_len());
        let next = match best {
            _ if self.addresses.contains(&packet.destination) => Next::Here,
            None => Next::Nowhere,
            Some((route, (_, output))) => Next::By(route, *output),
        };
        let cos = packet.cos;
        Ok(Asked { node, at: Time(start.0 + self.at_ns), start, descriptor: self.descriptor(), cos, input, next })
    }
}

/// A port of the router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// The end of a link.
    pub end: usize,
    /// The VLAN of a frame's tag.
    pub vlan: Option<u16>,
}

/// Destination of the packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// To the router.
    Here,
    /// No route.
    Nowhere,
    /// By a route, by index, to a port.
    By(usize, Option<Port>),
}

/// A question with all its references resolved.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub node: usize,
    pub at: Time,
    pub start: Time,
    pub descriptor: Descriptor,
    pub cos: u8,
    pub input: Option<Port>,
    pub next: Next,
}
