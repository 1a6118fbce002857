//! Counters of the switch.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::catalyst_constants::{INPUT_QUEUES, QUEUES, THRESHOLDS};

/// Counters of a switch port, in frames. While QoS is off only the egress queue counts, all frames for queue 4 and
/// threshold 3.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct SwitchPortCounters {
    /// Received IP packets by code point: 64 values.
    pub dscp_in: Vec<u64>,
    /// Sent IP packets by the code point at departure: 64 values.
    pub dscp_out: Vec<u64>,
    /// Received frames by class of service (the port's default for untagged ones).
    pub cos_in: [u64; 8],
    /// Sent frames by the class of service of their label.
    pub cos_out: [u64; 8],
    /// Frames that joined an ingress queue, by queue and threshold. The ring behind them is never full
    /// (docs/internals/qos-router.md), so none is dropped there.
    pub input_enqueued: [[u64; THRESHOLDS]; INPUT_QUEUES],
    /// Frames that joined an egress queue, by queue and threshold.
    pub enqueued: [[u64; THRESHOLDS]; QUEUES],
    /// Frames dropped at an egress queue, by queue and threshold.
    pub dropped: [[u64; THRESHOLDS]; QUEUES],
    /// Ingress policers.
    pub policer: ProfileCounters,
    /// Cells in each egress queue, including those of the frame on the wire.
    pub depth_cells: [u32; QUEUES],
    /// Frames that wait in each egress queue.
    pub depth_packets: [u64; QUEUES],
    /// Bandwidth of the port after `srr-queue bandwidth limit`, per cent.
    pub operational_bandwidth_percent: f64,
}

/// Frames at the ingress policers of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ProfileCounters {
    /// Conforming.
    pub in_profile: u64,
    /// Exceeding.
    pub out_of_profile: u64,
}

/// Egress memory in cells, of all ASICs up to that of the last connected port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct SwitchCounters {
    /// All cells.
    pub cells_total: u32,
    /// Cells reserved for queues, including those of unconnected ports.
    pub cells_reserved: u32,
    /// Cells neither reserved for queues nor for the processor of the switch.
    pub cells_common: u32,
    /// Free cells among these.
    pub cells_common_free: u32,
}
