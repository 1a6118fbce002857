//! The configuration of an interface.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::catalyst::SwitchPortConfig;
use crate::config::defaults::LOAD_INTERVAL_S;
use crate::config::interface_queueing::InterfaceQueueing;
use crate::config::queueing::{InterfaceFairQueue, RandomDetectConfig};
use crate::config::rate_limit::RateLimitConfig;
use crate::wire::framing::Framing;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct InterfaceConfig {
    /// Not shut down.
    pub enabled: bool,
    /// The `bandwidth` statement in kb/s: base of percentages and of the default queueing.
    pub bandwidth_kbps: u64,
    /// `clock rate`: replaces the link's rate (serial only).
    #[cfg_attr(feature = "serde", serde(default))]
    pub clock_rate_bps: Option<u64>,
    /// Encapsulation; null for the port's own.
    #[cfg_attr(feature = "serde", serde(default))]
    pub encapsulation: Option<Framing>,
    /// The traffic contract of the virtual circuit (ATM only); null for the link's rate.
    #[cfg_attr(feature = "serde", serde(default))]
    pub virtual_circuit: Option<VirtualCircuitConfig>,
    /// Time constant of averages in seconds, 30 to 600 in steps of 30.
    #[cfg_attr(feature = "serde", serde(default = "default_load_interval"))]
    pub load_interval_s: u32,
    /// Packets in the transmit ring beside the one on the wire, on ATM particles; null for the default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tx_ring_limit: Option<u32>,
    /// `hold-queue N out`: packets in the interface's queue; null for the default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub hold_queue_out: Option<u32>,
    /// Weighted fair queueing on the interface; null for the platform's default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub fair_queue: Option<InterfaceFairQueue>,
    /// Weighted random early detection on the interface, in whose queue packets then are first in, first out; with a
    /// queueing policy or other queueing it does nothing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub random_detect: Option<RandomDetectConfig>,
    /// Queueing without a policy-map, in place of the default; null for none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queueing: Option<InterfaceQueueing>,
    /// `max-reserved-bandwidth`: per cent of the bandwidth that classes may reserve (classic only); null for 75.
    #[cfg_attr(feature = "serde", serde(default))]
    pub max_reserved_percent: Option<u32>,
    /// `ip tcp adjust-mss`: the most bytes of a TCP segment over IPv4 that SYNs through it may ask for, either way; 500
    /// to 1460. The engine, which knows no options, only carries it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tcp_adjust_mss: Option<u16>,
    /// Access lists that what comes in has to be permitted by (`ip access-group`, `ipv6 traffic-filter`): at most one
    /// of a family, for packets of that family. One without entries permits everything.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_input: Vec<String>,
    /// Access lists that what goes out has to be permitted by, but for what the router itself sends.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_output: Vec<String>,
    /// `rate-limit input`, in order; ahead of the policy-map.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rate_limit_input: Vec<RateLimitConfig>,
    /// `rate-limit output`, in order; ahead of the policy-map.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rate_limit_output: Vec<RateLimitConfig>,
    /// Policy-map applied to what comes in.
    #[cfg_attr(feature = "serde", serde(default))]
    pub service_policy_input: Option<String>,
    /// Policy-map applied to what goes out.
    #[cfg_attr(feature = "serde", serde(default))]
    pub service_policy_output: Option<String>,
    /// Its IEEE 802.1Q subinterfaces by IOS name. With some the port takes the frames of their VLANs and those without
    /// a tag, and no others.
    #[cfg_attr(feature = "serde", serde(default))]
    pub subinterfaces: BTreeMap<String, SubinterfaceConfig>,
    /// The switch's part: null on a router, and for the platform's defaults on a switch.
    #[cfg_attr(feature = "serde", serde(default))]
    pub switch: Option<SwitchPortConfig>,
}

/// Traffic contract of a virtual circuit (ATM Forum TM 4.0), counted in whole cells with their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct VirtualCircuitConfig {
    /// Peak cell rate, b/s; at most the link's rate counts.
    pub peak_bps: u64,
    /// Sustainable cell rate, b/s, at most the peak (`vbr-nrt`); null for the peak (`ubr`, `cbr`).
    #[cfg_attr(feature = "serde", serde(default))]
    pub sustainable_bps: Option<u64>,
    /// Maximum burst size: cells that may leave at the peak; null for the default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub burst_cells: Option<u32>,
}

/// An IEEE 802.1Q subinterface of a router's Ethernet port.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SubinterfaceConfig {
    /// Not shut down.
    pub enabled: bool,
    /// Its VLAN, 1 to 4094.
    pub vlan: u16,
    /// The VLAN of the frames without a tag.
    #[cfg_attr(feature = "serde", serde(default))]
    pub native: bool,
    /// The `bandwidth` statement in kb/s, or the port's: base of its policies' percentages.
    pub bandwidth_kbps: u64,
    /// The interface that leads to the router's own IP stack, as a port's `inside`. The engine only carries it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub inside: Option<String>,
    /// `ip tcp adjust-mss`: the most bytes of a TCP segment over IPv4 that SYNs through it may ask for, either way; 500
    /// to 1460. The engine, which knows no options, only carries it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tcp_adjust_mss: Option<u16>,
    /// Access lists that what comes in has to be permitted by (`ip access-group`, `ipv6 traffic-filter`): at most one
    /// of a family, for packets of that family. One without entries permits everything.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_input: Vec<String>,
    /// Access lists that what goes out has to be permitted by, but for what the router itself sends.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_groups_output: Vec<String>,
    /// Policy-map applied to what comes in.
    #[cfg_attr(feature = "serde", serde(default))]
    pub service_policy_input: Option<String>,
    /// Policy-map applied to what goes out. One that queues does so below a shaper.
    #[cfg_attr(feature = "serde", serde(default))]
    pub service_policy_output: Option<String>,
}

impl SubinterfaceConfig {
    /// A subinterface for tagged frames of a VLAN, without a policy.
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

    /// With a policy-map applied to what comes in.
    #[must_use]
    pub fn input(mut self, policy_map: impl Into<String>) -> SubinterfaceConfig {
        self.service_policy_input = Some(policy_map.into());
        self
    }

    /// With a policy-map applied to what goes out.
    #[must_use]
    pub fn output(mut self, policy_map: impl Into<String>) -> SubinterfaceConfig {
        self.service_policy_output = Some(policy_map.into());
        self
    }
}

impl InterfaceConfig {
    /// An interface that is up, with default queueing and no policy; `bandwidth_kbps` is its `bandwidth` statement.
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

    /// With a policy-map applied to what comes in.
    #[must_use]
    pub fn input(mut self, policy_map: impl Into<String>) -> InterfaceConfig {
        self.service_policy_input = Some(policy_map.into());
        self
    }

    /// With a policy-map applied to what goes out.
    #[must_use]
    pub fn output(mut self, policy_map: impl Into<String>) -> InterfaceConfig {
        self.service_policy_output = Some(policy_map.into());
        self
    }

    /// With a subinterface, by its IOS name.
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
