//! Compiler from an attached policy-map to its plan.

use crate::compile::class_maps::matcher;
use crate::compile::class_tree::{self, Attachment, Place, Position};
use crate::compile::classes::{classes, MAX_ATTACHED_CLASSES};
use crate::compile::context::Context;
use crate::compile::generation::ClassQueues;
use crate::compile::{account, parameters};
use crate::config::policy::PolicyClass;
use crate::error::ConfigError;
use crate::plan::classes::{ClassPlan, LevelPlan, Matcher, PolicyPlan, CLASS_DEFAULT};
use crate::plan::police::PolicePlan;
use crate::plan::shape::ShapePlan;
use crate::plan::tree::{self, ROOT, SINGLE};

/// Returns an attached policy-map.
pub(crate) fn attached(
    context: &Context<'_>,
    name: &str,
    path: &str,
    to: Attachment,
) -> Result<PolicyPlan, ConfigError> {
    let queues = context.queues(name) && to.output;
    let top = LevelPlan { name: name.to_owned(), classes: Vec::new(), priority_queues: Vec::new() };
    let nodes = if queues { tree::root(context.properties.sharing) } else { Vec::new() };
    let mut plan = PolicyPlan { classes: Vec::new(), top, nodes, flow_queues: None };
    let bps = to.bandwidth_kbps.saturating_mul(1_000);
    let position = Position { to, rate_bps: bps, guaranteed_bps: bps, parent: None, node: ROOT, leaf: SINGLE };
    plan.top = level(context, &mut plan, name, path, position)?;
    if queues && context.properties.class_queues == ClassQueues::Conversations {
        let classes = classes(name, &context.config.policy_maps[name])?;
        plan.flow_queues = Some(class_tree::classic_flow_queues(&classes, to.bandwidth_kbps));
    }
    Ok(plan)
}

/// Compiles a policy-map at its place in the hierarchy, and adds its classes and queues to `plan`.
pub(crate) fn level(
    context: &Context<'_>,
    plan: &mut PolicyPlan,
    name: &str,
    path: &str,
    here: Position,
) -> Result<LevelPlan, ConfigError> {
    let Some(policy) = context.config.policy_maps.get(name) else {
        return Err(ConfigError::unknown(path, format!("there is no policy-map {name:?}: define it, or use null")));
    };
    let classes = classes(name, policy)?;
    if let Some((_, class)) = classes.iter().find(|(_, class)| !here.to.output && context.class_queues(class)) {
        let message =
            format!("policy-map {name:?} queues or shapes in class {:?}: this is possible on output only", class.name);
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
            let message = format!("more than {MAX_ATTACHED_CLASSES} classes, including those of its children");
            return Err(ConfigError::too_much(path, message));
        }
        if let Some(priority) = place.priority.filter(|_| context.properties.class_queues == ClassQueues::Separate) {
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

/// Returns the next class of a policy, without its child.
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
        map: class.map.clone(),
        police: police(context, class, here.rate_bps).map_err(|error| error.under(path))?,
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
    let resolved = parameters::shape(shape, Some(base_bps), context.properties.shape_interval)?;
    let missing = || ConfigError::new("shape", "cannot be calculated for this interface");
    let account = account::of(class, context.properties)?;
    let plan = parameters::shape_plan(&resolved).ok_or_else(missing)?;
    Ok(Some(ShapePlan { account, spaced: context.properties.shaper_spaces_packets, ..plan }))
}

fn police(context: &Context<'_>, class: &PolicyClass, base_bps: u64) -> Result<Option<PolicePlan>, ConfigError> {
    let Some(police) = &class.police else { return Ok(None) };
    let resolved = parameters::police(police, Some(base_bps))?;
    let missing = || ConfigError::new("police", "cannot be calculated for this interface");
    let plan = parameters::police_plan(&resolved).ok_or_else(missing)?;
    let most = context.properties.greatest_account_offset;
    let account = police.account.as_ref().map(|config| account::plan(config, most)).transpose();
    Ok(Some(PolicePlan { account: account.map_err(|error| error.under("police"))?, ..plan }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::router::RouterConfig;
    use crate::plan::queue::QueuePlan;
    use crate::plan::tree::{BodyPlan, Rank};
    use serde_json::{json, Value};
    use std::collections::BTreeMap;

    /// Returns a policy-map of classes `a` to `d` on an interface of 2000 kb/s.
    fn plan(generation: &str, classes: Value) -> PolicyPlan {
        let any = json!({"match": "any", "criteria": [{"type": "any"}]});
        let config = json!({"format": 1, "router": "R1", "generation": generation,
            "class_maps": {"a": any, "b": any, "c": any, "d": any}, "policy_maps": {"P": {"classes": classes}}});
        let config = RouterConfig::from_json(&config.to_string()).unwrap();
        let (ports, lists) = (BTreeMap::new(), BTreeMap::new());
        let context = Context::new(&config, &ports, &lists);
        let to = Attachment { bandwidth_kbps: 2_000, max_reserved_percent: 75, output: true };
        attached(&context, "P", "here", to).unwrap()
    }

    /// Returns the ranks of its queues, in the order in which they are made.
    fn ranks(generation: &str, classes: Value) -> Vec<Rank> {
        plan(generation, classes).nodes.iter().skip(1).map(|node| node.rank).collect()
    }

    fn weights(classes: Value) -> Vec<u64> {
        let weight = |rank: &Rank| match rank {
            Rank::Weight(weight) => Some(*weight),
            Rank::Priority(_) => None,
            other => panic!("{other:?}"),
        };
        ranks("hqf", classes).iter().filter_map(weight).collect()
    }

    fn bandwidth(name: &str, kind: &str, number: u64) -> Value {
        json!({"name": name, "bandwidth": {kind: number}})
    }

    fn priority(name: &str, kbps: u64) -> Value {
        json!({"name": name, "priority": {"unit": "kbps", "number": kbps}})
    }

    /// Returns a class with a queue and without bandwidth.
    fn limited(name: &str) -> Value {
        json!({"name": name, "queue_limit": {"packets": 10}})
    }

    fn shaped(name: &str) -> Value {
        json!({"name": name, "shape": {"mode": "average", "rate": {"bps": 1_000_000}}})
    }

    /// Later generation: rate in b/s; classes without a bandwidth share the remainder equally.
    #[test]
    fn weights_are_configured_bandwidths_and_the_rest() {
        let (half, third) = (bandwidth("a", "kbps", 500), bandwidth("b", "kbps", 300));
        assert_eq!(weights(json!([half, third])), [500_000, 300_000, 1_200_000]);
        assert_eq!(weights(json!([half, limited("b")])), [500_000, 750_000, 750_000]);
        assert_eq!(weights(json!([bandwidth("a", "percent", 25)])), [500_000, 1_500_000]);
        // Priority traffic is not part of the remainder.
        assert_eq!(weights(json!([priority("a", 200), third])), [300_000, 1_500_000]);
        // At least a hundredth remains.
        assert_eq!(weights(json!([bandwidth("a", "kbps", 1_980), limited("b")])), [1_980_000, 10_000, 10_000]);
        let all = json!([bandwidth("a", "kbps", 1_500), limited("b"), bandwidth("class-default", "kbps", 500)]);
        assert_eq!(weights(all), [1_500_000, 20_000, 500_000]);
        // A shaper is not a bandwidth.
        assert_eq!(weights(json!([half, shaped("b")])), [500_000, 750_000, 750_000]);
    }

    /// Later generation: parts of the rest, a million for each per cent or each part of a ratio.
    #[test]
    fn weights_are_shares_of_the_remaining_rate() {
        let percent = |name: &str, percent: u64| bandwidth(name, "remaining_percent", percent);
        let two = json!([percent("a", 60), percent("b", 15), limited("c")]);
        assert_eq!(weights(two), [60_000_000, 15_000_000, 12_500_000, 12_500_000]);
        assert_eq!(weights(json!([percent("a", 60), percent("b", 40)])), [60_000_000, 40_000_000, 1_000_000]);
        let ratios = json!([bandwidth("a", "remaining_ratio", 7), limited("b")]);
        assert_eq!(weights(ratios), [7_000_000, 1_000_000, 1_000_000]);
    }

    /// Classic: a constant by the number of flow queues times the interface's bandwidth by the class's.
    #[test]
    fn factors_follow_from_the_interfaces_bandwidth() {
        let half = bandwidth("a", "kbps", 500);
        // 16 with 256 flow queues, 64 with 16.
        assert_eq!(ranks("classic", json!([half])), [Rank::Factor(Some(64)), Rank::Factor(None)]);
        let few = json!([half, {"name": "class-default", "fair_queue": {"queues": 16}}]);
        assert_eq!(ranks("classic", few), [Rank::Factor(Some(256)), Rank::Factor(None)]);
        assert_eq!(ranks("classic", json!([limited("a")])), [Rank::Factor(None), Rank::Factor(None)]);
        // Per cent of the remainder after priority, of 75 per cent of 1000 kb/s.
        let percent = |name: &str, percent: u64| bandwidth(name, "remaining_percent", percent);
        let rest = json!([priority("a", 500), percent("b", 50), percent("c", 25)]);
        let expected = [Rank::Priority(0), Rank::Factor(Some(64)), Rank::Factor(Some(128)), Rank::Factor(None)];
        assert_eq!(ranks("classic", rest), expected);
    }

    /// Classic: packets released by a shaper join a queue of the interface with the class's weight.
    #[test]
    fn a_classic_shaper_releases_to_a_queue_with_the_classs_weight() {
        let mut class = shaped("a");
        for (kbps, weight) in [(None, None), (Some(500), Some(64))] {
            class["bandwidth"] = kbps.map_or(Value::Null, |kbps: u64| json!({"kbps": kbps}));
            let plan = plan("classic", json!([class]));
            let ranks: Vec<_> = plan.nodes.iter().skip(1).map(|node| node.rank).collect();
            assert_eq!(ranks, [Rank::Factor(weight), Rank::Released(1), Rank::Factor(None)]);
            let BodyPlan::Leaf { queue, .. } = &plan.nodes[1].body else { panic!("a queue") };
            assert_eq!(*queue, QueuePlan::Conversation { limit: 64, weight });
            assert_eq!((plan.classes[0].leaf, plan.classes[0].own), (2, Some(2)));
            // Flows behind the shaper are queued separately, with or without `fair-queue`.
            let BodyPlan::Leaf { queue, .. } = &plan.nodes[2].body else { panic!("a queue") };
            assert_eq!(*queue, QueuePlan::WeightedFair { flows: 256, threshold: 64, total: Some(1_000) });
        }
    }

    /// Priority classes of a level have one queue, which in the classic generation each calls its own; class-default
    /// has its own unless it is classic and asks for nothing.
    #[test]
    fn priority_classes_share_a_queue() {
        let places = |generation: &str, classes: Value| {
            plan(generation, classes).classes.iter().map(|class| (class.leaf, class.own)).collect::<Vec<_>>()
        };
        let two = json!([priority("a", 100), bandwidth("b", "kbps", 100), priority("c", 100)]);
        assert_eq!(places("hqf", two.clone()), [(1, None), (2, Some(2)), (1, None), (3, Some(3))]);
        assert_eq!(places("classic", two), [(1, Some(1)), (2, Some(2)), (1, Some(1)), (3, None)]);
        let fair = json!([{"name": "class-default", "fair_queue": {}}]);
        assert_eq!(places("classic", fair), [(1, Some(1))]);
    }

    /// Classes without a queue join that of class-default; where it is shaped, one next to it, which is there for them
    /// alone.
    #[test]
    fn classes_without_a_queue_join_another() {
        let leaves = |classes: Value| {
            let plan = plan("hqf", classes);
            (plan.nodes.len(), plan.classes.iter().map(|class| class.leaf).collect::<Vec<_>>())
        };
        let (marked, own) = (json!({"name": "a"}), bandwidth("b", "kbps", 100));
        assert_eq!(leaves(json!([marked, own])), (3, vec![2, 1, 2]));
        assert_eq!(leaves(json!([own, shaped("class-default")])), (3, vec![1, 2]));
        assert_eq!(leaves(json!([marked, own, shaped("class-default")])), (4, vec![3, 1, 2]));
    }

    /// Marking alone makes no queues.
    #[test]
    fn only_queueing_classes_have_queues() {
        let marking = json!([{"name": "a", "set": [{"field": "dscp", "value": 10}]}]);
        for generation in ["hqf", "classic"] {
            let plan = plan(generation, marking.clone());
            assert!(plan.nodes.is_empty() && plan.flow_queues.is_none(), "{generation}");
        }
    }
}
