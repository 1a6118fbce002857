//! Input of a simulation: the JSON document that `docs/internals/simulator.md` describes, as types.
//!
//! Reading checks the shape (unknown keys are refused); [`crate::Simulation::new`] checks the meaning.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use qos_core::config::{JitterConfig, LossConfig, RouterConfig};
use qos_core::wire::Framing;
use qos_core::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tcp::{CongestionControl, Profile};

/// The version of the format of scenario and result.
pub const FORMAT: u32 = 1;

/// Network, its traffic, and its observations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// [`FORMAT`].
    pub format: u32,
    /// Seed of all random draws without a separate seed.
    #[serde(default)]
    pub seed: u64,
    /// Wall-clock time of virtual time 0 in captures and counters, in nanoseconds since 1970.
    #[serde(default)]
    pub epoch_ns: u64,
    /// Time between two samples of the routers' counters.
    #[serde(default = "a_second")]
    pub sample_ns: u64,
    /// Additional virtual times of samples.
    #[serde(default)]
    pub sample_at_ns: Vec<u64>,
    /// Time after the end of the traffic during which the run waits for packets in transit.
    #[serde(default = "thirty_seconds")]
    pub drain_ns: u64,
    /// Maximum delay before a host hands a packet to its interface: random from 0 to this, in order. Null: the time of
    /// a full-sized frame on the host's link. Without it, deterministic senders would synchronise (S. Floyd and V.
    /// Jacobson, "On traffic phase effects in packet-switched gateways", 1992).
    pub host_jitter_ns: Option<u64>,
    /// Period of the hosts' clock, at whose ticks the timers of their TCP expire, as in Linux's timer wheel (CONFIG_HZ;
    /// 250 Hz by default). Its initial phase is random for each host. 0: timers expire exactly.
    #[serde(default = "four_milliseconds")]
    pub tick_ns: u64,
    /// Maximum delay of the start of each flow and probe: random from 0 to this.
    #[serde(default = "ten_milliseconds")]
    pub start_jitter_ns: u64,
    /// Hosts and routers by name.
    pub nodes: BTreeMap<String, NodeConfig>,
    /// Links, each between two nodes.
    pub links: Vec<Link>,
    /// The traffic.
    pub flows: Vec<Flow>,
    /// IP SLA operations that run for a given time, and their measurements at its end.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// Captures.
    #[serde(default)]
    pub captures: Vec<Capture>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Kind of the node.
    pub kind: NodeKind,
    /// Static routes in addition to those to the links' networks.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// TCP of a host; that of current Linux if absent.
    pub tcp: Option<Profile>,
    /// Configuration of a router, in the format of the control protocol's `configure`; ports with default queueing if
    /// absent.
    pub configuration: Option<RouterConfig>,
    /// Nanoseconds that a router's process level takes for its own packets or packets addressed to it
    /// (`docs/internals/control-protocol.md`); none by default.
    pub process_ns: Option<u64>,
    /// The node's own probes and its responder, as in the control protocol's `configure`.
    pub ip_sla: Option<ip_sla::Config>,
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Sends and receives; never forwards.
    Host,
    /// Forwards by the engine.
    Router,
}

/// A static route: to a next hop, out of an interface, or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destinations.
    #[schemars(with = "String")]
    pub prefix: IpNet,
    /// The next hop: the address of the other end of one of the node's links.
    pub via: Option<IpAddr>,
    /// An interface of the node.
    pub interface: Option<String>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Unique among the links.
    pub name: String,
    /// Bits per second on the wire, framing included.
    pub rate_bps: u64,
    /// Framing of packets.
    pub framing: Framing,
    /// Propagation delay, each way.
    #[serde(default)]
    pub delay_ns: u64,
    /// Variation of the delay.
    pub jitter: Option<JitterConfig>,
    /// Loss of frames.
    pub loss: Option<LossConfig>,
    /// The two ends.
    pub ends: Vec<LinkEnd>,
    /// VLANs on the link between two routers, each from a subinterface to a subinterface.
    #[serde(default)]
    pub vlans: Vec<LinkVlan>,
}

/// A VLAN on a link between two routers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkVlan {
    /// VLAN number, as in both routers' configurations.
    pub vlan: u16,
    /// Frames are untagged.
    #[serde(default)]
    pub native: bool,
    /// The two subinterfaces, in the order of the link's ends.
    pub ends: Vec<VlanEnd>,
}

/// A subinterface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VlanEnd {
    /// Name, as in the router's configuration.
    pub interface: String,
    /// Address, with the length of the network's prefix.
    #[schemars(with = "String")]
    pub address: Ipv4Net,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEnd {
    /// A name under `nodes`.
    pub node: String,
    /// The interface's name, unique on the node.
    pub interface: String,
    /// IPv4 address of the interface, with the prefix length of its network. One of the two families is needed if the
    /// link has no VLANs; both ends have the same ones.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub address: Option<Ipv4Net>,
    /// IPv6 address.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub ipv6_address: Option<Ipv6Net>,
    /// Seed of jitter and loss at this end's port (`docs/internals/control-protocol.md`); follows from the scenario's
    /// seed if absent.
    pub seed: Option<u64>,
}

impl LinkEnd {
    /// Returns the addresses, each with the name of its field.
    pub fn addresses(&self) -> impl Iterator<Item = (&'static str, IpNet)> {
        let ipv4 = self.address.map(|address| ("address", IpNet::V4(address)));
        ipv4.into_iter().chain(self.ipv6_address.map(|address| ("ipv6_address", IpNet::V6(address))))
    }
}

/// One flow: `streams` parallel connections or datagram floods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Unique among the flows.
    pub name: String,
    /// Transport protocol.
    pub protocol: Protocol,
    /// The sending host.
    pub source: String,
    /// The receiving host.
    pub destination: String,
    /// Address of the sending host; its only one if absent.
    pub source_address: Option<IpAddr>,
    /// Address of the receiving host, of the same family; its only one if absent.
    pub destination_address: Option<IpAddr>,
    /// The receiver's port; null with UDP: drawn for each datagram from those of `flood`.
    pub port: Option<u16>,
    /// Source port of the first stream, followed by those of the others; from 32768 up if absent.
    pub client_port: Option<u16>,
    /// Parallel streams.
    #[serde(default = "one")]
    pub streams: u32,
    /// Start of the first stream, after the start of the run.
    #[serde(default)]
    pub start_ns: u64,
    /// Duration of each stream. Null: until the flows that have a duration have ended.
    pub duration_ns: Option<u64>,
    /// A stream that has not ended this long after the flow's time is abandoned; the run waits for `drain_ns` if
    /// absent.
    pub cut_off_ns: Option<u64>,
    /// Code point of every packet.
    #[serde(default)]
    pub dscp: u8,
    /// Length of the intervals of the result.
    #[serde(default = "a_second")]
    pub interval_ns: u64,
    /// Bits per second of each stream; see `rate_layer`. TCP: the offered rate of the application; unlimited by
    /// default.
    pub rate_bps: Option<u64>,
    /// Bytes that `rate_bps` counts.
    #[serde(default)]
    pub rate_layer: RateLayer,
    /// Time between two datagrams of a stream, or between two writes over TCP, in place of `rate_bps`.
    pub gap_ns: Option<u64>,
    /// UDP: payload of a datagram; null: drawn for each from those of `flood`. TCP with a rate or
    /// gap: bytes per write of the application (131072).
    pub payload_bytes: Option<u32>,
    /// UDP: bytes of the frames of a source, such as those of video, in a cycle; in place of single datagrams. Each is
    /// sent at once as datagrams of `payload_bytes`, the last one shorter, `gap_ns` after the frame before.
    #[serde(default)]
    pub frames: Vec<u32>,
    /// Maximum random delay of the start of each stream, from 0 to this by `seed`, as with `flood`; the stream ends
    /// with the flow.
    #[serde(default)]
    pub spread_ns: u64,
    /// UDP: streams take turns at equal intervals, as in `flood`, instead of sending at the same times.
    #[serde(default)]
    pub take_turns: bool,
    /// Seed of the starts, and over UDP of the values drawn for each datagram; follows from the scenario's seed by
    /// default.
    pub seed: Option<u64>,
    /// TCP: congestion control of the sender, instead of that of the host's profile.
    pub congestion_control: Option<CongestionControl>,
    /// TCP: requested socket buffers at both ends (`-w`); automatic sizing by Linux if absent.
    pub window_bytes: Option<u64>,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Protocol {
    Tcp,
    Udp,
}

/// Bytes that a flow's rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateLayer {
    /// Bytes of the payload (iperf).
    #[default]
    Payload,
    /// Bytes of IP packets (flood).
    Ip,
}

/// An IP SLA operation that begins at a given time, as after `ip sla schedule … start-time now life forever`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Unique among the probes.
    pub name: String,
    /// A name under `nodes`.
    pub node: String,
    /// Number of an operation of the node, which has no schedule.
    pub operation: u32,
    /// Start time, after the start of the run.
    #[serde(default)]
    pub start_ns: u64,
    /// Reading time of its measurements, after the start of the run. It continues until the traffic ends.
    pub end_ns: u64,
}

/// Interface at which packets are written as pcapng.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Unique among the captures.
    pub name: String,
    /// A name under `nodes`.
    pub node: String,
    /// An interface of the node.
    pub interface: String,
    /// Stored bytes of each frame.
    #[serde(default = "snaplen")]
    pub snaplen: u32,
    /// Selected packets: all (empty), `ip`, `ip6`, `tcp`, `udp`, `icmp` or `icmp6`.
    #[serde(default)]
    pub filter: String,
    /// The file to write.
    pub file: String,
}

fn a_second() -> u64 {
    1_000_000_000
}

fn thirty_seconds() -> u64 {
    30_000_000_000
}

fn four_milliseconds() -> u64 {
    4_000_000
}

fn ten_milliseconds() -> u64 {
    10_000_000
}

fn one() -> u32 {
    1
}

fn snaplen() -> u32 {
    128
}

impl Scenario {
    /// Reads a scenario from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    pub fn from_json(text: &str) -> Result<Scenario, ConfigError> {
        qos_core::config::from_json(text)
    }
}
