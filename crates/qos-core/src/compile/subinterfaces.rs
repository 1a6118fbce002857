//! Compiler from a port's IEEE 802.1Q subinterfaces to their plans, and from their policy-maps to one policy of the
//! port.
//!
//! A subinterface has no line of its own, so its queues are below a shaper. The policies of a port's subinterfaces run
//! as one: an outermost class for each VLAN, which contains its policy-map, and one for all else, which has the port's
//! own queue. Their hierarchies share the line next to each other.

use std::collections::BTreeMap;

use crate::compile::class_maps::VLANS;
use crate::compile::class_tree::{classic_flow_queues, Attachment, Position};
use crate::compile::classes::{classes, MAX_ATTACHED_CLASSES};
use crate::compile::combinations::{ON_SUBINTERFACE, PORT_OR_SUBINTERFACE};
use crate::compile::context::Context;
use crate::compile::generation::ClassQueues;
use crate::compile::policy;
use crate::compile::rules::found_combination;
use crate::config::classification::MatchMode;
use crate::config::defaults;
use crate::config::interface::{InterfaceConfig, SubinterfaceConfig};
use crate::config::policy::PolicyClass;
use crate::config::queueing::BandwidthConfig;
use crate::config::wiring::PortConfig;
use crate::error::ConfigError;
use crate::plan::classes::{ClassPlan, LevelPlan, Matcher, PolicyPlan, Statement, Test, CLASS_DEFAULT, SUBINTERFACES};
use crate::plan::port::SubinterfacePlan;
use crate::plan::queue::QueuePlan;
use crate::plan::tree::{self, BodyPlan, NodePlan, Rank, Sharing, ROOT, SINGLE};
use crate::wire::framing::Framing;

/// Returns the plans of subinterfaces.
pub(crate) fn plans(subinterfaces: &BTreeMap<String, SubinterfaceConfig>) -> Vec<SubinterfacePlan> {
    let plan = |(name, each): (&String, &SubinterfaceConfig)| SubinterfacePlan {
        name: name.clone(),
        enabled: each.enabled,
        vlan: each.vlan,
        native: each.native,
    };
    subinterfaces.iter().map(plan).collect()
}

/// Refuses impossible subinterfaces: of a serial line or a switch, without a VLAN, or with that of another
/// subinterface.
pub(crate) fn check(
    name: &str,
    port: &PortConfig,
    config: &InterfaceConfig,
    context: &Context<'_>,
) -> Result<(), ConfigError> {
    let mut vlans = BTreeMap::new();
    let mut native = None;
    for (own, subinterface) in &config.subinterfaces {
        let path = |field: &str| format!("interfaces.{name}.subinterfaces.{own}{field}");
        if port.link.framing != Framing::Ethernet || context.config.switch.is_some() {
            let message = "only an Ethernet port of a router has 802.1Q subinterfaces: leave them out";
            return Err(ConfigError::new(path(""), message));
        }
        if context.ports.contains_key(own) {
            return Err(ConfigError::new(path(""), "a port of the router has this name: choose another one"));
        }
        if !VLANS.contains(&subinterface.vlan) {
            let message = format!("{} is not a VLAN: expected 1 to 4094", subinterface.vlan);
            return Err(ConfigError::out_of_range(path(".vlan"), message));
        }
        if let Some(other) = vlans.insert(subinterface.vlan, own) {
            let message = format!("VLAN {} is already used by {other}: use another one", subinterface.vlan);
            return Err(ConfigError::new(path(".vlan"), message));
        }
        if subinterface.native {
            if let Some(other) = native.replace(own) {
                let message = format!("{other} already has the native VLAN: use false");
                return Err(ConfigError::new(path(".native"), message));
            }
        }
        if subinterface.bandwidth_kbps == 0 {
            return Err(ConfigError::out_of_range(path(".bandwidth_kbps"), "0 kb/s: expected at least 1"));
        }
    }
    Ok(())
}

/// Returns the policies of a port's subinterfaces as one; none if no subinterface has a policy.
pub(crate) fn attached(
    context: &Context<'_>,
    name: &str,
    config: &InterfaceConfig,
    output: bool,
) -> Result<Option<PolicyPlan>, ConfigError> {
    let own = if output { &config.service_policy_output } else { &config.service_policy_input };
    let field = PORT_OR_SUBINTERFACE[usize::from(output)];
    let with: Vec<_> = config
        .subinterfaces
        .iter()
        .filter_map(|(own, each)| {
            let policy = if output { &each.service_policy_output } else { &each.service_policy_input };
            Some((own, each, policy.as_ref()?))
        })
        .collect();
    let Some((first, _, _)) = with.first() else { return Ok(None) };
    if let Some(own) = own {
        let message = format!(
            "port {name} has policy-map {own:?} in the same direction: a router accepts one on the port or on its \
             subinterfaces, not both"
        );
        return Err(ConfigError::new(format!("interfaces.{name}.subinterfaces.{first}.{field}"), message));
    }
    let queues = output && with.iter().any(|(_, _, policy)| context.queues(policy));
    let top = LevelPlan { name: SUBINTERFACES.to_owned(), classes: Vec::new(), priority_queues: Vec::new() };
    let nodes = if queues { nodes(context, config) } else { Vec::new() };
    let mut plan = PolicyPlan { classes: Vec::new(), top, nodes, flow_queues: None };
    if queues && context.properties.class_queues == ClassQueues::Conversations {
        plan.flow_queues = Some(classic_flow_queues(&[], config.bandwidth_kbps));
    }
    for (own, each, policy) in with {
        let path = format!("interfaces.{name}.subinterfaces.{own}.{field}");
        one(context, &mut plan, (own, each), (policy, &path), output)?;
    }
    add(&mut plan, outermost(CLASS_DEFAULT, Matcher::any(), None), name)?;
    Ok(Some(plan))
}

/// Returns the root, and the queue for subinterfaces without a queueing policy.
fn nodes(context: &Context<'_>, config: &InterfaceConfig) -> Vec<NodePlan> {
    let limit = config.hold_queue_out.unwrap_or(defaults::FIFO_HOLD_QUEUE);
    let mut nodes = tree::single(QueuePlan::Fifo { limit }, context.properties.sharing);
    if context.properties.sharing != Sharing::Sequence {
        nodes[SINGLE].rank = Rank::Weight(u64::from(defaults::SUBINTERFACE_RATIO));
    }
    nodes
}

/// Adds the policy-map of a subinterface to the others.
fn one(
    context: &Context<'_>,
    plan: &mut PolicyPlan,
    (own, config): (&str, &SubinterfaceConfig),
    (policy, path): (&str, &str),
    output: bool,
) -> Result<(), ConfigError> {
    let mut node = None;
    if let Some(map) = context.config.policy_maps.get(policy).filter(|_| output && context.queues(policy)) {
        let classes = classes(policy, map)?;
        for (_, class) in &classes {
            check_shaped(context, policy, class, path)?;
        }
        let ratio = classes.iter().find_map(|(_, class)| match class.bandwidth {
            Some(BandwidthConfig::RemainingRatio(ratio)) if class.name == CLASS_DEFAULT => Some(ratio),
            _ => None,
        });
        let rank = match context.properties.class_queues {
            ClassQueues::Conversations => Rank::Factor(None),
            ClassQueues::Separate => Rank::Weight(u64::from(ratio.unwrap_or(defaults::SUBINTERFACE_RATIO))),
        };
        let body = BodyPlan::Inner {
            sharing: context.properties.sharing,
            limit: context.properties.queue_limit.packets(None),
        };
        plan.nodes.push(NodePlan { parent: ROOT, rank, minimum_bps: 0, shape: None, body });
        node = Some(plan.nodes.len() - 1);
    }
    let number = add(plan, outermost(own, matcher(config), node), path)?;
    let bps = config.bandwidth_kbps.saturating_mul(1_000);
    let position = Position {
        to: Attachment { bandwidth_kbps: config.bandwidth_kbps, max_reserved_percent: 100, output },
        rate_bps: bps,
        guaranteed_bps: bps,
        parent: Some(number),
        node: node.unwrap_or(ROOT),
        leaf: SINGLE,
    };
    plan.classes[number].child = Some(policy::level(context, plan, policy, path, position)?);
    Ok(())
}

/// Returns the test for the packets of a subinterface.
fn matcher(config: &SubinterfaceConfig) -> Matcher {
    let tagged = [(config.vlan, config.vlan)];
    let ranges = if config.native { vec![(0, 0), tagged[0]] } else { tagged.to_vec() };
    let statement = Statement { negate: false, test: Test::Vlan { ranges: ranges.into() } };
    Matcher { combine: MatchMode::All, criteria: vec![statement] }
}

/// Returns a class of a VLAN, or of frames in none of the VLANs.
pub(crate) fn outermost(name: &str, matcher: Matcher, own: Option<usize>) -> ClassPlan {
    ClassPlan {
        name: name.to_owned(),
        matcher,
        set: Vec::new(),
        map: Vec::new(),
        police: None,
        leaf: SINGLE,
        own,
        bandwidth: None,
        priority: None,
        priority_of: None,
        conversation: None,
        parent: None,
        child: None,
    }
}

/// Adds an outermost class; returns its number.
pub(crate) fn add(plan: &mut PolicyPlan, class: ClassPlan, path: &str) -> Result<usize, ConfigError> {
    let number = plan.classes.len();
    if number >= MAX_ATTACHED_CLASSES {
        let message = format!("more than {MAX_ATTACHED_CLASSES} classes in all of its subinterfaces or VLANs together");
        return Err(ConfigError::too_much(path, message));
    }
    plan.top.classes.push(number);
    plan.classes.push(class);
    Ok(number)
}

/// Refuses a class of a subinterface's policy-map that queues and is not shaped.
fn check_shaped(context: &Context<'_>, policy: &str, class: &PolicyClass, path: &str) -> Result<(), ConfigError> {
    match found_combination(ON_SUBINTERFACE, context, class) {
        None => Ok(()),
        Some(found) => {
            let (class, reason) = (&class.name, found.message);
            let message = format!("policy-map {policy:?} queues in class {class:?} without a shaper above, {reason}");
            Err(ConfigError::new(path, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::router::RouterConfig;
    use crate::time::Rate;
    use serde_json::{json, Value};

    fn shaped(more: &Value) -> Value {
        let mut class = json!({"name": "class-default", "shape": {"mode": "average", "rate": {"bps": 1_000_000}}});
        class.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"classes": [class]})
    }

    /// Returns the port `Out` with a subinterface for each policy-map, in that direction.
    fn plan(generation: &str, maps: &Value, policies: &[&str], output: bool) -> Option<PolicyPlan> {
        let field = if output { "service_policy_output" } else { "service_policy_input" };
        let each = policies.iter().zip(10u16..).map(|(policy, vlan)| {
            let own = json!({"enabled": true, "vlan": vlan, "bandwidth_kbps": 2_000, field: policy});
            (format!("Out.{vlan}"), own)
        });
        let out = json!({"enabled": true, "bandwidth_kbps": 2_000, "hold_queue_out": 33,
            "subinterfaces": Value::Object(each.collect())});
        let any = json!({"match": "any", "criteria": [{"type": "any"}]});
        let config = json!({"format": 1, "router": "R1", "generation": generation, "class_maps": {"a": any},
            "policy_maps": maps, "interfaces": {"Out": out}});
        let config = RouterConfig::from_json(&config.to_string()).unwrap();
        let (ports, lists) = (BTreeMap::new(), BTreeMap::new());
        attached(&Context::new(&config, &ports, &lists), "Out", &config.interfaces["Out"], output).unwrap()
    }

    fn ranks(plan: &PolicyPlan) -> Vec<Rank> {
        plan.nodes.iter().skip(1).map(|node| node.rank).collect()
    }

    /// The port's own queue, then each subinterface with the queues of its policy-map.
    #[test]
    fn hierarchies_are_next_to_the_ports_own_queue() {
        let maps = json!({"P": shaped(&json!({}))});
        let hqf = plan("hqf", &maps, &["P", "P"], true).unwrap();
        let (own, each) = (Rank::Weight(1), Rank::Weight(2_000_000));
        assert_eq!(ranks(&hqf), [own, own, each, own, each]);
        assert_eq!(hqf.flow_queues, None);
        let BodyPlan::Leaf { queue, .. } = &hqf.nodes[SINGLE].body else { panic!("a queue") };
        assert_eq!(*queue, QueuePlan::Fifo { limit: 33 });
        let classic = plan("classic", &maps, &["P"], true).unwrap();
        assert_eq!(classic.flow_queues, Some(defaults::dynamic_queues(2_000)));
        assert!(!matches!(classic.nodes[SINGLE].rank, Rank::Weight(_)), "{:?}", classic.nodes[SINGLE].rank);
    }

    /// Policy-maps that mark have no queues, next to others that have, or alone.
    #[test]
    fn a_policy_without_queueing_has_no_queues() {
        let maps = json!({"P": shaped(&json!({})),
            "Mark": {"classes": [{"name": "class-default", "set": [{"field": "dscp", "value": 10}]}]}});
        for output in [false, true] {
            for generation in ["hqf", "classic"] {
                let alone = plan(generation, &maps, &["Mark"], output).unwrap();
                assert!(alone.nodes.is_empty() && alone.flow_queues.is_none(), "{generation} {output}");
            }
        }
        let adjacent = plan("hqf", &maps, &["Mark", "P"], true).unwrap();
        assert_eq!(
            adjacent.nodes.len(),
            4,
            "the root, the port's own queue, the subinterface and the queue of its class"
        );
        let outermost: Vec<_> = adjacent.top.classes.iter().map(|class| adjacent.classes[*class].own).collect();
        assert_eq!(outermost, [None, Some(2), None]);
        assert!(plan("hqf", &maps, &[], true).is_none());
    }

    /// A subinterface's part of the port is the ratio of its policy-map's class-default.
    #[test]
    fn the_ratio_is_that_of_class_default() {
        let ratio = |ratio: u32| json!({"bandwidth": {"remaining_ratio": ratio}});
        let maps = |name: &str, own: u32| {
            let mut first = shaped(&ratio(own))["classes"][0].clone();
            first["name"] = json!(name);
            json!({"P": {"classes": [first]}})
        };
        let part = |maps: &Value| ranks(&plan("hqf", maps, &["P"], true).unwrap())[1];
        assert_eq!(part(&maps("class-default", 7)), Rank::Weight(7));
        assert_eq!(part(&maps("a", 7)), Rank::Weight(1));
    }

    /// A queue leaves at the rate of the slowest shaper above it.
    #[test]
    fn queues_leave_at_the_rate_of_the_slowest_shaper() {
        let maps = json!({"P": shaped(&json!({"service_policy": "Child"})),
            "Child": {"classes": [{"name": "a", "bandwidth": {"percent": 50}}]}});
        let plan = plan("hqf", &maps, &["P"], true).unwrap();
        let leaf = plan.nodes.len() - 1;
        assert!(plan.nodes[leaf].shape.is_none());
        assert_eq!(tree::rate_of(&plan.nodes, leaf, Rate(2_000_000)), Rate(1_000_000));
        assert_eq!(tree::rate_of(&plan.nodes, leaf, Rate(500_000)), Rate(500_000));
        assert_eq!(tree::rate_of(&plan.nodes, SINGLE, Rate(2_000_000)), Rate(2_000_000));
    }
}
