//! The configuration: what `docs/control-protocol.md` describes, as types.
//!
//! Reading checks the shape (unknown keys are refused); [`crate::Engine::configure`] checks the meaning.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::switch::config::{SwitchConfig, SwitchPortConfig, Trust};

mod queueing;

pub use queueing::{
    BandwidthConfig, InterfaceFairQueue, PriorityConfig, PriorityUnit, RandomDetectBasis, RandomDetectConfig,
    RandomDetectThreshold,
};

/// The version of the configuration format that this crate reads.
pub const FORMAT: u32 = 1;

/// A configuration that cannot be used: where and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where in the configuration, e.g. `policy_maps.Police.classes[0].police.bc`; empty for the whole.
    pub path: String,
    /// What was found, what was expected and what to do.
    pub message: String,
}

impl ConfigError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for ConfigError {}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| path_error(&error))?;
    deserializer.end().map_err(|error| ConfigError::new("", error.to_string()))?;
    Ok(value)
}

fn path_error(error: &serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
    let path = error.path().to_string();
    ConfigError::new(if path == "." { String::new() } else { path }, error.inner().to_string())
}

// ---------------------------------------------------------------------------------------------------------------- wiring

/// The wiring of the ports: hardware, given once when the engine is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortsConfig {
    /// Ports by their IOS name, e.g. `FastEthernet0/1`.
    pub ports: BTreeMap<String, PortConfig>,
    /// Seed of the flow hash of fair queueing.
    #[serde(default)]
    pub seed: u64,
}

impl PortsConfig {
    /// Reads the wiring from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    pub fn from_json(text: &str) -> Result<PortsConfig, ConfigError> {
        from_json(text)
    }
}

/// The wiring of one port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortConfig {
    /// The interface that leads to the router's own IP stack. Two ports of which each names the other's `wire` here are a line: what
    /// comes from the one link leaves on the other, after the first one's rate, delay, jitter and loss. The engine only carries it.
    pub inside: String,
    /// The interface that is the end of the link. The engine only carries it.
    pub wire: String,
    /// The link.
    pub link: LinkConfig,
    /// The other end serialises its frames on the link's clock already (it is an engine too), so that arrival times are used as they are.
    pub paced_by_peer: bool,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Bits per second on the wire, framing included.
    pub rate_bps: u64,
    /// How frames are framed on the wire.
    pub framing: Framing,
    /// Propagation delay in nanoseconds, each way.
    #[serde(default)]
    pub delay_ns: u64,
    /// How much the delay varies; null for not at all.
    #[serde(default)]
    pub jitter: Option<JitterConfig>,
    /// Which frames are lost on the way; null for none.
    #[serde(default)]
    pub loss: Option<LossConfig>,
    /// Seed of jitter and loss. Each direction of the port draws numbers of its own; give each port another seed.
    #[serde(default)]
    pub seed: u64,
}

/// How much the delay of a link varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterConfig {
    /// How the delays are distributed.
    pub distribution: JitterDistribution,
    /// Size in nanoseconds: what the distribution makes of it.
    pub ns: u64,
    /// Correlation of each frame with the one before, of the normal sequence behind the delays (a Gaussian copula): at least 0, less than 1.
    #[serde(default)]
    pub correlation: f64,
    /// Frames may overtake one another. Where they may not, one that would waits for the one before it, which makes the mean delay longer
    /// when frames come closer together than the jitter.
    #[serde(default)]
    pub reorder: bool,
}

/// How delays are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JitterDistribution {
    /// Evenly from delay - size to delay + size.
    Uniform,
    /// Normally around the delay, the size being the standard deviation; cut at [`crate::NORMAL_JITTER_CUT`] of them.
    Normal,
    /// The delay is the least, and the size the mean of what is added.
    Exponential,
}

/// Which frames are lost on a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossConfig {
    /// Each with the same probability.
    Random {
        /// From 0 to 1.
        probability: f64,
    },
    /// Bursts: a channel with a good and a bad state (Gilbert 1960, Elliott 1963; the letters are those of Haßlinger and Hohlfeld, MMB 2008,
    /// and of Linux' netem). In the long run p/(p + r) of the frames find it bad, for 1/r frames on end.
    GilbertElliott {
        /// Probability of going from good to bad before a frame.
        p: f64,
        /// Probability of going from bad to good before a frame.
        r: f64,
        /// Probability of loss in the good state (1-k of the sources).
        #[serde(default)]
        loss_good: f64,
        /// Probability of loss in the bad state (1-h of the sources).
        #[serde(default = "certain")]
        loss_bad: f64,
    },
}

fn certain() -> f64 {
    1.0
}

/// How packets are framed on a link: which bytes are counted and which take line time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Ethernet II.
    Ethernet,
    /// PPP over a synchronous serial line.
    Ppp,
    /// Cisco HDLC over a synchronous serial line.
    Hdlc,
}

// --------------------------------------------------------------------------------------------------------- configuration

/// The complete configuration of a router's data plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterConfig {
    /// [`FORMAT`].
    pub format: u32,
    /// The router's name.
    pub router: String,
    /// Which generation of IOS to behave like.
    pub generation: Generation,
    /// Access lists by name or number; the first entry that matches decides, and the end of the list denies.
    #[serde(default)]
    pub access_lists: BTreeMap<String, Vec<AccessListEntry>>,
    /// Class-maps by name.
    #[serde(default)]
    pub class_maps: BTreeMap<String, ClassMap>,
    /// Policy-maps by name.
    #[serde(default)]
    pub policy_maps: BTreeMap<String, PolicyMap>,
    /// Interfaces by IOS name. A port that is not named here is up, with its link's own rate and default queueing.
    #[serde(default)]
    pub interfaces: BTreeMap<String, InterfaceConfig>,
    /// The switch: null for a router.
    #[serde(default)]
    pub switch: Option<SwitchConfig>,
    /// Nanoseconds that process level takes for a packet of the router's own or for the router itself; null: none, and the kernel's
    /// answers count as they come. The engine only carries it to the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_ns: Option<u64>,
    /// The router's own probes; the engine only carries them to the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_sla: Option<ip_sla::Config>,
}

impl RouterConfig {
    /// Reads a configuration from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    pub fn from_json(text: &str) -> Result<RouterConfig, ConfigError> {
        from_json(text)
    }

    /// Reads a configuration from a JSON value.
    ///
    /// # Errors
    /// The path and reason when the value is not of this shape.
    pub fn from_value(value: &serde_json::Value) -> Result<RouterConfig, ConfigError> {
        serde_path_to_error::deserialize(value).map_err(|error| path_error(&error))
    }
}

/// A generation of IOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// 12.4 mainline and 12.4(15)T and before.
    Classic,
    /// The hierarchical queueing framework: 12.4(20)T and later T releases, 15.x.
    Hqf,
}

/// One entry of an extended IPv4 access list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessListEntry {
    /// What a match means.
    pub action: AccessAction,
    /// IP protocol number; null for `ip`.
    #[serde(default)]
    pub protocol: Option<u8>,
    /// Source address.
    pub source: AddressMatch,
    /// Destination address.
    pub destination: AddressMatch,
    /// Source port (TCP and UDP).
    #[serde(default)]
    pub source_port: Option<PortMatch>,
    /// Destination port (TCP and UDP).
    #[serde(default)]
    pub destination_port: Option<PortMatch>,
    /// Differentiated services code point, 0 to 63.
    #[serde(default)]
    pub dscp: Option<u8>,
    /// IP precedence, 0 to 7.
    #[serde(default)]
    pub precedence: Option<u8>,
    /// TCP with ACK or RST set.
    #[serde(default)]
    pub established: bool,
    /// ICMP type.
    #[serde(default)]
    pub icmp_type: Option<u8>,
    /// ICMP code.
    #[serde(default)]
    pub icmp_code: Option<u8>,
    /// Only fragments other than the first.
    #[serde(default)]
    pub fragments: bool,
}

/// What the match of an access list entry means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessAction {
    /// The packet is in the class.
    Permit,
    /// The packet is not in the class.
    Deny,
}

/// An address and the bits of it that do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddressMatch {
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Bits set here are ignored.
    pub wildcard: Ipv4Addr,
}

/// A match of a TCP or UDP port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortMatch {
    /// How to compare.
    pub op: PortOperator,
    /// One or more ports for `eq` and `neq`, one for `gt` and `lt`, first and last for `range`.
    pub ports: Vec<u16>,
}

/// How a port is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortOperator {
    /// One of the ports.
    Eq,
    /// None of the ports.
    Neq,
    /// Greater.
    Gt,
    /// Less.
    Lt,
    /// From the first to the last, inclusive.
    Range,
}

/// A class-map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassMap {
    /// How the criteria combine.
    #[serde(rename = "match")]
    pub combine: MatchMode,
    /// Criteria in configured order; with none nothing matches.
    pub criteria: Vec<Criterion>,
}

/// How criteria combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchMode {
    /// `match-all`.
    All,
    /// `match-any`.
    Any,
}

/// One match statement; `negate` is `match not`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Criterion {
    /// `match any`.
    Any {
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match access-group`.
    AccessGroup {
        /// Name or number.
        name: String,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match [ip] dscp`.
    Dscp {
        /// Code points, 0 to 63.
        values: Vec<u8>,
        /// IPv4 only.
        #[serde(default)]
        ip_only: bool,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match [ip] precedence`.
    Precedence {
        /// Precedences, 0 to 7.
        values: Vec<u8>,
        /// IPv4 only.
        #[serde(default)]
        ip_only: bool,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match cos`.
    Cos {
        /// Values, 0 to 7.
        values: Vec<u8>,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match protocol`.
    Protocol {
        /// The protocol.
        name: ProtocolName,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match packet length`, of the IP packet in bytes.
    PacketLength {
        /// Least, if any.
        #[serde(default)]
        min: Option<u32>,
        /// Greatest, if any.
        #[serde(default)]
        max: Option<u32>,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match input-interface`.
    InputInterface {
        /// IOS name of the interface.
        name: String,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match qos-group`.
    QosGroup {
        /// The group.
        value: u16,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
    /// `match class-map`.
    ClassMap {
        /// Name of the other class-map.
        name: String,
        /// `match not`.
        #[serde(default)]
        negate: bool,
    },
}

/// A protocol recognised by IP protocol number or well-known port (either end).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ProtocolName {
    Icmp,
    Ospf,
    Eigrp,
    Bgp,
    Http,
    SecureHttp,
    Smtp,
    Rip,
    Tcp,
    Udp,
    Ip,
}

/// A policy-map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyMap {
    /// Classes in configured order. `class-default` is always there and last: it is added when missing.
    pub classes: Vec<PolicyClass>,
}

/// One class of a policy-map with its actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyClass {
    /// Name of a class-map, or `class-default`.
    pub name: String,
    /// Markings.
    #[serde(default)]
    pub set: Vec<SetAction>,
    /// Policer.
    #[serde(default)]
    pub police: Option<PoliceConfig>,
    /// Shaper (output only).
    #[serde(default)]
    pub shape: Option<ShapeConfig>,
    /// Length of the class's queue (output only).
    #[serde(default)]
    pub queue_limit: Option<QueueLimit>,
    /// Fair queueing within the class (output only).
    #[serde(default)]
    pub fair_queue: Option<FairQueueConfig>,
    /// What the class is guaranteed (output only).
    #[serde(default)]
    pub bandwidth: Option<BandwidthConfig>,
    /// Low-latency queueing (output only).
    #[serde(default)]
    pub priority: Option<PriorityConfig>,
    /// Weighted random early detection (output only).
    #[serde(default)]
    pub random_detect: Option<RandomDetectConfig>,
    /// Name of the child policy-map.
    #[serde(default)]
    pub service_policy: Option<String>,
    /// `trust` (a switch's input policy only).
    #[serde(default)]
    pub trust: Option<Trust>,
    /// `police aggregate`: name of an aggregate policer (a switch's input policy only).
    #[serde(default)]
    pub police_aggregate: Option<String>,
}

/// One `set` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetAction {
    /// What is set.
    pub field: SetField,
    /// To which value.
    pub value: u16,
}

/// What a `set` command sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetField {
    /// Code point of IPv4 and IPv6, 0 to 63.
    Dscp,
    /// Code point of IPv4 only, 0 to 63.
    IpDscp,
    /// Precedence of IPv4 and IPv6, 0 to 7.
    Precedence,
    /// Precedence of IPv4 only, 0 to 7.
    IpPrecedence,
    /// Class of service of the VLAN tag, 0 to 7.
    Cos,
    /// The router's own group number, 0 to 99.
    QosGroup,
}

/// A rate, absolute or relative to the interface's bandwidth or the parent's shape rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateSpec {
    /// Bits per second.
    Bps(u64),
    /// Per cent, 1 to 100.
    Percent(u32),
}

/// A policer's burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoliceBurst {
    /// Bytes.
    Bytes(u64),
    /// Milliseconds of the rate.
    Ms(u64),
}

/// A shaper's burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShapeBurst {
    /// Bits.
    Bits(u64),
    /// Milliseconds of the rate.
    Ms(u64),
}

/// A policer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoliceConfig {
    /// Committed information rate.
    pub cir: RateSpec,
    /// Committed burst; null for the default.
    #[serde(default)]
    pub bc: Option<PoliceBurst>,
    /// Peak information rate; makes it a two-rate policer.
    #[serde(default)]
    pub pir: Option<RateSpec>,
    /// Excess burst; null for the default.
    #[serde(default)]
    pub be: Option<PoliceBurst>,
    /// What happens to conforming packets; null for transmit.
    #[serde(default)]
    pub conform: Option<Vec<PoliceAction>>,
    /// What happens to exceeding packets; null for drop.
    #[serde(default)]
    pub exceed: Option<Vec<PoliceAction>>,
    /// What happens to violating packets; null for as exceeding ones.
    #[serde(default)]
    pub violate: Option<Vec<PoliceAction>>,
    /// How it was written; affects only how counters are printed.
    #[serde(default)]
    pub form: PoliceForm,
    /// The bucket finds its own size; null for one of `bc`. No IOS has this.
    #[serde(default)]
    pub dynamic: Option<DynamicBucketConfig>,
}

/// A bucket that finds its own size. Null for the default, which [`crate::defaults`] explains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DynamicBucketConfig {
    /// Size at the start.
    #[serde(default)]
    pub initial_bytes: Option<u64>,
    /// Least size; one that holds no full packet would let none pass.
    #[serde(default)]
    pub minimum_bytes: Option<u64>,
    /// Greatest size; by default 1.5 seconds of the rate, or as much as the other two.
    #[serde(default)]
    pub maximum_bytes: Option<u64>,
    /// How often the level is compared while the reaction to a drop is watched: more than a round trip.
    #[serde(default)]
    pub monitoring_ms: Option<u64>,
    /// Without a packet for so long what was watched tells nothing.
    #[serde(default)]
    pub idle_ms: Option<u64>,
    /// The first growths: this share of what overflowed.
    #[serde(default)]
    pub first_growth_percent: Option<u32>,
    /// How many they are.
    #[serde(default)]
    pub first_growths: Option<u32>,
    /// Later growths: this share of what overflowed.
    #[serde(default)]
    pub growth_percent: Option<u32>,
    /// By how much the bucket shrinks.
    #[serde(default)]
    pub shrink_percent: Option<u32>,
    /// It shrinks if this share of it was never filled.
    #[serde(default)]
    pub spare_percent: Option<u32>,
}

/// How a policer was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PoliceForm {
    /// `police cir`.
    #[default]
    Cir,
    /// `police rate`.
    Rate,
}

/// What a policer does to a packet of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PoliceAction {
    /// Let it pass.
    Transmit {},
    /// Drop it.
    Drop {},
    /// Set the code point (0 to 63) and let it pass.
    SetDscpTransmit {
        /// Code point.
        value: u16,
    },
    /// Set the precedence (0 to 7) and let it pass.
    SetPrecTransmit {
        /// Precedence.
        value: u16,
    },
    /// Set the QoS group (0 to 99) and let it pass.
    SetQosTransmit {
        /// Group.
        value: u16,
    },
    /// Set the class of service (0 to 7) and let it pass.
    SetCosTransmit {
        /// Class of service.
        value: u16,
    },
    /// Set the code point by the policed-dscp map and let it pass (switches only).
    PolicedDscpTransmit {},
}

/// A shaper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShapeConfig {
    /// Average or peak.
    pub mode: ShapeMode,
    /// Committed rate.
    pub rate: RateSpec,
    /// Committed burst; null for the generation's default.
    #[serde(default)]
    pub bc: Option<ShapeBurst>,
    /// Excess burst; null for as much as the committed burst.
    #[serde(default)]
    pub be: Option<ShapeBurst>,
}

/// What an interval of a shaper adds to its credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShapeMode {
    /// The committed burst.
    Average,
    /// Committed and excess burst.
    Peak,
}

/// A queue's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueLimit {
    /// Packets.
    pub packets: u32,
}

/// Fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FairQueueConfig {
    /// Number of flow queues (a power of two from 16 to 4096); null for the default.
    #[serde(default)]
    pub queues: Option<u32>,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// Not shut down.
    pub enabled: bool,
    /// The `bandwidth` statement in kb/s: base of percentages and of the default queueing.
    pub bandwidth_kbps: u64,
    /// `clock rate`: replaces the link's rate (serial only).
    #[serde(default)]
    pub clock_rate_bps: Option<u64>,
    /// Encapsulation; null for the port's own.
    #[serde(default)]
    pub encapsulation: Option<Framing>,
    /// Time constant of averages in seconds, 30 to 600 in steps of 30.
    #[serde(default = "default_load_interval")]
    pub load_interval_s: u32,
    /// Packets in the transmit ring beside the one on the wire; null for the default.
    #[serde(default)]
    pub tx_ring_limit: Option<u32>,
    /// `hold-queue N out`: packets in the interface's queue; null for the default.
    #[serde(default)]
    pub hold_queue_out: Option<u32>,
    /// Weighted fair queueing on the interface; null for the platform's default.
    #[serde(default)]
    pub fair_queue: Option<InterfaceFairQueue>,
    /// `max-reserved-bandwidth`: per cent of the bandwidth that classes may reserve (classic only); null for 75.
    #[serde(default)]
    pub max_reserved_percent: Option<u32>,
    /// Policy-map applied to what comes in.
    #[serde(default)]
    pub service_policy_input: Option<String>,
    /// Policy-map applied to what goes out.
    #[serde(default)]
    pub service_policy_output: Option<String>,
    /// The switch's part: null on a router, and for the platform's defaults on a switch.
    #[serde(default)]
    pub switch: Option<SwitchPortConfig>,
}

fn default_load_interval() -> u32 {
    crate::defaults::LOAD_INTERVAL_S
}
