//! The policy-maps of the configuration: marking, policing, shaping, and what a class's queue is.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::catalyst::Trust;
use crate::config::queueing::{
    BandwidthConfig, PriorityConfig, QueueLimit, QueueThreshold, RandomDetectConfig, ThresholdField,
};

/// A policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PolicyMap {
    /// Classes in configured order. `class-default` is always there and last: it is added when missing.
    pub classes: Vec<PolicyClass>,
}

/// One class of a policy-map with its actions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PolicyClass {
    /// Name of a class-map, or `class-default`.
    pub name: String,
    /// Markings.
    #[cfg_attr(feature = "serde", serde(default))]
    pub set: Vec<SetAction>,
    /// Markings by another field of the packet.
    #[cfg_attr(feature = "serde", serde(default))]
    pub map: Vec<MapAction>,
    /// Policer.
    #[cfg_attr(feature = "serde", serde(default))]
    pub police: Option<PoliceConfig>,
    /// Shaper (output only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub shape: Option<ShapeConfig>,
    /// Packets that the flow queues behind the shaper hold together (earlier generation); null for 1000.
    #[cfg_attr(feature = "serde", serde(default))]
    pub shape_buffers: Option<u32>,
    /// Lengths of packets for its shaper and for its part of the line, where they are not the counted ones (output
    /// only, later generation); counters and queues know nothing of it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub account: Option<AccountConfig>,
    /// Length of the class's queue (output only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue_limit: Option<QueueLimit>,
    /// Lengths of the queue for packets with a value of a field (output only, later generation).
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue_thresholds: Vec<QueueThreshold>,
    /// Fair queueing within the class (output only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub fair_queue: Option<FairQueueConfig>,
    /// What the class is guaranteed (output only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub bandwidth: Option<BandwidthConfig>,
    /// Low-latency queueing (output only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub priority: Option<PriorityConfig>,
    /// Weighted random early detection (output only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub random_detect: Option<RandomDetectConfig>,
    /// Name of the child policy-map.
    #[cfg_attr(feature = "serde", serde(default))]
    pub service_policy: Option<String>,
    /// `trust` (a switch's input policy only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub trust: Option<Trust>,
    /// `police aggregate`: name of an aggregate policer (a switch's input policy only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub police_aggregate: Option<String>,
}

impl PolicyClass {
    /// A class that does nothing yet; `name` is that of a class-map, or `class-default`.
    pub fn new(name: impl Into<String>) -> PolicyClass {
        PolicyClass {
            name: name.into(),
            set: Vec::new(),
            map: Vec::new(),
            police: None,
            shape: None,
            shape_buffers: None,
            account: None,
            queue_limit: None,
            queue_thresholds: Vec::new(),
            fair_queue: None,
            bandwidth: None,
            priority: None,
            random_detect: None,
            service_policy: None,
            trust: None,
            police_aggregate: None,
        }
    }

    /// With a marking.
    #[must_use]
    pub fn set(mut self, field: SetField, value: u16) -> PolicyClass {
        self.set.push(SetAction { field, value });
        self
    }

    /// With a policer.
    #[must_use]
    pub fn police(mut self, police: PoliceConfig) -> PolicyClass {
        self.police = Some(police);
        self
    }

    /// With a shaper.
    #[must_use]
    pub fn shape(mut self, shape: ShapeConfig) -> PolicyClass {
        self.shape = Some(shape);
        self
    }

    /// With a guarantee.
    #[must_use]
    pub fn bandwidth(mut self, bandwidth: BandwidthConfig) -> PolicyClass {
        self.bandwidth = Some(bandwidth);
        self
    }

    /// With fair queueing in the default number of flow queues.
    #[must_use]
    pub fn fair_queue(mut self) -> PolicyClass {
        self.fair_queue = Some(FairQueueConfig { queues: None, queue_limit: None });
        self
    }

    /// With a queue of at most so many packets.
    #[must_use]
    pub fn queue_limit(mut self, packets: u32) -> PolicyClass {
        self.queue_limit = Some(QueueLimit::Packets(packets));
        self
    }
}

/// One `set` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SetAction {
    /// What is set.
    pub field: SetField,
    /// To which value.
    pub value: u16,
}

/// A `set` command that takes the value from another field, by a table-map or as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct MapAction {
    /// What is set.
    pub field: SetField,
    /// Where the value is from, as the packet came to the class.
    pub source: ThresholdField,
    /// Name of the table-map; affects only how counters are printed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub table: Option<String>,
    /// The new value by the value of `source`; null or missing: the packet is not marked.
    pub values: Vec<Option<u16>>,
}

/// What a `set` command sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
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
    /// The router's own class of what to drop first, 0 to 7.
    DiscardClass,
}

/// A rate, absolute or relative to the interface's bandwidth or the parent's shape rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RateSpec {
    /// Bits per second.
    Bps(u64),
    /// Per cent, 1 to 100.
    Percent(u32),
}

/// A policer's burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum PoliceBurst {
    /// Bytes.
    Bytes(u64),
    /// Milliseconds of the rate.
    Ms(u64),
}

/// A shaper's burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ShapeBurst {
    /// Bits.
    Bits(u64),
    /// Milliseconds of the rate.
    Ms(u64),
}

/// A policer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PoliceConfig {
    /// Committed information rate.
    pub cir: RateSpec,
    /// Committed burst; null for the default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub bc: Option<PoliceBurst>,
    /// Peak information rate; makes it a two-rate policer.
    #[cfg_attr(feature = "serde", serde(default))]
    pub pir: Option<RateSpec>,
    /// Excess burst; null for the default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub be: Option<PoliceBurst>,
    /// What happens to conforming packets; null for transmit.
    #[cfg_attr(feature = "serde", serde(default))]
    pub conform: Option<Vec<PoliceAction>>,
    /// What happens to exceeding packets; null for drop.
    #[cfg_attr(feature = "serde", serde(default))]
    pub exceed: Option<Vec<PoliceAction>>,
    /// What happens to violating packets; null for as exceeding ones.
    #[cfg_attr(feature = "serde", serde(default))]
    pub violate: Option<Vec<PoliceAction>>,
    /// How it was written; affects only how counters are printed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub form: PoliceForm,
    /// Lengths of packets for its rates, where they are not the counted ones; its counters know nothing of it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub account: Option<AccountConfig>,
    /// The bucket finds its own size; null for one of `bc`. No IOS has this.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dynamic: Option<DynamicBucketConfig>,
}

impl PoliceConfig {
    /// One bucket with the default burst, which drops what exceeds the rate.
    pub fn new(cir: RateSpec) -> PoliceConfig {
        PoliceConfig {
            cir,
            bc: None,
            pir: None,
            be: None,
            conform: None,
            exceed: None,
            violate: None,
            form: PoliceForm::Cir,
            account: None,
            dynamic: None,
        }
    }

    /// With a committed burst.
    #[must_use]
    pub fn burst(mut self, bc: PoliceBurst) -> PoliceConfig {
        self.bc = Some(bc);
        self
    }
}

/// A bucket that finds its own size. Null for the default, which [`crate::config::defaults`] explains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DynamicBucketConfig {
    /// Size at the start.
    #[cfg_attr(feature = "serde", serde(default))]
    pub initial_bytes: Option<u64>,
    /// Least size; one that holds no full packet would let none pass.
    #[cfg_attr(feature = "serde", serde(default))]
    pub minimum_bytes: Option<u64>,
    /// Greatest size; by default 1.5 seconds of the rate, or as much as the other two.
    #[cfg_attr(feature = "serde", serde(default))]
    pub maximum_bytes: Option<u64>,
    /// How often the level is compared while the reaction to a drop is watched: more than a round trip.
    #[cfg_attr(feature = "serde", serde(default))]
    pub monitoring_ms: Option<u64>,
    /// Without a packet for so long what was watched tells nothing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub idle_ms: Option<u64>,
    /// The first growths: this share of what overflowed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub first_growth_percent: Option<u32>,
    /// How many they are.
    #[cfg_attr(feature = "serde", serde(default))]
    pub first_growths: Option<u32>,
    /// Later growths: this share of what overflowed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub growth_percent: Option<u32>,
    /// By how much the bucket shrinks.
    #[cfg_attr(feature = "serde", serde(default))]
    pub shrink_percent: Option<u32>,
    /// It shrinks if this share of it was never filled.
    #[cfg_attr(feature = "serde", serde(default))]
    pub spare_percent: Option<u32>,
}

/// How a policer was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum PoliceForm {
    /// `police cir`.
    #[default]
    Cir,
    /// `police rate`.
    Rate,
}

/// What a policer does to a packet of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields))]
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
    /// Set the discard class (0 to 7) and let it pass.
    SetDiscardClassTransmit {
        /// Discard class.
        value: u16,
    },
    /// Set the code point by the policed-dscp map and let it pass (switches only).
    PolicedDscpTransmit {},
}

/// A shaper.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ShapeConfig {
    /// Average or peak.
    pub mode: ShapeMode,
    /// Committed rate.
    pub rate: RateSpec,
    /// Committed burst; null for the generation's default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub bc: Option<ShapeBurst>,
    /// Excess burst; null for as much as the committed burst.
    #[cfg_attr(feature = "serde", serde(default))]
    pub be: Option<ShapeBurst>,
}

impl ShapeConfig {
    /// `shape average` with the generation's default bursts.
    pub fn average(rate: RateSpec) -> ShapeConfig {
        ShapeConfig { mode: ShapeMode::Average, rate, bc: None, be: None }
    }
}

/// `account`: which bytes of a packet a rate is about, where that is not what the router counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum AccountConfig {
    /// `user-defined`.
    UserDefined(UserDefinedAccount),
    /// `dot1q aal5` or `qinq aal5`.
    Aal5(SubscriberLineAccount),
}

/// `account user-defined`: more bytes than are counted, or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct UserDefinedAccount {
    /// Bytes, -63 to 63.
    pub offset: i32,
    /// Whether the sum is put into cells, which then count with their headers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub atm: bool,
}

/// `account dot1q aal5`, `account qinq aal5`: the cells on a subscriber's line behind an access multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SubscriberLineAccount {
    /// Between router and multiplexer.
    pub access: AccessEncapsulation,
    /// On the subscriber's line.
    pub subscriber: SubscriberEncapsulation,
}

/// An Ethernet header between a router and an access multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum AccessEncapsulation {
    /// One tag.
    Dot1q,
    /// Two.
    Qinq,
}

/// What is in the cells of a subscriber's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum SubscriberEncapsulation {
    /// IP behind LLC/SNAP.
    #[cfg_attr(feature = "serde", serde(rename = "snap-1483routed"))]
    SnapRouted,
    /// IP.
    #[cfg_attr(feature = "serde", serde(rename = "mux-1483routed"))]
    MuxRouted,
    /// PPP behind LLC.
    #[cfg_attr(feature = "serde", serde(rename = "snap-pppoa"))]
    SnapPppoa,
    /// PPP.
    #[cfg_attr(feature = "serde", serde(rename = "mux-pppoa"))]
    MuxPppoa,
    /// Ethernet behind LLC/SNAP.
    #[cfg_attr(feature = "serde", serde(rename = "snap-rbe"))]
    SnapRbe,
    /// Ethernet.
    #[cfg_attr(feature = "serde", serde(rename = "mux-rbe"))]
    MuxRbe,
    /// Ethernet with a tag behind LLC/SNAP.
    #[cfg_attr(feature = "serde", serde(rename = "snap-dot1q-rbe"))]
    SnapDot1qRbe,
    /// Ethernet with a tag.
    #[cfg_attr(feature = "serde", serde(rename = "mux-dot1q-rbe"))]
    MuxDot1qRbe,
}

/// What an interval of a shaper adds to its credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ShapeMode {
    /// The committed burst.
    Average,
    /// Committed and excess burst.
    Peak,
}

/// Fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct FairQueueConfig {
    /// Number of flow queues (a power of two from 16 to 4096); null for the default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queues: Option<u32>,
    /// Packets of each flow queue, 1 to 32768 (later generations); null for a quarter of the class's limit.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue_limit: Option<u32>,
}

/// The greatest value of a field.
pub(crate) const fn greatest(field: SetField) -> u16 {
    match field {
        SetField::Dscp | SetField::IpDscp => 63,
        SetField::Precedence | SetField::IpPrecedence | SetField::Cos | SetField::DiscardClass => 7,
        SetField::QosGroup => 99,
    }
}
