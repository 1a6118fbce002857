//! Checks of a policy-map that do not depend on its attachment: combinations of actions, mixed units, too much
//! bandwidth.

use crate::compile::combinations::{Combination, IMPOSSIBLE, ONE_UNIT};
use crate::compile::context::{Context, PathClass};
use crate::compile::sums::{excess, SUMS};
use crate::config::policy::PolicyClass;
use crate::error::ConfigError;

fn refuse(path: &str, field: &str, message: impl Into<String>) -> Result<(), ConfigError> {
    Err(ConfigError::new(format!("{path}.{field}"), message.into()))
}

/// Checks the classes of one policy-map, children excluded.
pub(crate) fn admit(context: &Context<'_>, classes: &[PathClass]) -> Result<(), ConfigError> {
    for (path, class) in classes {
        check_class_rules(context, path, class)?;
    }
    check_units(classes)?;
    check_percentages(context, classes)
}

/// Returns the first of the combinations that a class has.
pub(crate) fn found_combination(
    combinations: &'static [Combination],
    context: &Context<'_>,
    class: &PolicyClass,
) -> Option<&'static Combination> {
    let child_queues = class.service_policy.as_ref().is_some_and(|child| context.queues(child));
    combinations.iter().find(|each| each.found(class, child_queues, context.properties))
}

fn check_class_rules(context: &Context<'_>, path: &str, class: &PolicyClass) -> Result<(), ConfigError> {
    match found_combination(IMPOSSIBLE, context, class) {
        Some(found) => refuse(path, found.of.path(), found.message),
        None => Ok(()),
    }
}

fn check_units(classes: &[PathClass]) -> Result<(), ConfigError> {
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
            let message = format!("in {other}, but another class uses {first}: use the same unit for all");
            return refuse(path, ONE_UNIT.path(), message);
        }
    }
    Ok(())
}

fn check_percentages(context: &Context<'_>, classes: &[PathClass]) -> Result<(), ConfigError> {
    for sum in SUMS.iter().filter(|sum| sum.only.is_none_or(|property| (property.has)(context.properties))) {
        let most = sum.most.or(context.properties.reservable_percent).unwrap_or(100);
        let amounts = classes.iter().map(|each| (each, sum.amount(&each.1)));
        if let Some(found) = excess(100, most, amounts) {
            let (name, end) = sum.words;
            let message = format!("the {name} add up to {}: at most {}{end}", found.sum, found.most);
            return Err(ConfigError::too_much(found.path, message));
        }
    }
    Ok(())
}
