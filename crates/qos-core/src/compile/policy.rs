//! From configured class-maps and policy-maps to what the engine runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::class_tree::{Attachment, Place, Position};
use crate::compile::rules::PathClass;
use crate::compile::{bandwidth, catalyst, parameters, rules};
use crate::config::classification::{AccessListEntry, Criterion, PortMatch, PortOperator};
use crate::config::policy::{greatest, PolicyClass, PolicyMap};
use crate::config::queueing::RandomDetectBasis;
use crate::config::router::{Generation, RouterConfig};
use crate::counters::resolved::{Resolved, ResolvedClass, ResolvedPolicy, ResolvedRandomDetect};
use crate::error::ConfigError;
use crate::frame::descriptor::protocol;
use crate::frame::port::PortId;
use crate::plan::classes::{ClassPlan, LevelPlan, Matcher, PolicyPlan, Statement, Test, CLASS_DEFAULT};
use crate::plan::police::PolicePlan;
use crate::plan::shape::ShapePlan;
use crate::plan::tree;
use crate::plan::tree::{Sharing, ROOT, SINGLE};

/// Levels of nested policy-maps.
pub(crate) const MAX_LEVELS: usize = 3;

/// Levels of nested class-maps.
const MAX_NESTED_CLASS_MAPS: usize = 8;

/// Classes of a policy-map, and of an attached one and its children together: keeps the product of levels from exhausting memory. Routers have
/// 64 (classic) or 256 a policy-map.
const MAX_ATTACHED_CLASSES: usize = 4_096;

/// Match statements of a class-map and those that it refers to, together.
const MAX_STATEMENTS: usize = 4_096;

/// A configuration being compiled.
pub(crate) struct Compiler<'a> {
    pub config: &'a RouterConfig,
    ports: &'a BTreeMap<String, PortId>,
    /// Numbers of the access lists.
    access_lists: &'a BTreeMap<String, usize>,
    /// Policy-maps that queue, themselves or in their children.
    pub queueing: BTreeSet<String>,
    /// Levels of each policy-map.
    levels: BTreeMap<String, usize>,
}

pub(crate) fn at(path: &str, error: &ConfigError) -> ConfigError {
    ConfigError::new(format!("{path}.{}", error.path), error.message.clone())
}

impl<'a> Compiler<'a> {
    pub fn new(
        config: &'a RouterConfig,
        ports: &'a BTreeMap<String, PortId>,
        access_lists: &'a BTreeMap<String, usize>,
    ) -> Compiler<'a> {
        let (queueing, levels) = (rules::queueing(config), rules::levels(config));
        Compiler { config, ports, access_lists, queueing, levels }
    }
}

impl Compiler<'_> {
    /// Checks everything that does not depend on an interface.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.config.format != crate::config::router::FORMAT {
            let message = format!(
                "format {} is not known: this engine reads {}",
                self.config.format,
                crate::config::router::FORMAT
            );
            return Err(ConfigError::new("format", message));
        }
        for (name, entries) in &self.config.access_lists {
            for (index, entry) in entries.iter().enumerate() {
                check_entry(entry).map_err(|error| at(&format!("access_lists.{name}[{index}]"), &error))?;
            }
        }
        for name in self.config.class_maps.keys() {
            if name == CLASS_DEFAULT {
                let message = "class-default is always there and matches everything: remove it from class_maps";
                return Err(ConfigError::new(format!("class_maps.{name}"), message));
            }
            self.matcher(name)?;
        }
        if let Some(switch) = &self.config.switch {
            catalyst::check(switch)?;
            catalyst::check_aggregates(self.config)?;
        }
        self.resolve().map(drop)
    }

    /// The policy-maps with their defaults.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        let mut policy_maps = BTreeMap::new();
        for (name, policy) in &self.config.policy_maps {
            let mut resolved = Vec::new();
            let classes = self.classes(name, policy)?;
            for (path, class) in &classes {
                resolved.push(self.resolve_class(class).map_err(|error| at(path, &error))?);
                if let Some(child) = &class.service_policy {
                    self.check_child(child, &format!("{path}.service_policy"))?;
                }
            }
            self.admit(&classes)?;
            policy_maps.insert(name.clone(), ResolvedPolicy { classes: resolved });
        }
        Ok(Resolved { policy_maps })
    }

    fn resolve_class(&self, class: &PolicyClass) -> Result<ResolvedClass, ConfigError> {
        match &self.config.switch {
            Some(switch) => catalyst::check_class(class, switch)?,
            None => catalyst::check_router_class(class)?,
        }
        for (index, set) in class.set.iter().enumerate() {
            if set.value > greatest(set.field) {
                let message = format!("{} is out of range: give 0 to {}", set.value, greatest(set.field));
                return Err(ConfigError::new(format!("set[{index}].value"), message));
            }
        }
        if class.name != CLASS_DEFAULT && !self.config.class_maps.contains_key(&class.name) {
            let message = format!("there is no class-map {:?}: define it, or use class-default", class.name);
            return Err(ConfigError::new("name", message));
        }
        let generation = self.config.generation;
        let police = class.police.as_ref().map(|police| parameters::police(police, None)).transpose()?;
        let shape = class.shape.as_ref().map(|shape| parameters::shape(shape, None, generation)).transpose()?;
        let queue = parameters::class_queue(class, None, generation, None)?;
        // A priority class has no queue of its own.
        let own = self.class_queues(class) && (class.priority.is_none() || class.queue_limit.is_some());
        let queue = own.then(|| parameters::resolved_queue(&queue));
        let red = class.random_detect.as_ref().map(|red| bandwidth::random_detect(red, generation)).transpose()?;
        Ok(ResolvedClass {
            name: class.name.clone(),
            police,
            shape,
            queue_limit_packets: queue.map(|(limit, _)| limit),
            fair_queue: queue.and_then(|(_, fair)| fair),
            bandwidth: class.bandwidth.map(|bandwidth| bandwidth::bandwidth(bandwidth, None)).transpose()?,
            priority: class.priority.map(|priority| bandwidth::priority(priority, None)).transpose()?,
            random_detect: red.map(|red| ResolvedRandomDetect {
                basis: red.basis,
                exponential_weight: red.exponential_weight,
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

    fn check_child(&self, name: &str, path: &str) -> Result<(), ConfigError> {
        match self.levels.get(name) {
            None => Err(ConfigError::new(path, format!("there is no policy-map {name:?}: define it first"))),
            Some(levels) if *levels >= MAX_LEVELS => {
                let message =
                    format!("with policy-map {name:?} there are more than {MAX_LEVELS} levels, or it is in itself");
                Err(ConfigError::new(path, message))
            }
            Some(_) => Ok(()),
        }
    }

    /// The classes of a policy-map with their paths, `class-default` last.
    fn classes(&self, name: &str, policy: &PolicyMap) -> Result<Vec<PathClass>, ConfigError> {
        let path = |index: usize| format!("policy_maps.{name}.classes[{index}]");
        if policy.classes.len() > MAX_ATTACHED_CLASSES {
            let message = format!("{} classes: at most {MAX_ATTACHED_CLASSES} are possible", policy.classes.len());
            return Err(ConfigError::new(format!("policy_maps.{name}.classes"), message));
        }
        let mut classes: Vec<_> =
            policy.classes.iter().enumerate().map(|(index, class)| (path(index), class.clone())).collect();
        let mut names = BTreeSet::new();
        if let Some(index) = policy.classes.iter().position(|class| !names.insert(class.name.as_str())) {
            let message = format!("class {:?} is there already", policy.classes[index].name);
            return Err(ConfigError::new(format!("{}.name", path(index)), message));
        }
        let class_default = match classes.iter().position(|(_, class)| class.name == CLASS_DEFAULT) {
            Some(position) => classes.remove(position),
            None => (path(classes.len()), empty_class(CLASS_DEFAULT)),
        };
        classes.push(class_default);
        Ok(classes)
    }

    /// An attached policy-map.
    pub fn policy(&self, name: &str, path: &str, to: Attachment) -> Result<PolicyPlan, ConfigError> {
        let sharing = match self.config.generation {
            Generation::Classic => Sharing::Sequence,
            Generation::Hqf => Sharing::Weighted,
        };
        let queues = self.queues(name) && to.output;
        let top = LevelPlan { name: name.to_owned(), classes: Vec::new(), priority_queues: Vec::new() };
        let nodes = if queues { tree::root(sharing) } else { Vec::new() };
        let mut plan = PolicyPlan { classes: Vec::new(), top, nodes, flow_queues: None };
        let bps = to.bandwidth_kbps.saturating_mul(1_000);
        let position = Position { to, rate_bps: bps, guaranteed_bps: bps, parent: None, node: ROOT, leaf: SINGLE };
        plan.top = self.level(&mut plan, name, path, position)?;
        if queues && self.config.generation == Generation::Classic {
            let classes = self.classes(name, &self.config.policy_maps[name])?;
            plan.flow_queues = Some(self.classic_flow_queues(&classes, to.bandwidth_kbps));
        }
        Ok(plan)
    }

    fn level(&self, plan: &mut PolicyPlan, name: &str, path: &str, here: Position) -> Result<LevelPlan, ConfigError> {
        let Some(policy) = self.config.policy_maps.get(name) else {
            return Err(ConfigError::new(path, format!("there is no policy-map {name:?}: define it, or give null")));
        };
        let classes = self.classes(name, policy)?;
        if let Some((_, class)) = classes.iter().find(|(_, class)| !here.to.output && self.class_queues(class)) {
            let message =
                format!("policy-map {name:?} queues or shapes in class {:?}, which is for output only", class.name);
            return Err(ConfigError::new(path, message));
        }
        let mut shapes = Vec::with_capacity(classes.len());
        for (class_path, class) in &classes {
            shapes.push(self.shape(class, here.rate_bps).map_err(|error| at(class_path, &error))?);
        }
        let places = if self.queues(name) {
            self.place(&mut plan.nodes, &classes, &shapes, here)?
        } else {
            vec![Place::joining(here.leaf); classes.len()]
        };
        let mut level = LevelPlan { name: name.to_owned(), classes: Vec::new(), priority_queues: Vec::new() };
        for (((class_path, class), shape), place) in classes.into_iter().zip(shapes).zip(places) {
            let number = plan.classes.len();
            if number >= MAX_ATTACHED_CLASSES {
                let message = format!("more than {MAX_ATTACHED_CLASSES} classes, those of its children included");
                return Err(ConfigError::new(path, message));
            }
            if let Some(priority) = place.priority.filter(|_| self.config.generation == Generation::Hqf) {
                level.priority_queues.push((priority.level, place.leaf));
            }
            let outer = here.parent.and_then(|parent| plan.classes[parent].priority_of);
            level.classes.push(number);
            plan.classes.push(ClassPlan {
                name: class.name.clone(),
                matcher: match class.name.as_str() {
                    CLASS_DEFAULT => Matcher::any(),
                    class_map => self.matcher(class_map)?,
                },
                set: class.set.clone(),
                police: self.police(&class, here.rate_bps).map_err(|error| at(&class_path, &error))?,
                leaf: place.leaf,
                own: place.own,
                bandwidth: place.bandwidth,
                priority: place.priority,
                priority_of: if place.priority.is_some() { Some(number) } else { outer },
                conversation: place.conversation,
                parent: here.parent,
                child: None,
            });
            if let Some(child) = &class.service_policy {
                let guaranteed = place.bandwidth.and_then(|bandwidth| bandwidth.kbps).map(|kbps| kbps * 1_000);
                let below = Position {
                    to: here.to,
                    rate_bps: shape.map_or(here.rate_bps, |shape| shape.cir_bps),
                    guaranteed_bps: shape.map(|shape| shape.cir_bps).or(guaranteed).unwrap_or(here.guaranteed_bps),
                    parent: Some(number),
                    node: place.own.unwrap_or(here.node),
                    leaf: place.leaf,
                };
                let child = self.level(plan, child, &format!("{class_path}.service_policy"), below)?;
                plan.classes[number].child = Some(child);
            }
        }
        level.priority_queues.sort_unstable();
        level.priority_queues.dedup();
        Ok(level)
    }

    fn shape(&self, class: &PolicyClass, base_bps: u64) -> Result<Option<ShapePlan>, ConfigError> {
        let Some(shape) = &class.shape else { return Ok(None) };
        let resolved = parameters::shape(shape, Some(base_bps), self.config.generation)?;
        let missing = || ConfigError::new("shape", "cannot be worked out for this interface");
        parameters::shape_plan(&resolved).ok_or_else(missing).map(Some)
    }

    fn police(&self, class: &PolicyClass, base_bps: u64) -> Result<Option<PolicePlan>, ConfigError> {
        let Some(police) = &class.police else { return Ok(None) };
        let resolved = parameters::police(police, Some(base_bps))?;
        let missing = || ConfigError::new("police", "cannot be worked out for this interface");
        parameters::police_plan(&resolved).ok_or_else(missing).map(Some)
    }

    /// A class-map, with those that it refers to.
    fn matcher(&self, name: &str) -> Result<Matcher, ConfigError> {
        self.nested_matcher(name, 0, &mut { MAX_STATEMENTS })
    }

    fn nested_matcher(&self, name: &str, depth: usize, left: &mut usize) -> Result<Matcher, ConfigError> {
        let class_map = &self.config.class_maps[name];
        let mut criteria = Vec::new();
        for (index, criterion) in class_map.criteria.iter().enumerate() {
            let path = format!("class_maps.{name}.criteria[{index}]");
            *left = left.checked_sub(1).ok_or_else(|| {
                let message = format!("more than {MAX_STATEMENTS} match statements, nested class-maps included");
                ConfigError::new(path.as_str(), message)
            })?;
            criteria.push(self.statement(criterion, &path, depth, left)?);
        }
        Ok(Matcher { combine: class_map.combine, criteria })
    }

    fn statement(
        &self,
        criterion: &Criterion,
        path: &str,
        depth: usize,
        left: &mut usize,
    ) -> Result<Statement, ConfigError> {
        let missing = |field: &str, what: &str, name: &str| {
            ConfigError::new(format!("{path}.{field}"), format!("there is no {what} {name:?}: define it first"))
        };
        let (negate, test) = match criterion {
            Criterion::Any { negate } => (negate, Test::Any),
            Criterion::AccessGroup { name, negate } => {
                let list = self.access_lists.get(name).filter(|_| self.config.access_lists.contains_key(name));
                (negate, Test::AccessGroup(*list.ok_or_else(|| missing("name", "access list", name))?))
            }
            Criterion::Dscp { values, ip_only, negate } => {
                (negate, Test::Dscp { values: bit_set(values, 63, path)?, ip_only: *ip_only })
            }
            Criterion::Precedence { values, ip_only, negate } => {
                (negate, Test::Precedence { values: bit_set(values, 7, path)? as u8, ip_only: *ip_only })
            }
            Criterion::Cos { values, negate } => (negate, Test::Cos { values: bit_set(values, 7, path)? as u8 }),
            Criterion::Protocol { name, negate } => (negate, Test::Protocol(*name)),
            Criterion::PacketLength { min, max, negate } => {
                let (least, most) = (min.unwrap_or(0), max.unwrap_or(u32::MAX));
                if least > most || (min.is_none() && max.is_none()) {
                    let message = format!(
                        "no packet is {least} to {most} bytes long, or every one: give min, max or both, in order"
                    );
                    return Err(ConfigError::new(path, message));
                }
                (negate, Test::PacketLength { min: least, max: most })
            }
            Criterion::InputInterface { name, negate } => {
                let port = self.ports.get(name).ok_or_else(|| missing("name", "port", name))?;
                (negate, Test::InputInterface(*port))
            }
            Criterion::QosGroup { value, negate } => (negate, Test::QosGroup(*value)),
            Criterion::ClassMap { name, negate } => {
                let nested = if name == CLASS_DEFAULT {
                    Matcher::any()
                } else if !self.config.class_maps.contains_key(name) {
                    return Err(missing("name", "class-map", name));
                } else if depth >= MAX_NESTED_CLASS_MAPS {
                    let message = format!(
                        "class-map {name:?} is nested deeper than {MAX_NESTED_CLASS_MAPS} levels, or in itself"
                    );
                    return Err(ConfigError::new(path, message));
                } else {
                    self.nested_matcher(name, depth + 1, left)?
                };
                (negate, Test::Nested(nested))
            }
        };
        Ok(Statement { negate: *negate, test })
    }
}

fn empty_class(name: &str) -> PolicyClass {
    PolicyClass {
        name: name.to_owned(),
        set: Vec::new(),
        police: None,
        shape: None,
        queue_limit: None,
        fair_queue: None,
        bandwidth: None,
        priority: None,
        random_detect: None,
        service_policy: None,
        trust: None,
        police_aggregate: None,
    }
}

fn bit_set(values: &[u8], greatest: u8, path: &str) -> Result<u64, ConfigError> {
    if values.is_empty() {
        return Err(ConfigError::new(format!("{path}.values"), "no value: give at least one"));
    }
    let mut set = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > greatest {
            let message = format!("{value} is out of range: give 0 to {greatest}");
            return Err(ConfigError::new(format!("{path}.values[{index}]"), message));
        }
        set |= 1 << value;
    }
    Ok(set)
}

fn check_entry(entry: &AccessListEntry) -> Result<(), ConfigError> {
    let ranged = |field: &str, value: Option<u8>, greatest: u8| match value {
        Some(value) if value > greatest => {
            Err(ConfigError::new(field, format!("{value} is out of range: give 0 to {greatest}")))
        }
        _ => Ok(()),
    };
    ranged("dscp", entry.dscp, 63)?;
    ranged("precedence", entry.precedence, 7)?;
    let needs = |field: &str, asked: bool, protocols: &[u8], names: &str| {
        if asked && !entry.protocol.is_some_and(|protocol| protocols.contains(&protocol)) {
            return Err(ConfigError::new(field, format!("only {names} packets have it: set the protocol accordingly")));
        }
        Ok(())
    };
    let with_ports = [protocol::TCP, protocol::UDP];
    needs("source_port", entry.source_port.is_some(), &with_ports, "TCP (6) and UDP (17)")?;
    needs("destination_port", entry.destination_port.is_some(), &with_ports, "TCP (6) and UDP (17)")?;
    needs("established", entry.established, &[protocol::TCP], "TCP (6)")?;
    needs("icmp_type", entry.icmp_type.is_some(), &[protocol::ICMP], "ICMP (1)")?;
    needs("icmp_code", entry.icmp_code.is_some(), &[protocol::ICMP], "ICMP (1)")?;
    if entry.icmp_code.is_some() && entry.icmp_type.is_none() {
        return Err(ConfigError::new("icmp_code", "a code belongs to a type: set icmp_type too"));
    }
    if entry.fragments && (entry.source_port.is_some() || entry.destination_port.is_some()) {
        return Err(ConfigError::new(
            "fragments",
            "fragments other than the first have no ports: remove one of the two",
        ));
    }
    check_ports("source_port", entry.source_port.as_ref())?;
    check_ports("destination_port", entry.destination_port.as_ref())
}

fn check_ports(field: &str, ports: Option<&PortMatch>) -> Result<(), ConfigError> {
    let Some(PortMatch { op, ports }) = ports else { return Ok(()) };
    let fits = match op {
        PortOperator::Eq | PortOperator::Neq => !ports.is_empty(),
        PortOperator::Gt | PortOperator::Lt => ports.len() == 1,
        PortOperator::Range => ports.len() == 2 && ports[0] <= ports[1],
    };
    if fits {
        return Ok(());
    }
    let message =
        format!("{ports:?} does not go with {op:?}: eq and neq take ports, gt and lt one, range two in order");
    Err(ConfigError::new(format!("{field}.ports"), message))
}
