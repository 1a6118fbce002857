//! Configuration types, described in `docs/internals/control-protocol.md`.
//!
//! Parsing checks the shape (unknown keys are refused); [`crate::engine::Engine::configure`] checks the meaning.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::config::catalyst::SwitchConfig;
use crate::config::classification::{AccessListEntry, ClassMap};
use crate::config::interface::InterfaceConfig;
#[cfg(feature = "serde")]
use crate::config::json::from_json;
use crate::config::policy::{PolicyClass, PolicyMap};
#[cfg(feature = "serde")]
use crate::error::ConfigError;

/// Version of the configuration format that this crate reads.
pub const FORMAT: u32 = 1;

/// Complete configuration of a router's data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct RouterConfig {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the router.
    pub router: String,
    /// Generation of IOS to model.
    pub generation: Generation,
    /// Access lists by name or number; the first matching entry decides, and the end of the list denies.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_lists: BTreeMap<String, Vec<AccessListEntry>>,
    /// Class-maps by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub class_maps: BTreeMap<String, ClassMap>,
    /// Policy-maps by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub policy_maps: BTreeMap<String, PolicyMap>,
    /// Interfaces by IOS name. An unnamed port is up, with the rate of its link and default queueing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub interfaces: BTreeMap<String, InterfaceConfig>,
    /// Switch configuration: null for a router.
    pub switch: Option<SwitchConfig>,
}

impl RouterConfig {
    /// Returns a router with default queueing on all its ports.
    pub fn new(router: impl Into<String>, generation: Generation) -> RouterConfig {
        RouterConfig {
            format: FORMAT,
            router: router.into(),
            generation,
            access_lists: BTreeMap::new(),
            class_maps: BTreeMap::new(),
            policy_maps: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            switch: None,
        }
    }

    /// Adds an access list.
    #[must_use]
    pub fn access_list(mut self, name: impl Into<String>, entries: Vec<AccessListEntry>) -> RouterConfig {
        self.access_lists.insert(name.into(), entries);
        self
    }

    /// Adds a class-map.
    #[must_use]
    pub fn class_map(mut self, name: impl Into<String>, class_map: ClassMap) -> RouterConfig {
        self.class_maps.insert(name.into(), class_map);
        self
    }

    /// Adds a policy-map of these classes; `class-default` is added if missing.
    #[must_use]
    pub fn policy_map(mut self, name: impl Into<String>, classes: Vec<PolicyClass>) -> RouterConfig {
        self.policy_maps.insert(name.into(), PolicyMap { classes });
        self
    }

    /// Adds an interface, by its IOS name.
    #[must_use]
    pub fn interface(mut self, name: impl Into<String>, interface: InterfaceConfig) -> RouterConfig {
        self.interfaces.insert(name.into(), interface);
        self
    }

    /// Parses a configuration from JSON text.
    ///
    /// # Errors
    /// The path and reason if the text is not JSON or not of this shape.
    #[cfg(feature = "serde")]
    pub fn from_json(text: &str) -> Result<RouterConfig, ConfigError> {
        from_json(text)
    }
}

/// Generation of IOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum Generation {
    /// 12.4 mainline, and 12.4T up to 12.4(15)T.
    Classic,
    /// The hierarchical queueing framework: 12.4(20)T and later T releases, 15.x.
    Hqf,
    /// IOS-XE 16 and 17 on routers: minimum, maximum and excess.
    #[cfg_attr(feature = "serde", serde(rename = "ios-xe"))]
    IosXe,
}
