//! Policy-maps of the configuration: marking, policing, shaping, and the queue of a class.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::catalyst::Trust;
use crate::config::queueing::{
    BandwidthConfig, PriorityConfig, QueueLimit, QueueThreshold, RandomDetectConfig, ThresholdField,
};

/// Policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct PolicyMap {
    /// Classes in configured order. `class-default` is always the last one: it is added if missing.
    pub classes: Vec<PolicyClass>,
}

/// Class of a policy-map with its actions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
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
    pub police: Option<PoliceConfig>,
    /// Shaper (output only).
    pub shape: Option<ShapeConfig>,
    /// Maximum number of packets in all flow queues behind the shaper (earlier generation); null for 1000.
    pub shape_buffers: Option<u32>,
    /// Packet lengths for its shaper and for its share of the line, if they differ from the counted ones (output only,
    /// later generation); counters and queues are unaffected.
    pub account: Option<AccountConfig>,
    /// Length limit of the class's queue (output only).
    pub queue_limit: Option<QueueLimit>,
    /// Length limits of the queue for packets with a value of a field (output only, later generation).
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue_thresholds: Vec<QueueThreshold>,
    /// Fair queueing within the class (output only).
    pub fair_queue: Option<FairQueueConfig>,
    /// Guaranteed bandwidth of the class (output only).
    pub bandwidth: Option<BandwidthConfig>,
    /// Low-latency queueing (output only).
    pub priority: Option<PriorityConfig>,
    /// Weighted random early detection (output only).
    pub random_detect: Option<RandomDetectConfig>,
    /// Name of the child policy-map.
    pub service_policy: Option<String>,
    /// `trust` (a switch's input policy only).
    pub trust: Option<Trust>,
    /// `police aggregate`: name of an aggregate policer (a switch's input policy only).
    pub police_aggregate: Option<String>,
}

impl PolicyClass {
    /// Returns a class without actions; `name` is that of a class-map, or `class-default`.
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

    /// Adds a marking.
    #[must_use]
    pub fn set(mut self, field: SetField, value: u16) -> PolicyClass {
        self.set.push(SetAction { field, value });
        self
    }

    /// Adds a policer.
    #[must_use]
    pub fn police(mut self, police: PoliceConfig) -> PolicyClass {
        self.police = Some(police);
        self
    }

    /// Adds a shaper.
    #[must_use]
    pub fn shape(mut self, shape: ShapeConfig) -> PolicyClass {
        self.shape = Some(shape);
        self
    }

    /// Adds a guarantee.
    #[must_use]
    pub fn bandwidth(mut self, bandwidth: BandwidthConfig) -> PolicyClass {
        self.bandwidth = Some(bandwidth);
        self
    }

    /// Adds fair queueing with the default number of flow queues.
    #[must_use]
    pub fn fair_queue(mut self) -> PolicyClass {
        self.fair_queue = Some(FairQueueConfig { queues: None, queue_limit: None });
        self
    }

    /// Adds a queue with a limit in packets.
    #[must_use]
    pub fn queue_limit(mut self, packets: u32) -> PolicyClass {
        self.queue_limit = Some(QueueLimit::Packets(packets));
        self
    }
}

/// `set` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct SetAction {
    /// Field to set.
    pub field: SetField,
    /// New value.
    pub value: u16,
}

/// `set` command that takes the value from another field, by a table-map or unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct MapAction {
    /// Field to set.
    pub field: SetField,
    /// Source field of the value, as the packet arrived at the class.
    pub source: ThresholdField,
    /// Name of the table-map; affects only the output of counters.
    pub table: Option<String>,
    /// New value by the value of `source`; null or missing: the packet is not marked.
    pub values: Vec<Option<u16>>,
}

/// Field that a `set` command sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
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
    /// Local QoS group of the router, 0 to 99.
    QosGroup,
    /// Local discard class of the router, 0 to 7.
    DiscardClass,
}

/// Rate, absolute or relative to the interface's bandwidth or the parent's shape rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum RateSpec {
    /// Bits per second.
    Bps(u64),
    /// Per cent, 1 to 100.
    Percent(u32),
}

/// Burst of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum PoliceBurst {
    /// Bytes.
    Bytes(u64),
    /// Milliseconds of the rate.
    Ms(u64),
}

/// Burst of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum ShapeBurst {
    /// Bits.
    Bits(u64),
    /// Milliseconds of the rate.
    Ms(u64),
}

/// Policer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct PoliceConfig {
    /// Committed information rate.
    pub cir: RateSpec,
    /// Committed burst; null for the default.
    pub bc: Option<PoliceBurst>,
    /// Peak information rate; makes it a two-rate policer.
    pub pir: Option<RateSpec>,
    /// Excess burst; null for the default.
    pub be: Option<PoliceBurst>,
    /// Action for conforming packets; null for transmit.
    pub conform: Option<Vec<PoliceAction>>,
    /// Action for exceeding packets; null for drop.
    pub exceed: Option<Vec<PoliceAction>>,
    /// Action for violating packets; null for that of exceeding ones.
    pub violate: Option<Vec<PoliceAction>>,
    /// Typed form; affects only the output of counters.
    #[cfg_attr(feature = "serde", serde(default))]
    pub form: PoliceForm,
    /// Packet lengths for its rates, if they differ from the counted ones; its counters are unaffected.
    pub account: Option<AccountConfig>,
    /// Bucket that adapts its size; null for one of `bc`. No IOS has this.
    pub dynamic: Option<DynamicBucketConfig>,
}

impl PoliceConfig {
    /// Returns a policer with one bucket of the default burst, which drops exceeding packets.
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

    /// Sets a committed burst.
    #[must_use]
    pub fn burst(mut self, bc: PoliceBurst) -> PoliceConfig {
        self.bc = Some(bc);
        self
    }
}

/// Bucket that adapts its size. Null for the default, which [`crate::config::defaults`] explains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct DynamicBucketConfig {
    /// Initial size.
    pub initial_bytes: Option<u64>,
    /// Minimum size; a bucket smaller than a full packet would pass none.
    pub minimum_bytes: Option<u64>,
    /// Maximum size; by default 1.5 seconds of the rate, or as much as the other two.
    pub maximum_bytes: Option<u64>,
    /// Interval between comparisons of the level after a drop: longer than a round trip.
    pub monitoring_ms: Option<u64>,
    /// Time without a packet after which the observation is discarded.
    pub idle_ms: Option<u64>,
    /// First growths: share of the overflowed tokens.
    pub first_growth_percent: Option<u32>,
    /// Number of first growths.
    pub first_growths: Option<u32>,
    /// Later growths: share of the overflowed tokens.
    pub growth_percent: Option<u32>,
    /// Share by which the bucket shrinks.
    pub shrink_percent: Option<u32>,
    /// Share that must never have been filled for the bucket to shrink.
    pub spare_percent: Option<u32>,
}

/// Typed form of a policer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum PoliceForm {
    /// `police cir`.
    #[default]
    Cir,
    /// `police rate`.
    Rate,
}

/// Action of a policer for a packet of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
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

/// Shaper.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct ShapeConfig {
    /// Average or peak.
    pub mode: ShapeMode,
    /// Committed rate.
    pub rate: RateSpec,
    /// Committed burst; null for the generation's default.
    pub bc: Option<ShapeBurst>,
    /// Excess burst; null for that of the committed burst.
    pub be: Option<ShapeBurst>,
}

impl ShapeConfig {
    /// Returns `shape average` with the generation's default bursts.
    pub fn average(rate: RateSpec) -> ShapeConfig {
        ShapeConfig { mode: ShapeMode::Average, rate, bc: None, be: None }
    }
}

/// `account`: bytes of a packet that count for a rate, if they differ from those counted by the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum AccountConfig {
    /// `user-defined`.
    UserDefined(UserDefinedAccount),
    /// `dot1q aal5` or `qinq aal5`.
    Aal5(SubscriberLineAccount),
}

/// `account user-defined`: additional or fewer counted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct UserDefinedAccount {
    /// Bytes, -63 to 63.
    pub offset: i32,
    /// True if the sum is divided into cells, which then count with their headers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub atm: bool,
}

/// `account dot1q aal5`, `account qinq aal5`: the cells on a subscriber's line behind an access multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct SubscriberLineAccount {
    /// Between router and multiplexer.
    pub access: AccessEncapsulation,
    /// On the subscriber's line.
    pub subscriber: SubscriberEncapsulation,
}

/// An Ethernet header between a router and an access multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "lowercase"))]
pub enum AccessEncapsulation {
    /// One tag.
    Dot1q,
    /// Two.
    Qinq,
}

/// Contents of the cells on a subscriber's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
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

/// Credit that a shaper adds per interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum ShapeMode {
    /// The committed burst.
    Average,
    /// Committed and excess burst.
    Peak,
}

/// Fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct FairQueueConfig {
    /// Number of flow queues (a power of two from 16 to 4096); null for the default.
    pub queues: Option<u32>,
    /// Maximum number of packets of each flow queue, 1 to 32768 (later generations); null for a quarter of the class's
    /// limit.
    pub queue_limit: Option<u32>,
}

/// Returns the greatest value of a field.
pub(crate) const fn greatest(field: SetField) -> u16 {
    match field {
        SetField::Dscp | SetField::IpDscp => 63,
        SetField::Precedence | SetField::IpPrecedence | SetField::Cos | SetField::DiscardClass => 7,
        SetField::QosGroup => 99,
    }
}
