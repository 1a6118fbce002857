//! Configuration of an interface.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::catalyst::SwitchPortConfig;
use crate::config::defaults::LOAD_INTERVAL_S;
use crate::config::interface_queueing::InterfaceQueueing;
use crate::config::queueing::{InterfaceFairQueue, RandomDetectConfig};
use crate::config::rate_limit::RateLimitConfig;
use crate::wire::framing::Framing;

/// Interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct InterfaceConfig {
    /// Not shut down.
    pub enabled: bool,
    /// The `bandwidth` statement in kb/s: base of percentages and of the default queueing.
    pub bandwidth_kbps: u64,
    /// `clock rate`: replaces the link's rate (serial only).
    pub clock_rate_bps: Option<u64>,
    /// Encapsulation; null for the port's own.
    pub encapsulation: Option<Framing>,
    /// The traffic contract of the virtual circuit (ATM only); null for the link's rate.
    pub virtual_circuit: Option<VirtualCircuitConfig>,
    /// Time constant of averages in seconds, 30 to 600 in steps of 30.
    #[cfg_attr(feature = "serde", serde(default = "default_load_interval"))]
    pub load_interval_s: u32,
    /// Limit of the transmit ring in packets, or particles on ATM, in addition to the packet on the wire; null for the
    /// default.
    pub tx_ring_limit: Option<u32>,
    /// `hold-queue N out`: maximum number of packets in the interface's queue; null for the default.
    pub hold_queue_out: Option<u32>,
    /// Weighted fair queueing on the interface; null for the platform's default.
    pub fair_queue: Option<InterfaceFairQueue>,
    /// Weighted random early detection on the interface, whose queue is then first in, first out; without effect with a
    /// queueing policy or other queueing.
    pub random_detect: Option<RandomDetectConfig>,
    /// Queueing without a policy-map, in place of the default; null for none.
    pub queueing: Option<InterfaceQueueing>,
    /// `max-reserved-bandwidth`: per cent of the bandwidth that classes can reserve (classic only); null for 75.
    pub max_reserved_percent: Option<u32>,
    /// `ip tcp adjust-mss`: maximum segment size in SYNs over IPv4 through the interface, in both directions, from
    /// 500 to 1460. The engine does not parse options and only carries it.
    pub tcp_adjust_mss: Option<u16>,
    /// Access lists for incoming packets (`ip access-group`, `ipv6 traffic-filter`): at most one per IP version, for
    /// packets of that version. One without entries permits everything.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_input: Vec<String>,
    /// Access lists for outgoing packets, except those of the router itself.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_output: Vec<String>,
    /// `rate-limit input`, in order; ahead of the policy-map.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rate_limit_input: Vec<RateLimitConfig>,
    /// `rate-limit output`, in order; ahead of the policy-map.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rate_limit_output: Vec<RateLimitConfig>,
    /// Policy-map for input.
    pub service_policy_input: Option<String>,
    /// Policy-map for output.
    pub service_policy_output: Option<String>,
    /// IEEE 802.1Q subinterfaces by IOS name. With some the port accepts only the frames of their VLANs and untagged
    /// ones.
    #[cfg_attr(feature = "serde", serde(default))]
    pub subinterfaces: BTreeMap<String, SubinterfaceConfig>,
    /// Switch configuration: null on a router, and for the platform's defaults on a switch.
    pub switch: Option<SwitchPortConfig>,
}

/// Traffic contract of a virtual circuit (ATM Forum TM 4.0), counted in whole cells with their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct VirtualCircuitConfig {
    /// Peak cell rate, b/s; at most the link's rate counts.
    pub peak_bps: u64,
    /// Sustainable cell rate, b/s, at most the peak (`vbr-nrt`); null for the peak (`ubr`, `cbr`).
    pub sustainable_bps: Option<u64>,
    /// Maximum burst size: cells that can leave at the peak rate; null for the default.
    pub burst_cells: Option<u32>,
}

/// IEEE 802.1Q subinterface of a router's Ethernet port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct SubinterfaceConfig {
    /// Not shut down.
    pub enabled: bool,
    /// VLAN, 1 to 4094.
    pub vlan: u16,
    /// VLAN of untagged frames.
    #[cfg_attr(feature = "serde", serde(default))]
    pub native: bool,
    /// `bandwidth` statement in kb/s, or the port's: base of the percentages in its policies.
    pub bandwidth_kbps: u64,
    /// Interface that leads to the router's IP stack, like a port's `inside`. The engine only carries it.
    pub inside: Option<String>,
    /// `ip tcp adjust-mss`: maximum segment size in SYNs over IPv4 through the interface, in both directions, from
    /// 500 to 1460. The engine does not parse options and only carries it.
    pub tcp_adjust_mss: Option<u16>,
    /// Access lists for incoming packets (`ip access-group`, `ipv6 traffic-filter`): at most one per IP version, for
    /// packets of that version. One without entries permits everything.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_input: Vec<String>,
    /// Access lists for outgoing packets, except those of the router itself.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_output: Vec<String>,
    /// Policy-map for input.
    pub service_policy_input: Option<String>,
    /// Policy-map for output. One with queues needs a shaper above them.
    pub service_policy_output: Option<String>,
}

impl SubinterfaceConfig {
    /// Returns a subinterface for tagged frames of a VLAN, without a policy.
    pub fn new(vlan: u16, bandwidth_kbps: u64) -> SubinterfaceConfig {
        SubinterfaceConfig {
            enabled: true,
            vlan,
            native: false,
            bandwidth_kbps,
            inside: None,
            tcp_adjust_mss: None,
            access_groups_input: Vec::new(),
            access_groups_output: Vec::new(),
            service_policy_input: None,
            service_policy_output: None,
        }
    }

    /// Adds a policy-map for input.
    #[must_use]
    pub fn input(mut self, policy_map: impl Into<String>) -> SubinterfaceConfig {
        self.service_policy_input = Some(policy_map.into());
        self
    }

    /// Adds a policy-map for output.
    #[must_use]
    pub fn output(mut self, policy_map: impl Into<String>) -> SubinterfaceConfig {
        self.service_policy_output = Some(policy_map.into());
        self
    }
}

impl InterfaceConfig {
    /// Returns an interface that is up, with default queueing and no policy; `bandwidth_kbps` is its `bandwidth`
    /// statement.
    pub fn new(bandwidth_kbps: u64) -> InterfaceConfig {
        InterfaceConfig {
            enabled: true,
            bandwidth_kbps,
            clock_rate_bps: None,
            encapsulation: None,
            virtual_circuit: None,
            load_interval_s: LOAD_INTERVAL_S,
            tx_ring_limit: None,
            hold_queue_out: None,
            fair_queue: None,
            random_detect: None,
            queueing: None,
            max_reserved_percent: None,
            tcp_adjust_mss: None,
            access_groups_input: Vec::new(),
            access_groups_output: Vec::new(),
            rate_limit_input: Vec::new(),
            rate_limit_output: Vec::new(),
            service_policy_input: None,
            service_policy_output: None,
            subinterfaces: BTreeMap::new(),
            switch: None,
        }
    }

    /// Adds a policy-map for input.
    #[must_use]
    pub fn input(mut self, policy_map: impl Into<String>) -> InterfaceConfig {
        self.service_policy_input = Some(policy_map.into());
        self
    }

    /// Adds a policy-map for output.
    #[must_use]
    pub fn output(mut self, policy_map: impl Into<String>) -> InterfaceConfig {
        self.service_policy_output = Some(policy_map.into());
        self
    }

    /// Adds a subinterface, by its IOS name.
    #[must_use]
    pub fn subinterface(mut self, name: impl Into<String>, subinterface: SubinterfaceConfig) -> InterfaceConfig {
        self.subinterfaces.insert(name.into(), subinterface);
        self
    }
}

#[cfg(feature = "serde")]
fn default_load_interval() -> u32 {
    LOAD_INTERVAL_S
}
