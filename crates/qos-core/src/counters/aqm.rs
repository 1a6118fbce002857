//! Counters of queues with active queue management, and nodes of a tree of queues.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::counters::count::Count;

/// Node of a tree of queues (`tc class` and `tc qdisc`).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct TreeNodeCounters {
    /// Name.
    pub name: String,
    /// Name of the parent node; null for the outermost ones.
    pub parent: Option<String>,
    /// Discipline by its name in `tc` (`fq_codel`); null for a class with child classes.
    pub discipline: Option<String>,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now.
    pub depth_bytes: u64,
    /// Sent packets.
    pub sent: Count,
    /// Packets dropped by its queue, for any reason.
    pub drops: Count,
    /// Packets marked by its queue instead of dropped.
    pub marked: Count,
    /// Counters of a queue with active queue management.
    pub managed: Option<ManagedCounters>,
}

/// Queue with active queue management.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ManagedCounters {
    /// Dropped because the queue was full.
    pub overlimit: Count,
    /// Dropped by the control law.
    pub early: Count,
    /// Marked instead of dropped (RFC 3168).
    pub marked: Count,
    /// Marked because they had waited longer than `ce_threshold`.
    pub marked_over_threshold: Count,
    /// Wait of the last packet sent.
    pub sojourn_ns: Option<u64>,
    /// PIE: the drop probability, 0 to 1.
    pub probability: Option<f64>,
    /// PIE: the queueing delay measured by the controller.
    pub delay_ns: Option<u64>,
    /// Flow queues of FQ-CoDel and CAKE.
    pub flows: Option<FlowsCounters>,
    /// Tins of CAKE, in the kernel's order: best effort first; with several tins bulk is the second one.
    pub tins: Vec<TinCounters>,
}

/// Flow queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct FlowsCounters {
    /// Queues with packets; of CAKE those that may have some.
    pub active: u32,
    /// All queues.
    pub most: u32,
    /// Number of times that a flow became active.
    pub begun: u64,
    /// Flows in the list of those that have just become active.
    pub new: u32,
    /// Flows in the list of the others.
    pub old: u32,
}

/// Tin of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct TinCounters {
    /// Rate up to which it has priority; 0 without a shaper.
    pub threshold_bps: u64,
    /// Acceptable delay.
    pub target_ns: u64,
    /// Time above the target before the first signal.
    pub interval_ns: u64,
    /// Average wait of sent packets.
    pub average_delay_ns: u64,
    /// Average of the longest waits.
    pub peak_delay_ns: u64,
    /// Packets now.
    pub depth_packets: u64,
    /// Counted bytes now.
    pub depth_bytes: u64,
    /// Sent packets.
    pub sent: Count,
    /// Dropped because the buffer was full.
    pub overlimit: Count,
    /// Dropped by COBALT.
    pub early: Count,
    /// Marked.
    pub marked: Count,
    /// Packets whose flow has a queue other than that of its hash.
    pub way_indirect_hits: u64,
    /// Packets that started a flow.
    pub way_misses: u64,
    /// Packets of flows that share a queue.
    pub way_collisions: u64,
    /// Flows that have just become active.
    pub sparse_flows: u32,
    /// Other flows.
    pub bulk_flows: u32,
}
