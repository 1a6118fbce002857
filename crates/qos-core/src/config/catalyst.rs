//! Configuration of a switch.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// `mls qos` and all related global settings. A configuration with this makes every port a switch port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct SwitchConfig {
    /// `mls qos`.
    pub qos: bool,
    /// `mls qos rewrite ip dscp`.
    pub rewrite_ip_dscp: bool,
    /// Maps, each complete.
    pub maps: MapsConfig,
    /// The two egress queue-sets.
    pub queue_sets: [QueueSetConfig; 2],
    /// The ingress queues.
    pub input: InputQueuesConfig,
    /// `mls qos aggregate-policer`, by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub aggregate_policers: BTreeMap<String, AggregatePolicerConfig>,
    /// Input policy-maps of `interface Vlan`, by VLAN: applied to packets from ports with `vlan_based`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub vlan_policies: BTreeMap<u16, String>,
}

/// QoS maps. A queue and threshold is `[queue, threshold]`, each from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct MapsConfig {
    /// Code point for each class of service.
    pub cos_dscp: [u8; 8],
    /// Code point for each IP precedence.
    pub ip_prec_dscp: [u8; 8],
    /// Class of service for each code point: 64 values.
    #[cfg_attr(feature = "serde", schemars(length(equal = 64)))]
    pub dscp_cos: Vec<u8>,
    /// Code point of a packet that is out of profile, for each code point: 64 values.
    #[cfg_attr(feature = "serde", schemars(length(equal = 64)))]
    pub policed_dscp: Vec<u8>,
    /// Mutation maps by name: 64 values each.
    #[cfg_attr(feature = "serde", serde(default))]
    pub dscp_mutation: BTreeMap<String, Vec<u8>>,
    /// Egress queue (1 to 4) and threshold (1 to 3) for each class of service.
    pub cos_output_q: [[u8; 2]; 8],
    /// Egress queue and threshold for each code point: 64 pairs.
    #[cfg_attr(feature = "serde", schemars(length(equal = 64)))]
    pub dscp_output_q: Vec<[u8; 2]>,
    /// Ingress queue (1 or 2) and threshold (1 to 3) for each class of service.
    pub cos_input_q: [[u8; 2]; 8],
    /// Ingress queue and threshold for each code point: 64 pairs.
    #[cfg_attr(feature = "serde", schemars(length(equal = 64)))]
    pub dscp_input_q: Vec<[u8; 2]>,
}

/// `mls qos queue-set output`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct QueueSetConfig {
    /// Share of each queue in the buffers of a port in per cent; together 100.
    pub buffers: [u32; 4],
    /// Thresholds of each queue.
    pub thresholds: [QueueThresholds; 4],
}

/// Thresholds of an egress queue, in per cent of its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct QueueThresholds {
    /// First drop threshold, 1 to 3200.
    pub t1: u32,
    /// Second drop threshold, 1 to 3200.
    pub t2: u32,
    /// Reserved part, 1 to 100.
    pub reserved: u32,
    /// Maximum of the queue, 1 to 3200; the third threshold.
    pub maximum: u32,
}

/// `mls qos srr-queue input`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct InputQueuesConfig {
    /// Shares of the buffers in per cent; together 100.
    pub buffers: [u32; 2],
    /// Share weights, 1 to 100.
    pub bandwidth: [u32; 2],
    /// First and second drop threshold of each queue in per cent, 1 to 100.
    pub thresholds: [[u32; 2]; 2],
    /// Priority queue.
    pub priority: InputPriorityConfig,
}

/// `mls qos srr-queue input priority-queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct InputPriorityConfig {
    /// Number of the queue, 1 or 2.
    pub queue: u32,
    /// Share of the ring that it gets before the others, 0 to 40 per cent.
    pub bandwidth: u32,
}

/// `mls qos aggregate-policer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct AggregatePolicerConfig {
    /// Bits per second, 8000 to 10 000 000 000.
    pub rate_bps: u64,
    /// Bytes, 8000 to 1 000 000.
    pub burst_bytes: u64,
    /// Action for packets out of profile.
    pub exceed: ExceedAction,
}

/// Action of a switch's policer for packets out of profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "kebab-case"))]
pub enum ExceedAction {
    /// Drop them.
    Drop,
    /// Mark them down by the policed-dscp map.
    PolicedDscpTransmit,
}

/// Trusted field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "kebab-case"))]
pub enum Trust {
    /// Code point of the packet.
    Dscp,
    /// Class of service of the tag, or that of the port for an untagged frame.
    Cos,
    /// IP precedence of the packet.
    IpPrecedence,
}

/// Switch configuration of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct SwitchPortConfig {
    /// `mls qos trust`; null for untrusted.
    pub trust: Option<Trust>,
    /// `mls qos cos`, 0 to 7.
    #[cfg_attr(feature = "serde", serde(default))]
    pub default_cos: u8,
    /// `mls qos cos override`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cos_override: bool,
    /// `mls qos dscp-mutation`: name of a mutation map. Takes effect on a port that trusts the code point.
    pub dscp_mutation: Option<String>,
    /// `srr-queue bandwidth shape`: 0 (shared) to 65535; the queue gets 1/N of the port's speed.
    #[cfg_attr(feature = "serde", serde(default = "default_shape"))]
    pub shape: [u32; 4],
    /// `srr-queue bandwidth share`, 1 to 255.
    #[cfg_attr(feature = "serde", serde(default = "default_share"))]
    pub share: [u32; 4],
    /// `srr-queue bandwidth limit`: 10 to 90 per cent, or 100 for none.
    #[cfg_attr(feature = "serde", serde(default = "default_limit"))]
    pub limit: u32,
    /// `priority-queue out`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub priority_queue: bool,
    /// `queue-set`, 1 or 2.
    #[cfg_attr(feature = "serde", serde(default = "default_queue_set"))]
    pub queue_set: u32,
    /// `mls qos vlan-based`: the policies of its VLANs apply; the port has no policy.
    #[cfg_attr(feature = "serde", serde(default))]
    pub vlan_based: bool,
    /// Null for a routed port (`no switchport`).
    pub switchport: Option<SwitchportConfig>,
    /// `speed`, at most the link's rate; null for the link's.
    pub speed_bps: Option<u64>,
}

/// Defaults of the platform, for a routed port.
impl Default for SwitchPortConfig {
    fn default() -> SwitchPortConfig {
        SwitchPortConfig {
            trust: None,
            default_cos: 0,
            cos_override: false,
            dscp_mutation: None,
            shape: default_shape(),
            share: default_share(),
            limit: default_limit(),
            priority_queue: false,
            queue_set: default_queue_set(),
            vlan_based: false,
            switchport: None,
            speed_bps: None,
        }
    }
}

fn default_shape() -> [u32; 4] {
    [25, 0, 0, 0]
}

fn default_share() -> [u32; 4] {
    [25; 4]
}

fn default_limit() -> u32 {
    100
}

fn default_queue_set() -> u32 {
    1
}

/// Switch port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct SwitchportConfig {
    /// Access or trunk.
    pub mode: SwitchportMode,
    /// The VLAN of an access port, the native VLAN of a trunk: 1 to 4094.
    pub vlan: u16,
}

/// Switching mode of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum SwitchportMode {
    /// One VLAN, untagged.
    Access,
    /// All VLANs, with IEEE 802.1Q tags; the native one untagged.
    Trunk,
}
