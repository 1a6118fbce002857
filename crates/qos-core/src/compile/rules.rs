//! What a policy-map may not ask for, whatever it is attached to: combinations of actions, mixed units, more than there
//! is.
//!
//! Routers refuse the same on their command line; this keeps any other sender of a configuration to it.

use crate::compile::context::{Context, PathClass};
use crate::compile::generation::Reservable;
use crate::config::policy::PolicyClass;
use crate::config::queueing::{BandwidthConfig, LimitUnit, PriorityUnit, RandomDetectConfig};
use crate::error::ConfigError;
use crate::plan::classes::CLASS_DEFAULT;

fn refuse(path: &str, field: &str, message: impl Into<String>) -> Result<(), ConfigError> {
    Err(ConfigError::new(format!("{path}.{field}"), message.into()))
}

/// Checks the classes of one policy-map, children excluded.
pub(crate) fn admit(context: &Context<'_>, classes: &[PathClass]) -> Result<(), ConfigError> {
    for (path, class) in classes {
        admit_class(context, path, class)?;
    }
    admit_units(classes)?;
    admit_percentages(context, classes)
}

fn admit_class(context: &Context<'_>, path: &str, class: &PolicyClass) -> Result<(), ConfigError> {
    let properties = context.properties;
    let default = class.name == CLASS_DEFAULT;
    let child_queues = class.service_policy.as_ref().is_some_and(|child| context.queues(child));
    admit_priority(context, path, class, child_queues)?;
    if class.fair_queue.is_some() && !properties.fair_queue_in_any_class && !default {
        return refuse(path, "fair_queue", "the classic generation has fair-queue in class-default only");
    }
    if class.fair_queue.is_some() && !properties.fair_queue_with_bandwidth && class.bandwidth.is_some() {
        let message = "in the classic generation flows have their own weights: give bandwidth or fair_queue";
        return refuse(path, "fair_queue", message);
    }
    if class.random_detect.is_some() && !default && class.bandwidth.is_none() && class.shape.is_none() {
        return refuse(path, "random_detect", "needs bandwidth or shape in the class");
    }
    if class.shape_buffers.is_some() && !(properties.shape_has_buffers && class.shape.is_some() && !child_queues) {
        let message = "only a shaper of the earlier generation without a queueing child has it";
        return refuse(path, "shape_buffers", message);
    }
    let in_bytes = |red: &RandomDetectConfig| !matches!(red.unit, None | Some(LimitUnit::Packets | LimitUnit::Percent));
    let possible = properties.random_detect_in_bytes && class.fair_queue.is_none();
    if class.random_detect.as_ref().is_some_and(in_bytes) && !possible {
        let message = "only a first-in-first-out queue of the later generation has it: give packets";
        return refuse(path, "random_detect.unit", message);
    }
    if child_queues {
        admit_queueing_child(context, path, class)?;
    }
    if !properties.remaining_ratio && matches!(class.bandwidth, Some(BandwidthConfig::RemainingRatio(_))) {
        return refuse(path, "bandwidth.remaining_ratio", "the classic generation does not have it");
    }
    Ok(())
}

fn admit_priority(
    context: &Context<'_>,
    path: &str,
    class: &PolicyClass,
    child_queues: bool,
) -> Result<(), ConfigError> {
    let Some(priority) = class.priority else { return Ok(()) };
    if class.name == CLASS_DEFAULT {
        return refuse(path, "priority", "class-default cannot have priority: give null");
    }
    let with = [
        ("bandwidth", class.bandwidth.is_some()),
        ("fair_queue", class.fair_queue.is_some()),
        ("random_detect", class.random_detect.is_some()),
        ("shape", class.shape.is_some()),
    ];
    if let Some((field, _)) = with.iter().find(|(_, given)| *given) {
        return refuse(path, field, "does not go with priority in the same class: give one of the two");
    }
    if child_queues {
        return refuse(path, "service_policy", "a priority class has one queue: its child cannot queue");
    }
    if !context.properties.priority_levels && priority.level.is_some() {
        return refuse(path, "priority.level", "the classic generation has one level: give null");
    }
    Ok(())
}

fn admit_queueing_child(context: &Context<'_>, path: &str, class: &PolicyClass) -> Result<(), ConfigError> {
    if class.fair_queue.is_some() || class.random_detect.is_some() {
        let field = if class.fair_queue.is_some() { "fair_queue" } else { "random_detect" };
        return refuse(path, field, "the class's child has the queues: give this to its classes");
    }
    let minimum = matches!(class.bandwidth, Some(BandwidthConfig::Kbps(_) | BandwidthConfig::Percent(_)));
    if context.properties.bandwidth_in_leaves_only && minimum {
        let message = "on IOS-XE only a class without a queueing child has it: give shape or bandwidth remaining";
        return refuse(path, "bandwidth", message);
    }
    if !context.properties.queueing_child_without_shape && class.shape.is_none() {
        let message = "in the classic generation a child queues under a shaper only: add shape";
        return refuse(path, "service_policy", message);
    }
    Ok(())
}

fn admit_units(classes: &[PathClass]) -> Result<(), ConfigError> {
    let unit = |class: &PolicyClass| {
        class.bandwidth.map(|bandwidth| match bandwidth {
            BandwidthConfig::Kbps(_) => "kb/s",
            BandwidthConfig::Percent(_) => "per cent",
            BandwidthConfig::RemainingPercent(_) => "per cent of the rest",
            BandwidthConfig::RemainingRatio(_) => "parts of the rest",
        })
    };
    let Some(first) = classes.iter().find_map(|(_, class)| unit(class)) else { return Ok(()) };
    for (path, class) in classes {
        if let Some(other) = unit(class).filter(|unit| *unit != first) {
            let message = format!("in {other}, but another class has {first}: give all in the same unit");
            return refuse(path, "bandwidth", message);
        }
    }
    Ok(())
}

fn admit_percentages(context: &Context<'_>, classes: &[PathClass]) -> Result<(), ConfigError> {
    let most = match context.properties.reservable {
        Reservable::Percent(percent) => u64::from(percent),
        Reservable::OfInterface => 100,
    };
    let (mut sum, mut remaining) = (0, 0);
    for (path, class) in classes {
        let default = class.name == CLASS_DEFAULT;
        let most = if default { 100 } else { most };
        let (field, percent) = match (class.bandwidth, class.priority) {
            (Some(BandwidthConfig::Percent(percent)), _) => ("bandwidth", u64::from(percent)),
            (_, Some(priority)) if priority.unit == PriorityUnit::Percent => ("priority", priority.number.unwrap_or(0)),
            _ => ("bandwidth", 0),
        };
        sum += percent.min(1_000);
        if context.properties.adds_percentages && sum > most && percent > 0 {
            let message = format!("the classes together have {sum} per cent: at most {most} can be given");
            return Err(ConfigError::too_much(format!("{path}.{field}"), message));
        }
        if let Some(BandwidthConfig::RemainingPercent(percent)) = class.bandwidth {
            remaining += u64::from(percent);
            if remaining > 100 {
                let message = format!("the classes together have {remaining} per cent of the rest: at most 100");
                return Err(ConfigError::too_much(format!("{path}.bandwidth"), message));
            }
        }
    }
    Ok(())
}
