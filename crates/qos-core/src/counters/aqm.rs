//! What queues with active queue management count, and the nodes of a tree of queues.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::counters::count::Count;

/// A node of a tree of queues (`tc class` and `tc qdisc`).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TreeNodeCounters {
    /// Its name.
    pub name: String,
    /// The name of the node above it; null for the outermost ones.
    pub parent: Option<String>,
    /// Its discipline as `tc` names it (`fq_codel`); null for a class that has classes below it.
    pub discipline: Option<String>,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now.
    pub depth_bytes: u64,
    /// What left.
    pub sent: Count,
    /// What its queue dropped, for any reason.
    pub drops: Count,
    /// What its queue marked in place of a drop.
    pub marked: Count,
    /// Of a queue with active queue management.
    pub managed: Option<ManagedCounters>,
}

/// A queue with active queue management.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ManagedCounters {
    /// Dropped because the queue was full.
    pub overlimit: Count,
    /// Dropped by the control law.
    pub early: Count,
    /// Marked in place of a drop (RFC 3168).
    pub marked: Count,
    /// Marked because they had waited longer than `ce_threshold`.
    pub marked_over_threshold: Count,
    /// Wait of the packet that left last.
    pub sojourn_ns: Option<u64>,
    /// PIE: the drop probability, 0 to 1.
    pub probability: Option<f64>,
    /// PIE: the queueing delay that the controller sees.
    pub delay_ns: Option<u64>,
    /// Flow queues of FQ-CoDel and CAKE.
    pub flows: Option<FlowsCounters>,
    /// The tins of CAKE, in the kernel's order: best effort first; with several tins bulk is the second one.
    pub tins: Vec<TinCounters>,
}

/// Flow queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FlowsCounters {
    /// With packets; of CAKE those that may have some.
    pub active: u32,
    /// All.
    pub most: u32,
    /// Times that a flow became active.
    pub begun: u64,
    /// In the list of flows that have just become active.
    pub new: u32,
    /// In the list of the others.
    pub old: u32,
}

/// A tin of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TinCounters {
    /// Rate up to which it has priority; 0 without a shaper.
    pub threshold_bps: u64,
    /// Acceptable delay.
    pub target_ns: u64,
    /// Time above the target before the first signal.
    pub interval_ns: u64,
    /// Average wait of packets that left.
    pub average_delay_ns: u64,
    /// Average of the longest waits.
    pub peak_delay_ns: u64,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now.
    pub depth_bytes: u64,
    /// What left.
    pub sent: Count,
    /// Dropped because the buffer was full.
    pub overlimit: Count,
    /// Dropped by COBALT.
    pub early: Count,
    /// Marked.
    pub marked: Count,
    /// Packets whose flow had another queue than that of its hash.
    pub way_indirect_hits: u64,
    /// Packets that began a flow.
    pub way_misses: u64,
    /// Packets of flows that share a queue.
    pub way_collisions: u64,
    /// Flows that have just become active.
    pub sparse_flows: u32,
    /// The others.
    pub bulk_flows: u32,
}
