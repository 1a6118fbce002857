//! The configuration: what `docs/control-protocol.md` describes, as types.
//!
//! Reading checks the shape (unknown keys are refused); [`crate::Engine::configure`] checks the meaning.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::switch::config::{SwitchConfig, SwitchPortConfig};

mod classification;
mod policy;
mod queueing;
mod wiring;

pub use classification::{
    AccessAction, AccessListEntry, AddressMatch, ClassMap, Criterion, MatchMode, PortMatch, PortOperator, ProtocolName,
};
pub use policy::{
    DynamicBucketConfig, FairQueueConfig, PoliceAction, PoliceBurst, PoliceConfig, PoliceForm, PolicyClass, PolicyMap,
    QueueLimit, RateSpec, SetAction, SetField, ShapeBurst, ShapeConfig, ShapeMode,
};
pub use queueing::{
    BandwidthConfig, InterfaceFairQueue, PriorityConfig, PriorityUnit, RandomDetectBasis, RandomDetectConfig,
    RandomDetectThreshold,
};
pub use wiring::{Framing, JitterConfig, JitterDistribution, LinkConfig, LossConfig, PortConfig, PortsConfig};

/// The version of the configuration format that this crate reads.
pub const FORMAT: u32 = 1;

/// A configuration that cannot be used: where and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where in the configuration, e.g. `policy_maps.Police.classes[0].police.bc`; empty for the whole.
    pub path: String,
    /// What was found, what was expected and what to do.
    pub message: String,
}

impl ConfigError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for ConfigError {}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| path_error(&error))?;
    deserializer.end().map_err(|error| ConfigError::new("", error.to_string()))?;
    Ok(value)
}

fn path_error(error: &serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
    let path = error.path().to_string();
    ConfigError::new(if path == "." { String::new() } else { path }, error.inner().to_string())
}

/// The complete configuration of a router's data plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterConfig {
    /// [`FORMAT`].
    pub format: u32,
    /// The router's name.
    pub router: String,
    /// Which generation of IOS to behave like.
    pub generation: Generation,
    /// Access lists by name or number; the first entry that matches decides, and the end of the list denies.
    #[serde(default)]
    pub access_lists: BTreeMap<String, Vec<AccessListEntry>>,
    /// Class-maps by name.
    #[serde(default)]
    pub class_maps: BTreeMap<String, ClassMap>,
    /// Policy-maps by name.
    #[serde(default)]
    pub policy_maps: BTreeMap<String, PolicyMap>,
    /// Interfaces by IOS name. A port that is not named here is up, with its link's own rate and default queueing.
    #[serde(default)]
    pub interfaces: BTreeMap<String, InterfaceConfig>,
    /// The switch: null for a router.
    #[serde(default)]
    pub switch: Option<SwitchConfig>,
    /// Nanoseconds that process level takes for a packet of the router's own or for the router itself; null: none, and the kernel's
    /// answers count as they come. The engine only carries it to the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_ns: Option<u64>,
    /// The router's own probes; the engine only carries them to the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_sla: Option<ip_sla::Config>,
}

impl RouterConfig {
    /// Reads a configuration from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    pub fn from_json(text: &str) -> Result<RouterConfig, ConfigError> {
        from_json(text)
    }

    /// Reads a configuration from a JSON value.
    ///
    /// # Errors
    /// The path and reason when the value is not of this shape.
    pub fn from_value(value: &serde_json::Value) -> Result<RouterConfig, ConfigError> {
        serde_path_to_error::deserialize(value).map_err(|error| path_error(&error))
    }
}

/// A generation of IOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// 12.4 mainline and 12.4(15)T and before.
    Classic,
    /// The hierarchical queueing framework: 12.4(20)T and later T releases, 15.x.
    Hqf,
}

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
    crate::defaults::LOAD_INTERVAL_S
}
