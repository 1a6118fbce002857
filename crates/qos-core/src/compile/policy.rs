//! From an attached policy-map to its plan.

use crate::compile::class_maps::matcher;
use crate::compile::class_tree::{self, Attachment, Place, Position};
use crate::compile::classes::{classes, MAX_ATTACHED_CLASSES};
use crate::compile::context::Context;
use crate::compile::{account, parameters};
use crate::config::policy::PolicyClass;
use crate::config::router::Generation;
use crate::error::ConfigError;
use crate::plan::classes::{ClassPlan, LevelPlan, Matcher, PolicyPlan, CLASS_DEFAULT};
use crate::plan::police::PolicePlan;
use crate::plan::shape::ShapePlan;
use crate::plan::tree::{self, Sharing, ROOT, SINGLE};

/// An attached policy-map.
pub(crate) fn attached(
    context: &Context<'_>,
    name: &str,
    path: &str,
    to: Attachment,
) -> Result<PolicyPlan, ConfigError> {
    let sharing = sharing(context);
    let queues = context.queues(name) && to.output;
    let top = LevelPlan { name: name.to_owned(), classes: Vec::new(), priority_queues: Vec::new() };
    let nodes = if queues { tree::root(sharing) } else { Vec::new() };
    let mut plan = PolicyPlan { classes: Vec::new(), top, nodes, flow_queues: None };
    let bps = to.bandwidth_kbps.saturating_mul(1_000);
    let position = Position { to, rate_bps: bps, guaranteed_bps: bps, parent: None, node: ROOT, leaf: SINGLE };
    plan.top = level(context, &mut plan, name, path, position)?;
    if queues && context.config.generation == Generation::Classic {
        let classes = classes(name, &context.config.policy_maps[name])?;
        plan.flow_queues = Some(class_tree::classic_flow_queues(&classes, to.bandwidth_kbps));
    }
    Ok(plan)
}

/// How the queues of a policy-map share what there is.
pub(crate) fn sharing(context: &Context<'_>) -> Sharing {
    match context.config.generation {
        Generation::Classic => Sharing::Sequence,
        Generation::Hqf => Sharing::Weighted,
    }
}

/// A policy-map at its place in the hierarchy; its classes and queues are added to `plan`.
pub(crate) fn level(
    context: &Context<'_>,
    plan: &mut PolicyPlan,
    name: &str,
    path: &str,
    here: Position,
) -> Result<LevelPlan, ConfigError> {
    let Some(policy) = context.config.policy_maps.get(name) else {
        return Err(ConfigError::unknown(path, format!("there is no policy-map {name:?}: define it, or give null")));
    };
    let classes = classes(name, policy)?;
    if let Some((_, class)) = classes.iter().find(|(_, class)| !here.to.output && context.class_queues(class)) {
        let message =
            format!("policy-map {name:?} queues or shapes in class {:?}, which is for output only", class.name);
        return Err(ConfigError::new(path, message));
    }
    let mut shapes = Vec::with_capacity(classes.len());
    for (class_path, class) in &classes {
        shapes.push(shape(context, class, here.rate_bps).map_err(|error| error.under(class_path))?);
    }
    let places = if context.queues(name) {
        class_tree::place(context, &mut plan.nodes, &classes, &shapes, here)?
    } else {
        vec![Place::joining(here.leaf); classes.len()]
    };
    let mut level = LevelPlan { name: name.to_owned(), classes: Vec::new(), priority_queues: Vec::new() };
    for (((class_path, class), shape), place) in classes.into_iter().zip(shapes).zip(places) {
        let number = plan.classes.len();
        if number >= MAX_ATTACHED_CLASSES {
            let message = format!("more than {MAX_ATTACHED_CLASSES} classes, those of its children included");
            return Err(ConfigError::too_much(path, message));
        }
        if let Some(priority) = place.priority.filter(|_| context.config.generation == Generation::Hqf) {
            level.priority_queues.push((priority.level, place.leaf));
        }
        level.classes.push(number);
        let class_plan = class_plan(context, plan, (&class_path, &class), place, here)?;
        plan.classes.push(class_plan);
        if let Some(child) = &class.service_policy {
            let below = here.below(number, place, shape);
            let child = self::level(context, plan, child, &format!("{class_path}.service_policy"), below)?;
            plan.classes[number].child = Some(child);
        }
    }
    level.priority_queues.sort_unstable();
    level.priority_queues.dedup();
    Ok(level)
}

/// The next class of a policy, without its child.
fn class_plan(
    context: &Context<'_>,
    plan: &PolicyPlan,
    (path, class): (&str, &PolicyClass),
    place: Place,
    here: Position,
) -> Result<ClassPlan, ConfigError> {
    let outer = here.parent.and_then(|parent| plan.classes[parent].priority_of);
    Ok(ClassPlan {
        name: class.name.clone(),
        matcher: match class.name.as_str() {
            CLASS_DEFAULT => Matcher::any(),
            class_map => matcher(context, class_map)?,
        },
        set: class.set.clone(),
        police: police(class, here.rate_bps).map_err(|error| error.under(path))?,
        leaf: place.leaf,
        own: place.own,
        bandwidth: place.bandwidth,
        priority: place.priority,
        priority_of: if place.priority.is_some() { Some(plan.classes.len()) } else { outer },
        conversation: place.conversation,
        parent: here.parent,
        child: None,
    })
}

fn shape(context: &Context<'_>, class: &PolicyClass, base_bps: u64) -> Result<Option<ShapePlan>, ConfigError> {
    let Some(shape) = &class.shape else { return Ok(None) };
    let resolved = parameters::shape(shape, Some(base_bps), context.config.generation)?;
    let missing = || ConfigError::new("shape", "cannot be worked out for this interface");
    let account = class.account.as_ref().map(account::plan).transpose()?;
    let plan = parameters::shape_plan(&resolved).ok_or_else(missing)?;
    Ok(Some(ShapePlan { account, ..plan }))
}

fn police(class: &PolicyClass, base_bps: u64) -> Result<Option<PolicePlan>, ConfigError> {
    let Some(police) = &class.police else { return Ok(None) };
    let resolved = parameters::police(police, Some(base_bps))?;
    let missing = || ConfigError::new("police", "cannot be worked out for this interface");
    parameters::police_plan(&resolved).ok_or_else(missing).map(Some)
}
