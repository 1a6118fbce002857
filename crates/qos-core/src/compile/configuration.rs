//! A whole configuration, compiled.

use std::collections::BTreeMap;

use crate::compile::context::Context;
use crate::compile::{catalyst, port, resolve};
use crate::config::router::RouterConfig;
use crate::config::wiring::PortConfig;
use crate::counters::resolved::Resolved;
use crate::error::ConfigError;
use crate::frame::port_number::PortId;
use crate::plan::port::{KindPlan, PortPlan};

/// Result of compiling a configuration.
pub(crate) struct Compiled {
    /// Plans by port number.
    pub ports: Vec<PortPlan>,
    pub resolved: Resolved,
    /// The cells that each ASIC of a switch reserves for queues.
    pub reserved_cells: Vec<u32>,
}

/// Compiles a configuration for the existing ports; `access_lists` are the numbers of the lists.
pub(crate) fn compile<'a>(
    config: &RouterConfig,
    names: &BTreeMap<String, PortId>,
    access_lists: &BTreeMap<String, usize>,
    wiring: impl Iterator<Item = (&'a str, &'a PortConfig)>,
) -> Result<Compiled, ConfigError> {
    let context = Context::new(config, names, access_lists);
    resolve::check(&context)?;
    let resolved = resolve::resolve(&context)?;
    if let Some(unknown) = config.interfaces.keys().find(|name| !names.contains_key(*name)) {
        let known: Vec<_> = names.keys().map(String::as_str).collect();
        let message = format!("the router has no such port: it has {}", known.join(", "));
        return Err(ConfigError::unknown(format!("interfaces.{unknown}"), message));
    }
    let ports: Result<Vec<_>, _> =
        wiring.map(|(name, wiring)| port::configured(name, wiring, config.interfaces.get(name), &context)).collect();
    let ports = ports?;
    let catalysts = ports.iter().filter_map(|plan| match &plan.kind {
        KindPlan::Catalyst(plan) => Some(&plan.egress),
        KindPlan::Router(_) => None,
    });
    let reserved_cells = config.switch.as_ref().map_or_else(Vec::new, |switch| catalyst::reserved(switch, catalysts));
    Ok(Compiled { ports, resolved, reserved_cells })
}
