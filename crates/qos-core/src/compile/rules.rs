//! Refusals of a policy-map, independent of its attachment: combinations of actions, mixed units, too much bandwidth.

use crate::compile::combinations::{Combination, IMPOSSIBLE, ONE_UNIT};
use crate::compile::context::{Context, PathClass};
use crate::config::policy::PolicyClass;
use crate::config::queueing::{BandwidthConfig, PriorityUnit};
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

/// The first of the combinations that a class has.
pub(crate) fn found_in(
    combinations: &'static [Combination],
    context: &Context<'_>,
    class: &PolicyClass,
) -> Option<&'static Combination> {
    let child_queues = class.service_policy.as_ref().is_some_and(|child| context.queues(child));
    combinations.iter().find(|each| each.found(class, child_queues, context.properties))
}

fn admit_class(context: &Context<'_>, path: &str, class: &PolicyClass) -> Result<(), ConfigError> {
    match found_in(IMPOSSIBLE, context, class) {
        Some(found) => refuse(path, found.of.path(), found.message),
        None => Ok(()),
    }
}

fn admit_units(classes: &[PathClass]) -> Result<(), ConfigError> {
    let shown = |unit: &str| match unit {
        "kbps" => "kb/s",
        "percent" => "per cent",
        "remaining_percent" => "per cent of the remaining bandwidth",
        _ => "ratios of the remaining bandwidth",
    };
    let Some(first) = classes.iter().find_map(|(_, class)| ONE_UNIT.word(class)) else { return Ok(()) };
    for (path, class) in classes {
        if let Some(other) = ONE_UNIT.word(class).filter(|unit| *unit != first) {
            let (other, first) = (shown(other), shown(first));
            let message = format!("in {other}, but another class uses {first}: give all in the same unit");
            return refuse(path, ONE_UNIT.path(), message);
        }
    }
    Ok(())
}

fn admit_percentages(context: &Context<'_>, classes: &[PathClass]) -> Result<(), ConfigError> {
    let most = u64::from(context.properties.reservable_percent.unwrap_or(100));
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
            let message = format!("the percentages of the classes add up to {sum}: at most {most} can be given");
            return Err(ConfigError::too_much(format!("{path}.{field}"), message));
        }
        if let Some(BandwidthConfig::RemainingPercent(percent)) = class.bandwidth {
            remaining += u64::from(percent);
            if remaining > 100 {
                let message = format!("the percentages of the remaining bandwidth add up to {remaining}: at most 100");
                return Err(ConfigError::too_much(format!("{path}.bandwidth"), message));
            }
        }
    }
    Ok(())
}
