//! What the switch counts.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::catalyst_constants::{INPUT_QUEUES, QUEUES, THRESHOLDS};

/// Counters of a switch port, in frames. While QoS is off only the egress queue counts, all of it for queue 4 and
/// threshold 3.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SwitchPortCounters {
    /// IP packets that came, by code point: 64 values.
    pub dscp_in: Vec<u64>,
    /// IP packets that left, by the code point with which they left: 64 values.
    pub dscp_out: Vec<u64>,
    /// Frames that came, by class of service (the port's default for those without a tag).
    pub cos_in: [u64; 8],
    /// Frames that left, by the class of service of their label.
    pub cos_out: [u64; 8],
    /// Frames that joined an ingress queue, by queue and threshold. The ring behind them is never full
    /// (docs/internals/qos-router.md), so none is dropped there.
    pub input_enqueued: [[u64; THRESHOLDS]; INPUT_QUEUES],
    /// Frames that joined an egress queue, by queue and threshold.
    pub enqueued: [[u64; THRESHOLDS]; QUEUES],
    /// Frames that an egress queue did not take, by queue and threshold.
    pub dropped: [[u64; THRESHOLDS]; QUEUES],
    /// The ingress policers.
    pub policer: ProfileCounters,
    /// Cells that each egress queue holds, those of the frame on the wire included.
    pub depth_cells: [u32; QUEUES],
    /// Frames that wait in each egress queue.
    pub depth_packets: [u64; QUEUES],
    /// The bandwidth of the port after `srr-queue bandwidth limit`, per cent.
    pub operational_bandwidth_percent: f64,
}

/// Frames that passed the ingress policers of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProfileCounters {
    /// Conforming.
    pub in_profile: u64,
    /// Exceeding.
    pub out_of_profile: u64,
}

/// The egress memory in cells, of the ASICs up to that of the last wired port together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SwitchCounters {
    /// All cells.
    pub cells_total: u32,
    /// Reserved for queues, those of unwired ports included.
    pub cells_reserved: u32,
    /// Neither reserved nor set aside for the switch's own processor.
    pub cells_common: u32,
    /// What of that is free.
    pub cells_common_free: u32,
}
