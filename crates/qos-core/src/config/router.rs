//! The configuration: what `docs/control-protocol.md` describes, as types.
//!
//! Reading checks the shape (unknown keys are refused); [`crate::engine::Engine::configure`] checks the meaning.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::catalyst::SwitchConfig;
use crate::config::classification::{AccessListEntry, ClassMap};
use crate::config::interface::InterfaceConfig;
use crate::config::json::{from_json, path_error};
use crate::config::policy::PolicyMap;
use crate::error::ConfigError;

/// The version of the configuration format that this crate reads.
pub const FORMAT: u32 = 1;

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
