//! Counters of the engine: the `counters` and `resolve` replies of `docs/internals/control-protocol.md`, as types.
//!
//! Bytes are counted like in IOS: IP packet plus layer-2 header (see
//! [`crate::frame::descriptor::Descriptor::counted_len`]).

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
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

/// All counters, at one time.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct Counters {
    /// Time of the counters.
    pub time_ns: u64,
    /// Time since the engine was created.
    pub uptime_ns: u64,
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// Hits by access list, one element per entry.
    pub access_lists: BTreeMap<String, Vec<AccessEntryCounters>>,
    /// Memory of a switch.
    pub switch: Option<SwitchCounters>,
}

/// Hits of an access list entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[allow(missing_docs)]
pub struct AccessEntryCounters {
    pub packets: u64,
}

/// Interface.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct InterfaceCounters {
    /// Not shut down.
    pub enabled: bool,
    /// Time constant of the averages.
    pub load_interval_s: u32,
    /// Bits per second on the wire.
    pub line_rate_bps: u64,
    /// Frames received from the wire.
    pub input: DirectionCounters,
    /// Frames sent onto the wire.
    pub output: DirectionCounters,
    /// Queue of the interface.
    pub queue: InterfaceQueueCounters,
    /// Conversations of classic weighted fair queueing with waiting packets, those with the most first; at most 256.
    pub conversations: Vec<ConversationCounters>,
    /// Early detection in the queue of the interface.
    pub random_detect: Option<RandomDetectCounters>,
    /// The queues of `priority-group` or `custom-queue-list`, by number.
    pub numbered_queues: Vec<NumberedQueueCounters>,
    /// The shapers of `traffic-shape`, in order.
    pub shapers: Vec<InterfaceShaperCounters>,
    /// Classes and queues of a tree as built by Linux `tc`, in the order of the configuration.
    pub tree: Vec<TreeNodeCounters>,
    /// The transmit ring.
    pub tx_ring: RingCounters,
    /// Waits of packets; null before the first one.
    pub queueing_delay: Option<QueueingDelayCounters>,
    /// Link.
    pub link: LinkCounters,
    /// Always null: hits are counted by access list.
    pub access_list_hits: Option<u64>,
    /// Incoming packets denied by access lists of the interface.
    pub denied_input: Count,
    /// Outgoing packets denied by access lists of the interface.
    pub denied_output: Count,
    /// `rate-limit` lines for input, in order.
    pub rate_limit_input: Vec<RateLimitCounters>,
    /// `rate-limit` lines for output, in order.
    pub rate_limit_output: Vec<RateLimitCounters>,
    /// Input policy.
    pub policy_input: Option<PolicyCounters>,
    /// Output policy.
    pub policy_output: Option<PolicyCounters>,
    /// Subinterfaces by IOS name.
    pub subinterfaces: BTreeMap<String, SubinterfaceCounters>,
    /// Counters of a switch port.
    pub switch: Option<SwitchPortCounters>,
}

/// IEEE 802.1Q subinterface. Its frames also count for the port.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct SubinterfaceCounters {
    /// Not shut down.
    pub enabled: bool,
    /// VLAN.
    pub vlan: u16,
    /// VLAN of untagged frames.
    pub native: bool,
    /// Frames received from the wire.
    pub input: Count,
    /// Frames sent onto the wire.
    pub output: Count,
    /// Input policy.
    pub policy_input: Option<PolicyCounters>,
    /// Output policy.
    pub policy_output: Option<PolicyCounters>,
}

/// Link of an interface: events that the router cannot see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct LinkCounters {
    /// Towards the router. Zero if the other end is an engine too, which counts it as output.
    pub input: PropagationCounters,
    /// Away from the router.
    pub output: PropagationCounters,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct PropagationCounters {
    /// Lost frames; outgoing ones count as output packets, since the router has sent them.
    pub lost: Count,
    /// Frames in transit (on input including those whose last bit has not arrived).
    pub in_flight: u64,
}

/// One direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct DirectionCounters {
    /// Packets.
    pub packets: u64,
    /// Counted bytes.
    pub bytes: u64,
    /// Average in bits per second.
    pub rate_bps: f64,
    /// Average in packets per second.
    pub rate_pps: f64,
    /// Packets dropped for any reason except denial by access lists. (Output drops are not in `packets`; input ones
    /// are, except while the interface is down.)
    pub drops: u64,
}

/// Queueing strategy of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
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
    /// Classes and queues as built by Linux `tc`.
    Tree,
}

/// Queue of an interface, all its parts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct InterfaceQueueCounters {
    /// Queueing strategy.
    pub strategy: Strategy,
    /// Packets in it now (without the transmit ring).
    pub depth: u64,
    /// Maximum number of packets.
    pub limit: u32,
    /// Dropped packets.
    pub drops: u64,
    /// Conversations with packets queued (weighted fair).
    pub conversations: Option<u32>,
    /// Maximum number of conversations.
    pub max_conversations: Option<u32>,
    /// Congestive discard threshold of a conversation.
    pub threshold: Option<u32>,
    /// Maximum number of conversations that had packets queued at the same time.
    pub max_active_conversations: Option<u32>,
    /// Conversations of classes with a bandwidth.
    pub reserved_conversations: Option<ReservedConversations>,
    /// Bandwidth that classes can still reserve, kb/s.
    pub available_bandwidth_kbps: Option<u64>,
}

/// Conversations with a reserved bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ReservedConversations {
    /// Current number.
    pub allocated: u32,
    /// Maximum at the same time.
    pub max: u32,
}

/// The transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct RingCounters {
    /// Capacity in packets in addition to the one on the wire; on ATM in particles.
    pub limit: u32,
    /// Packets, or particles, in it now.
    pub depth: u32,
}

/// Waits at an output interface since the counters were cleared: from a packet's arrival there, before any queue, to
/// its start on the line. So shaper, queues and transmit ring count, but line time and propagation do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct QueueingDelayCounters {
    /// Packets that have started on the line: the interface's output packets.
    pub packets: u64,
    /// Mean wait, rounded down.
    pub mean_ns: u64,
    /// Median wait, within 1 %.
    pub p50_ns: u64,
    /// 99th percentile of the wait, within 1 %.
    pub p99_ns: u64,
    /// Longest wait.
    pub max_ns: u64,
}
