//! Compiler from the access lists that filter an interface to their plan.

use crate::compile::context::Context;
use crate::config::interface::{InterfaceConfig, SubinterfaceConfig};
use crate::error::ConfigError;
use crate::plan::access_groups::AccessGroupsPlan;

/// Access lists of an interface and its subinterfaces in one direction; `path` is that of the interface.
pub(crate) fn plan(
    context: &Context<'_>,
    config: &InterfaceConfig,
    output: bool,
    path: &str,
) -> Result<AccessGroupsPlan, ConfigError> {
    let field = if output { "access_groups_output" } else { "access_groups_input" };
    let own = if output { &config.access_groups_output } else { &config.access_groups_input };
    let own = lists(context, own, &format!("{path}.{field}"))?;
    let of = |each: &'_ SubinterfaceConfig| -> Vec<String> {
        if output {
            each.access_groups_output.clone()
        } else {
            each.access_groups_input.clone()
        }
    };
    if own.is_empty() && config.subinterfaces.values().all(|each| of(each).is_empty()) {
        return Ok(AccessGroupsPlan::default());
    }
    let mut vlans = Vec::new();
    for (name, each) in &config.subinterfaces {
        let numbers = lists(context, &of(each), &format!("{path}.subinterfaces.{name}.{field}"))?;
        if each.native {
            vlans.push((0, numbers.clone()));
        }
        vlans.push((each.vlan, numbers));
    }
    Ok(AccessGroupsPlan { own, vlans })
}

/// Returns the numbers of lists, at most one per address family.
fn lists(context: &Context<'_>, names: &[String], path: &str) -> Result<Vec<usize>, ConfigError> {
    let mut numbers = Vec::new();
    let mut families = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (Some(entries), Some(number)) = (context.config.access_lists.get(name), context.access_lists.get(name))
        else {
            return Err(ConfigError::unknown(path, format!("there is no access list {name:?}: define it first")));
        };
        if let Some(first) = entries.first() {
            let ipv6 = first.source.address.is_ipv6();
            if families.contains(&ipv6) {
                let family = if ipv6 { "IPv6" } else { "IPv4" };
                let message =
                    format!("{name:?} is the second access list for {family} in this direction: use only one");
                return Err(ConfigError::new(path, message));
            }
            families.push(ipv6);
        }
        numbers.push(*number);
    }
    Ok(numbers)
}
