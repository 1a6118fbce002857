//! What the engine counted: the `counters` and `resolve` replies of `docs/control-protocol.md`, as types.
//!
//! Bytes are counted as IOS counts them: IP packet plus layer-2 header (see [`crate::packet::Descriptor::counted_len`]).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{
    DynamicBucketConfig, MatchMode, PoliceAction, PoliceForm, PriorityUnit, RandomDetectBasis, SetField, ShapeMode,
};
use crate::switch::counters::{SwitchCounters, SwitchPortCounters};

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Count {
    pub packets: u64,
    pub bytes: u64,
}

impl Count {
    /// Counts one packet of `bytes`.
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// The sum of two counts.
    #[must_use]
    pub fn plus(self, other: Count) -> Count {
        Count { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// Everything counted, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// When.
    pub time_ns: u64,
    /// Time since the engine was made.
    pub uptime_ns: u64,
    /// By interface.
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// By access list, one element an entry.
    pub access_lists: BTreeMap<String, Vec<AccessEntryCounters>>,
    /// A switch's memory.
    pub switch: Option<SwitchCounters>,
}

/// Hits of one access list entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct AccessEntryCounters {
    pub packets: u64,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    /// Not shut down.
    pub enabled: bool,
    /// Time constant of the averages.
    pub load_interval_s: u32,
    /// Bits per second on the wire.
    pub line_rate_bps: u64,
    /// Frames that came from the wire.
    pub input: DirectionCounters,
    /// Frames that went onto the wire.
    pub output: DirectionCounters,
    /// The interface's own queue.
    pub queue: InterfaceQueueCounters,
    /// The transmit ring.
    pub tx_ring: RingCounters,
    /// How long packets waited; null before the first one.
    pub queueing_delay: Option<QueueingDelayCounters>,
    /// The link itself.
    pub link: LinkCounters,
    /// Always null: hits are counted by access list.
    pub access_list_hits: Option<u64>,
    /// The policy applied to what comes in.
    pub policy_input: Option<PolicyCounters>,
    /// The policy applied to what goes out.
    pub policy_output: Option<PolicyCounters>,
    /// What a switch's port counts.
    pub switch: Option<SwitchPortCounters>,
}

/// The link of an interface: what happens beyond the router's knowledge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkCounters {
    /// Towards the router. Zero where the other end is an engine too, which has it as its output.
    pub input: PropagationCounters,
    /// Away from the router.
    pub output: PropagationCounters,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PropagationCounters {
    /// Frames that were lost; outgoing ones count as output packets, as the router has sent them.
    pub lost: Count,
    /// Frames on their way now (on the way in also those of which the last bit has yet to arrive).
    pub in_flight: u64,
}

/// One direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionCounters {
    /// Packets.
    pub packets: u64,
    /// Counted bytes.
    pub bytes: u64,
    /// Average in bits per second.
    pub rate_bps: f64,
    /// Average in packets per second.
    pub rate_pps: f64,
    /// Packets dropped, whatever the reason. (Output drops are not in `packets`; input ones are, except while the interface is down.)
    pub drops: u64,
}

/// The queueing strategy of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// First in, first out.
    Fifo,
    /// Weighted fair queueing.
    WeightedFair,
    /// A queueing policy.
    ClassBased,
}

/// The queue of an interface, all its parts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceQueueCounters {
    /// How it queues.
    pub strategy: Strategy,
    /// Packets in it now (the transmit ring excluded).
    pub depth: u64,
    /// Most packets of it.
    pub limit: u32,
    /// Packets that it dropped.
    pub drops: u64,
    /// Conversations with packets queued (weighted fair).
    pub conversations: Option<u32>,
    /// Most conversations.
    pub max_conversations: Option<u32>,
    /// Congestive discard threshold of a conversation.
    pub threshold: Option<u32>,
    /// Most conversations that had packets queued at the same time.
    pub max_active_conversations: Option<u32>,
    /// Conversations of classes with a bandwidth.
    pub reserved_conversations: Option<ReservedConversations>,
    /// What classes may still reserve, kb/s.
    pub available_bandwidth_kbps: Option<u64>,
}

/// Conversations with a reserved bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReservedConversations {
    /// Now.
    pub allocated: u32,
    /// Most at the same time.
    pub max: u32,
}

/// The transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingCounters {
    /// Packets that it holds beside the one on the wire.
    pub limit: u32,
    /// Packets in it now.
    pub depth: u32,
}

/// Waits at an output interface since the counters were cleared: from a packet's arrival there, before any queue, to its start on the line. So
/// shaper, queues and transmit ring count, line time and propagation do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueingDelayCounters {
    /// Packets that have started on the line: the interface's output packets.
    pub packets: u64,
    /// Their mean wait, rounded down.
    pub mean_ns: u64,
    /// The median, within 1 %.
    pub p50_ns: u64,
    /// 99 of 100 wait at most this, within 1 %.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// An attached policy-map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyCounters {
    /// Name of the policy-map.
    pub policy: String,
    /// Classes in configured order, `class-default` last.
    pub classes: Vec<ClassCounters>,
    /// The queues that the priority classes of this policy-map share, by level (later generation).
    pub priority_queues: Vec<PriorityQueueCounters>,
}

/// A queue that priority classes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityQueueCounters {
    /// 1 is served before 2.
    pub level: u8,
    /// Most packets.
    pub limit_packets: u32,
    /// Packets now.
    pub depth_packets: u64,
    /// What the queue dropped (the conditional policers' drops are the classes').
    pub drops: Count,
    /// What left.
    pub output: Count,
}

/// One class of an attached policy-map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassCounters {
    /// Name of the class-map.
    pub name: String,
    /// How its criteria combine.
    #[serde(rename = "match")]
    pub combine: MatchMode,
    /// Criteria in configured order. With `match: any` a packet counts for the first that matched.
    pub criteria: Vec<CriterionCounters>,
    /// Packets classified, before any drop.
    pub packets: u64,
    /// Counted bytes classified.
    pub bytes: u64,
    /// Average of what was classified.
    pub offered_rate_bps: f64,
    /// Average of what was dropped (classic: without the policer's drops).
    pub drop_rate_bps: f64,
    /// Drops by reason.
    pub drops: ClassDrops,
    /// Markings.
    pub set: Vec<SetCounters>,
    /// The policer.
    pub police: Option<PoliceCounters>,
    /// The shaper.
    pub shape: Option<ShapeCounters>,
    /// The class's own queue, or those of its children together.
    pub queue: Option<ClassQueueCounters>,
    /// The class's bandwidth.
    pub bandwidth: Option<BandwidthCounters>,
    /// Low-latency queueing.
    pub priority: Option<PriorityCounters>,
    /// Random early detection.
    pub random_detect: Option<RandomDetectCounters>,
    /// The child policy.
    pub child: Option<PolicyCounters>,
}

/// One match statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct CriterionCounters {
    pub packets: u64,
    pub bytes: u64,
    pub rate_bps: f64,
}

/// Drops of a class by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassDrops {
    /// By the policer (of this class or of a child's).
    pub police: Count,
    /// The queue was full.
    pub tail: Count,
    /// The flow's share of the queue was full.
    pub flow: Count,
    /// Removed from the queue by a shutdown of the interface.
    pub purged: Count,
    /// By the conditional policer of a priority class.
    pub priority: Count,
    /// At random, by early detection.
    pub random: Count,
    /// By early detection, at a mean depth above the greatest threshold.
    pub random_tail: Count,
}

/// The bandwidth of a class: one of the four as configured, and what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BandwidthCounters {
    /// In force; null with `remaining`, and in `resolve` where it depends on the interface.
    pub kbps: Option<u64>,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// The configured percentage of what priority classes leave.
    pub remaining_percent: Option<u32>,
    /// The configured part of what priority classes leave.
    pub remaining_ratio: Option<u32>,
}

/// A priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PriorityCounters {
    /// How its rate is given.
    pub unit: PriorityUnit,
    /// The rate in force.
    pub kbps: Option<u64>,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// Burst of the conditional policer.
    pub burst_bytes: Option<u64>,
    /// 1 is served before 2.
    pub level: u8,
    /// Number of its conversation (classic).
    pub conversation: Option<u32>,
    /// What the conditional policer dropped.
    pub exceed_drops: Count,
}

/// Random early detection of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RandomDetectCounters {
    /// Which field of a packet picks the thresholds.
    pub basis: RandomDetectBasis,
    /// Exponential weighting constant.
    pub exponential_weight: u8,
    /// Mean depth in packets.
    pub mean_depth: f64,
    /// All precedences, or the code points that were seen.
    pub classes: Vec<RandomDetectRow>,
}

/// Random early detection of one precedence or code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RandomDetectRow {
    /// The precedence or code point.
    pub value: u8,
    /// What left the queue.
    pub transmitted: Count,
    /// What was dropped at random.
    pub random_drop: Count,
    /// What was dropped above the greatest threshold, or by the limit of the queue or of the flow.
    pub tail_drop: Count,
    /// Least threshold, packets.
    pub min: u32,
    /// Greatest threshold, packets.
    pub max: u32,
    /// Just below the greatest threshold one packet in this many is dropped.
    pub denominator: u32,
}

/// One `set` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct SetCounters {
    pub field: SetField,
    pub value: u16,
    pub packets: u64,
}

/// A policer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct PoliceCounters {
    pub form: PoliceForm,
    pub cir_bps: u64,
    pub cir_percent: Option<u32>,
    pub bc_bytes: u64,
    pub pir_bps: Option<u64>,
    pub pir_percent: Option<u32>,
    pub be_bytes: Option<u64>,
    pub conformed: ColourCounters,
    pub exceeded: ColourCounters,
    pub violated: Option<ColourCounters>,
    /// Tokens lost to demand.
    pub tokens_lost: TokensLost,
    /// The dynamic bucket; its present size is `bc_bytes` too.
    pub dynamic: Option<DynamicCounters>,
}

/// Tokens of the committed rate that came while there was no room for them (with one rate and two buckets: in neither) although there was
/// demand: the packet before had come no longer ago than the idle time, 3 s or that of the dynamic bucket. Known at arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokensLost {
    /// How many, in bytes.
    pub bytes: u64,
    /// The longest time from when tokens began to be lost to the last of consecutive packets that each found that some were lost since the one before.
    pub longest_ns: u64,
}

/// A bucket that finds its own size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DynamicCounters {
    /// Size now.
    pub bucket_bytes: u64,
    /// Tokens now.
    pub level_bytes: u64,
    /// Mean size over time, since the counters were cleared.
    pub mean_bucket_bytes: u64,
    /// Size at the start.
    pub initial_bytes: u64,
    /// Least size.
    pub minimum_bytes: u64,
    /// Greatest size.
    pub maximum_bytes: u64,
    /// How often the level is compared.
    pub monitoring_ms: u64,
    /// The reaction to a drop is being watched.
    pub watching: bool,
    /// How often the bucket grew.
    pub growths: u64,
    /// How often it shrank.
    pub shrinks: u64,
    /// Tokens that overflowed while there was demand: between drops and TCP's return to the rate.
    pub overflow_bytes: u64,
    /// The most of one such time.
    pub most_overflow_bytes: u64,
    /// The last 32 changes of size, the oldest first.
    pub changes: Vec<BucketChange>,
}

/// A change of a dynamic bucket's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BucketChange {
    /// From 1, since the policer began.
    pub number: u64,
    /// When.
    pub time_ns: u64,
    /// Size from then on.
    pub bucket_bytes: u64,
}

/// Packets of one colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ColourCounters {
    pub packets: u64,
    pub bytes: u64,
    pub rate_bps: f64,
}

/// A shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShapeCounters {
    /// Average or peak.
    pub mode: ShapeMode,
    /// Committed rate.
    pub cir_bps: u64,
    /// The configured percentage.
    pub percent: Option<u32>,
    /// The rate that it keeps: committed, or with `peak` CIR × (1 + Be/Bc).
    pub target_bps: u64,
    /// Committed burst.
    pub bc_bits: u64,
    /// Excess burst.
    pub be_bits: u64,
    /// Interval, in whole milliseconds.
    pub interval_ms: u64,
    /// Most credit, bytes.
    pub byte_limit: u64,
    /// What an interval adds, bytes.
    pub increment_bytes: u64,
    /// Packets are waiting.
    pub active: bool,
    /// What left.
    pub sent: Count,
    /// Those that had waited.
    pub delayed: Count,
}

/// The queueing discipline of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisciplineName {
    /// First in, first out.
    Fifo,
    /// Classic weighted fair queueing.
    WeightedFair,
    /// Equal bytes for each flow.
    FairQueue,
}

/// The queue of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassQueueCounters {
    /// How it queues.
    pub discipline: DisciplineName,
    /// Most packets.
    pub limit_packets: u32,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now.
    pub depth_bytes: u64,
    /// Most packets of one flow.
    pub per_flow_limit: Option<u32>,
    /// Flow queues with packets.
    pub flows: Option<u32>,
    /// Flow queues.
    pub max_flows: Option<u32>,
    /// What left the queue.
    pub output: Count,
    /// Number of its conversation (classic).
    pub conversation: Option<u32>,
    /// Packets that could not go straight to the transmit ring.
    pub congested: Count,
}

/// The configured policy-maps with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// By name.
    pub policy_maps: BTreeMap<String, ResolvedPolicy>,
}

/// A policy-map with its defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedPolicy {
    /// Classes in configured order, `class-default` last.
    pub classes: Vec<ResolvedClass>,
}

/// A class with its defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResolvedClass {
    pub name: String,
    pub police: Option<ResolvedPolice>,
    pub shape: Option<ResolvedShape>,
    pub queue_limit_packets: Option<u32>,
    pub fair_queue: Option<ResolvedFairQueue>,
    pub bandwidth: Option<BandwidthCounters>,
    pub priority: Option<ResolvedPriority>,
    pub random_detect: Option<ResolvedRandomDetect>,
    pub service_policy: Option<String>,
}

/// Low-latency queueing with its defaults. Figures are null where they depend on the rate of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResolvedPriority {
    pub unit: PriorityUnit,
    pub kbps: Option<u64>,
    pub percent: Option<u32>,
    pub burst_bytes: Option<u64>,
    pub level: u8,
}

/// Random early detection with its defaults: every precedence, or the code points that have thresholds of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResolvedRandomDetect {
    pub basis: RandomDetectBasis,
    pub exponential_weight: u8,
    pub classes: Vec<ResolvedRandomDetectRow>,
}

/// Thresholds of one precedence or code point, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResolvedRandomDetectRow {
    pub value: u8,
    pub min: u32,
    pub max: u32,
    pub denominator: u32,
}

/// A policer with its defaults. Figures in bits and bytes are null where they depend on the rate of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResolvedPolice {
    pub form: PoliceForm,
    pub cir_bps: Option<u64>,
    pub cir_percent: Option<u32>,
    pub bc_bytes: Option<u64>,
    pub pir_bps: Option<u64>,
    pub pir_percent: Option<u32>,
    pub be_bytes: Option<u64>,
    pub conform: Vec<PoliceAction>,
    pub exceed: Vec<PoliceAction>,
    pub violate: Option<Vec<PoliceAction>>,
    pub dynamic: Option<DynamicBucketConfig>,
}

/// A shaper with its defaults. Figures are null where they depend on the rate of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResolvedShape {
    pub mode: ShapeMode,
    pub cir_bps: Option<u64>,
    pub percent: Option<u32>,
    pub target_bps: Option<u64>,
    pub bc_bits: Option<u64>,
    pub be_bits: Option<u64>,
    pub interval_ms: Option<u64>,
    pub byte_limit: Option<u64>,
    pub increment_bytes: Option<u64>,
}

/// Fair queueing with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct ResolvedFairQueue {
    pub discipline: DisciplineName,
    pub queues: u32,
    pub per_flow_limit: u32,
}
