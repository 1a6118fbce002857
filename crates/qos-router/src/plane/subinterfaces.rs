//! The insides of subinterfaces, which change with the configuration.

use std::collections::BTreeMap;

use qos_core::config::SubinterfaceConfig;
use qos_core::ConfigError;

use super::port::Subinterface;
use super::Dataplane;
use crate::config::DataPlaneConfig;
use crate::netdev;

/// Returns the subinterfaces of a configuration that have an inside: its Linux name, the place of that name, the
/// configuration.
fn wanted(config: &DataPlaneConfig) -> impl Iterator<Item = (&str, &str, String, &SubinterfaceConfig)> {
    config.engine.interfaces.iter().flat_map(|(port, interface)| {
        interface.subinterfaces.iter().filter_map(move |(name, each)| {
            let place = format!("interfaces.{port}.subinterfaces.{name}.inside");
            Some((port.as_str(), each.inside.as_deref()?, place, each))
        })
    })
}

impl Dataplane {
    /// Opens the missing insides, by their Linux names.
    pub(super) fn open_subinterfaces(
        &self,
        config: &DataPlaneConfig,
    ) -> Result<BTreeMap<String, Subinterface>, ConfigError> {
        self.outside.visit().map_err(|error| ConfigError::new("interfaces", error.to_string()))?;
        let mut opened = BTreeMap::new();
        for (port, inside, place, each) in wanted(config) {
            let Some(id) = self.engine.port(port) else { continue };
            let port = &self.ports[usize::from(id.0)];
            let used = self.ports.iter().any(|other| {
                other.id != id && (other.wire.name() == inside || other.interfaces().any(|i| i.name == inside))
            });
            let main = port.inside.iter().any(|i| i.name == inside) || port.wire.name() == inside;
            if used || main || opened.contains_key(inside) {
                let message = format!("{inside:?} is already in use; give each subinterface its own interface");
                return Err(ConfigError::new(place, message));
            }
            if port.subinterfaces.iter().any(|open| open.inside.name == inside) {
                continue;
            }
            let interface = Subinterface::open(each, inside, &place);
            opened.insert(inside.to_owned(), interface.map_err(|e| ConfigError::new(place.as_str(), e.to_string()))?);
        }
        Ok(opened)
    }

    /// Retains the insides in the configuration and the newly opened ones, and closes the others.
    pub(super) fn put_subinterfaces(&mut self, config: &DataPlaneConfig, mut opened: BTreeMap<String, Subinterface>) {
        let mut kept = BTreeMap::new();
        for port in &mut self.ports {
            kept.extend(port.subinterfaces.drain(..).map(|each| (each.inside.name.clone(), each)));
        }
        let now = netdev::read(&self.outside).unwrap_or_default();
        for (port, inside, _, each) in wanted(config) {
            let Some(id) = self.engine.port(port) else { continue };
            let new = opened.remove(inside).map(|mut new| {
                new.inside.unsent_before = now.iter().find(|unsent| unsent.name == inside).map_or(0, |u| u.frames);
                new
            });
            let Some(subinterface) = new.or_else(|| kept.remove(inside)) else { continue };
            let subinterface =
                Subinterface { vlan: each.vlan, native: each.native, adjust_mss: each.tcp_adjust_mss, ..subinterface };
            self.ports[usize::from(id.0)].subinterfaces.push(subinterface);
        }
    }
}
