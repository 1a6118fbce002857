//! The configuration: what `docs/internals/control-protocol.md` describes, as types.
//!
//! Reading checks the shape (unknown keys are refused); [`crate::engine::Engine::configure`] checks the meaning.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
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

/// The version of the configuration format that this crate reads.
pub const FORMAT: u32 = 1;

/// The complete configuration of a router's data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RouterConfig {
    /// [`FORMAT`].
    pub format: u32,
    /// The router's name.
    pub router: String,
    /// Which generation of IOS to behave like.
    pub generation: Generation,
    /// Access lists by name or number; the first entry that matches decides, and the end of the list denies.
    #[cfg_attr(feature = "serde", serde(default))]
    pub access_lists: BTreeMap<String, Vec<AccessListEntry>>,
    /// Class-maps by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub class_maps: BTreeMap<String, ClassMap>,
    /// Policy-maps by name.
    #[cfg_attr(feature = "serde", serde(default))]
    pub policy_maps: BTreeMap<String, PolicyMap>,
    /// Interfaces by IOS name. A port that is not named here is up, with its link's own rate and default queueing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub interfaces: BTreeMap<String, InterfaceConfig>,
    /// The switch: null for a router.
    #[cfg_attr(feature = "serde", serde(default))]
    pub switch: Option<SwitchConfig>,
}

impl RouterConfig {
    /// A router with default queueing on all its ports.
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

    /// With an access list.
    #[must_use]
    pub fn access_list(mut self, name: impl Into<String>, entries: Vec<AccessListEntry>) -> RouterConfig {
        self.access_lists.insert(name.into(), entries);
        self
    }

    /// With a class-map.
    #[must_use]
    pub fn class_map(mut self, name: impl Into<String>, class_map: ClassMap) -> RouterConfig {
        self.class_maps.insert(name.into(), class_map);
        self
    }

    /// With a policy-map of these classes; `class-default` is added where it is missing.
    #[must_use]
    pub fn policy_map(mut self, name: impl Into<String>, classes: Vec<PolicyClass>) -> RouterConfig {
        self.policy_maps.insert(name.into(), PolicyMap { classes });
        self
    }

    /// With an interface, by its IOS name.
    #[must_use]
    pub fn interface(mut self, name: impl Into<String>, interface: InterfaceConfig) -> RouterConfig {
        self.interfaces.insert(name.into(), interface);
        self
    }

    /// Reads a configuration from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    #[cfg(feature = "serde")]
    pub fn from_json(text: &str) -> Result<RouterConfig, ConfigError> {
        from_json(text)
    }
}

/// A generation of IOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Generation {
    /// 12.4 mainline and 12.4(15)T and before.
    Classic,
    /// The hierarchical queueing framework: 12.4(20)T and later T releases, 15.x.
    Hqf,
    /// IOS-XE 16 and 17 on routers: minimum, maximum and excess.
    #[cfg_attr(feature = "serde", serde(rename = "ios-xe"))]
    IosXe,
}
