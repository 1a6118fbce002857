//! The classes of a configured policy-map.

use std::collections::BTreeSet;

use crate::compile::context::PathClass;
use crate::config::policy::{PolicyClass, PolicyMap};
use crate::error::ConfigError;
use crate::plan::classes::CLASS_DEFAULT;

/// Maximum number of classes of a policy-map, and of an attached policy-map and its children together: keeps the
/// product of levels from exhausting memory. Routers have 64 (classic) or 256 per policy-map.
pub(crate) const MAX_ATTACHED_CLASSES: usize = 4_096;

/// Returns the classes of a policy-map with their paths, `class-default` last.
pub(crate) fn classes(name: &str, policy: &PolicyMap) -> Result<Vec<PathClass>, ConfigError> {
    let path = |index: usize| format!("policy_maps.{name}.classes[{index}]");
    if policy.classes.len() > MAX_ATTACHED_CLASSES {
        let message = format!("{} classes: at most {MAX_ATTACHED_CLASSES} are possible", policy.classes.len());
        return Err(ConfigError::too_much(format!("policy_maps.{name}.classes"), message));
    }
    let mut classes: Vec<_> =
        policy.classes.iter().enumerate().map(|(index, class)| (path(index), class.clone())).collect();
    let mut names = BTreeSet::new();
    if let Some(index) = policy.classes.iter().position(|class| !names.insert(class.name.as_str())) {
        let message = format!("class {:?} already exists", policy.classes[index].name);
        return Err(ConfigError::new(format!("{}.name", path(index)), message));
    }
    let class_default = match classes.iter().position(|(_, class)| class.name == CLASS_DEFAULT) {
        Some(position) => classes.remove(position),
        None => (path(classes.len()), PolicyClass::new(CLASS_DEFAULT)),
    };
    classes.push(class_default);
    Ok(classes)
}
