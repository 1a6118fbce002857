//! The configuration of an interface.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::catalyst::SwitchPortConfig;
use crate::config::queueing::InterfaceFairQueue;
use crate::wire::framing::Framing;

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
    crate::config::defaults::LOAD_INTERVAL_S
}
