//! What the engine counted: the `counters` and `resolve` replies of `docs/internals/control-protocol.md`, as types.
//!
//! Bytes are counted as IOS counts them: IP packet plus layer-2 header (see
//! [`crate::frame::descriptor::Descriptor::counted_len`]).

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::counters::aqm::TreeNodeCounters;
use crate::counters::catalyst::{SwitchCounters, SwitchPortCounters};
use crate::counters::conversation::ConversationCounters;
use crate::counters::count::Count;
use crate::counters::interface_queueing::{InterfaceShaperCounters, NumberedQueueCounters};
use crate::counters::policy::PolicyCounters;
use crate::counters::queue::RandomDetectCounters;
use crate::counters::rate_limit::RateLimitCounters;

/// Everything counted, at one moment.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[allow(missing_docs)]
pub struct AccessEntryCounters {
    pub packets: u64,
}

/// One interface.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// The conversations of classic weighted fair queueing with packets waiting, those with most first; at most 256.
    pub conversations: Vec<ConversationCounters>,
    /// Early detection in the interface's own queue.
    pub random_detect: Option<RandomDetectCounters>,
    /// The queues of `priority-group` or `custom-queue-list`, by number.
    pub numbered_queues: Vec<NumberedQueueCounters>,
    /// The shapers of `traffic-shape`, in order.
    pub shapers: Vec<InterfaceShaperCounters>,
    /// The classes and queues of a tree as Linux's `tc` builds it, in the order of the configuration.
    pub tree: Vec<TreeNodeCounters>,
    /// The transmit ring.
    pub tx_ring: RingCounters,
    /// How long packets waited; null before the first one.
    pub queueing_delay: Option<QueueingDelayCounters>,
    /// The link itself.
    pub link: LinkCounters,
    /// Always null: hits are counted by access list.
    pub access_list_hits: Option<u64>,
    /// What access lists of the interface did not permit of what came in.
    pub denied_input: Count,
    /// What they did not permit of what was to go out.
    pub denied_output: Count,
    /// The `rate-limit` lines for what comes in, in order.
    pub rate_limit_input: Vec<RateLimitCounters>,
    /// The `rate-limit` lines for what goes out, in order.
    pub rate_limit_output: Vec<RateLimitCounters>,
    /// The policy applied to what comes in.
    pub policy_input: Option<PolicyCounters>,
    /// The policy applied to what goes out.
    pub policy_output: Option<PolicyCounters>,
    /// Its subinterfaces, by IOS name.
    pub subinterfaces: BTreeMap<String, SubinterfaceCounters>,
    /// What a switch's port counts.
    pub switch: Option<SwitchPortCounters>,
}

/// One IEEE 802.1Q subinterface. Its frames are among those of the port.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SubinterfaceCounters {
    /// Not shut down.
    pub enabled: bool,
    /// Its VLAN.
    pub vlan: u16,
    /// The VLAN of the frames without a tag.
    pub native: bool,
    /// Frames that came from the wire.
    pub input: Count,
    /// Frames that went onto the wire.
    pub output: Count,
    /// The policy applied to what comes in.
    pub policy_input: Option<PolicyCounters>,
    /// The policy applied to what goes out.
    pub policy_output: Option<PolicyCounters>,
}

/// The link of an interface: what happens beyond the router's knowledge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LinkCounters {
    /// Towards the router. Zero where the other end is an engine too, which has it as its output.
    pub input: PropagationCounters,
    /// Away from the router.
    pub output: PropagationCounters,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PropagationCounters {
    /// Frames that were lost; outgoing ones count as output packets, as the router has sent them.
    pub lost: Count,
    /// Frames on their way now (on the way in also those of which the last bit has yet to arrive).
    pub in_flight: u64,
}

/// One direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DirectionCounters {
    /// Packets.
    pub packets: u64,
    /// Counted bytes.
    pub bytes: u64,
    /// Average in bits per second.
    pub rate_bps: f64,
    /// Average in packets per second.
    pub rate_pps: f64,
    /// Packets dropped, whatever the reason but for those that access lists denied. (Output drops are not in `packets`;
    /// input ones are, except while the interface is down.)
    pub drops: u64,
}

/// The queueing strategy of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Strategy {
    /// First in, first out.
    Fifo,
    /// Weighted fair queueing.
    WeightedFair,
    /// A queueing policy.
    ClassBased,
    /// `priority-group`.
    Priority,
    /// `custom-queue-list`.
    Custom,
    /// Classes and queues as Linux's `tc` builds them.
    Tree,
}

/// The queue of an interface, all its parts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReservedConversations {
    /// Now.
    pub allocated: u32,
    /// Most at the same time.
    pub max: u32,
}

/// The transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RingCounters {
    /// Packets that it holds beside the one on the wire; on ATM the particles of such.
    pub limit: u32,
    /// Packets, or particles, in it now.
    pub depth: u32,
}

/// Waits at an output interface since the counters were cleared: from a packet's arrival there, before any queue, to
/// its start on the line. So shaper, queues and transmit ring count, line time and propagation do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
