//! Interface-independent parts of a configuration: their checks, and the policy-maps with all defaults.

use std::collections::BTreeMap;

use crate::compile::access_lists::check_list;
use crate::compile::class_maps::matcher;
use crate::compile::classes::classes;
use crate::compile::context::Context;
use crate::compile::{bandwidth, catalyst, catalyst_vlans, parameters, rules};
use crate::config::defaults::MAX_LEVELS;
use crate::config::policy::{greatest, PolicyClass};
use crate::config::queueing::RandomDetectBasis;
use crate::config::router::FORMAT;
use crate::counters::resolved::{Resolved, ResolvedClass, ResolvedPolicy, ResolvedRandomDetect};
use crate::error::ConfigError;
use crate::plan::classes::CLASS_DEFAULT;

/// Checks everything that does not depend on an interface.
pub(crate) fn check(context: &Context<'_>) -> Result<(), ConfigError> {
    if context.config.format != FORMAT {
        let message = format!("unknown format {}: this engine reads {}", context.config.format, FORMAT);
        return Err(ConfigError::new("format", message));
    }
    for (name, entries) in &context.config.access_lists {
        check_list(name, entries)?;
    }
    for name in context.config.class_maps.keys() {
        if name == CLASS_DEFAULT {
            let message = "class-default always exists and matches everything: remove it from class_maps";
            return Err(ConfigError::new(format!("class_maps.{name}"), message));
        }
        matcher(context, name)?;
    }
    if let Some(switch) = &context.config.switch {
        catalyst::check(switch)?;
        catalyst::check_aggregates(context.config)?;
    }
    resolve(context)?;
    context.config.switch.as_ref().map_or(Ok(()), |switch| catalyst_vlans::check(context, switch))
}

/// Returns the policy-maps with their defaults.
pub(crate) fn resolve(context: &Context<'_>) -> Result<Resolved, ConfigError> {
    let mut policy_maps = BTreeMap::new();
    for (name, policy) in &context.config.policy_maps {
        let mut resolved = Vec::new();
        let classes = classes(name, policy)?;
        for (path, class) in &classes {
            resolved.push(resolve_class(context, class).map_err(|error| error.under(path))?);
            if let Some(child) = &class.service_policy {
                check_child(context, child, &format!("{path}.service_policy"))?;
            }
        }
        rules::admit(context, &classes)?;
        policy_maps.insert(name.clone(), ResolvedPolicy { classes: resolved });
    }
    Ok(Resolved { policy_maps })
}

fn resolve_class(context: &Context<'_>, class: &PolicyClass) -> Result<ResolvedClass, ConfigError> {
    match &context.config.switch {
        Some(switch) => catalyst::check_class(class, switch)?,
        None => catalyst::check_router_class(class)?,
    }
    check_marks(class)?;
    if class.name != CLASS_DEFAULT && !context.config.class_maps.contains_key(&class.name) {
        let message = format!("there is no class-map {:?}: define it, or use class-default", class.name);
        return Err(ConfigError::unknown("name", message));
    }
    let police = class.police.as_ref().map(|police| parameters::police(police, None)).transpose()?;
    let shape = class
        .shape
        .as_ref()
        .map(|shape| parameters::shape(shape, None, context.properties.shape_interval))
        .transpose()?;
    let queue = parameters::class_queue(class, (None, None), context.properties, None)?;
    // A priority class has no separate queue.
    let own = context.class_queues(class) && (class.priority.is_none() || class.queue_limit.is_some());
    let queue = own.then(|| parameters::resolved_queue(&queue));
    let red = bandwidth::random_detect(class, context.properties, None)?;
    Ok(ResolvedClass {
        name: class.name.clone(),
        police,
        shape,
        queue_limit_packets: queue.and_then(|(limit, _)| limit.packets),
        queue_limit_bytes: queue.and_then(|(limit, _)| limit.bytes),
        fair_queue: queue.and_then(|(_, fair)| fair),
        bandwidth: class
            .bandwidth
            .map(|bandwidth| bandwidth::bandwidth(bandwidth, None, context.properties))
            .transpose()?,
        priority: class.priority.map(|priority| bandwidth::priority(priority, None, context.properties)).transpose()?,
        random_detect: red.map(|red| ResolvedRandomDetect {
            basis: red.basis,
            exponential_weight: red.exponential_weight,
            ecn: red.ecn,
            in_bytes: red.in_bytes,
            classes: match &class.random_detect {
                Some(given) if red.basis == RandomDetectBasis::Dscp => {
                    let given: Vec<_> = given.thresholds.iter().map(|given| given.value).collect();
                    red.rows.into_iter().filter(|row| given.contains(&row.value)).collect()
                }
                _ => red.rows,
            },
        }),
        service_policy: class.service_policy.clone(),
    })
}

/// Checks the values that a class sets, and those of its table-maps.
fn check_marks(class: &PolicyClass) -> Result<(), ConfigError> {
    for (index, set) in class.set.iter().enumerate() {
        if set.value > greatest(set.field) {
            let message = format!("{} is out of range: expected 0 to {}", set.value, greatest(set.field));
            return Err(ConfigError::out_of_range(format!("set[{index}].value"), message));
        }
    }
    for (index, map) in class.map.iter().enumerate() {
        let values = usize::from(map.source.values());
        if map.values.len() != values {
            let message = format!("{} values: expected {values}, one for each input value", map.values.len());
            return Err(ConfigError::new(format!("map[{index}].values"), message));
        }
        if let Some(value) = map.values.iter().flatten().find(|value| **value > greatest(map.field)) {
            let message = format!("{value} is out of range: expected 0 to {}", greatest(map.field));
            return Err(ConfigError::out_of_range(format!("map[{index}].values"), message));
        }
    }
    Ok(())
}

fn check_child(context: &Context<'_>, name: &str, path: &str) -> Result<(), ConfigError> {
    match context.levels.get(name) {
        None => Err(ConfigError::unknown(path, format!("there is no policy-map {name:?}: define it first"))),
        Some(levels) if *levels >= MAX_LEVELS => {
            let message =
                format!("with policy-map {name:?} there are more than {MAX_LEVELS} levels, or it contains itself");
            Err(ConfigError::too_much(path, message))
        }
        Some(_) => Ok(()),
    }
}
