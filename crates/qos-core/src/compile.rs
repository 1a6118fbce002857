//! From configured class-maps and policy-maps to what the engine runs; everything is checked here.

use std::collections::BTreeMap;

use crate::classifier::{Matcher, Statement, Test};
use crate::config::{
    AccessListEntry, ConfigError, Criterion, PolicyClass, PolicyMap, PortMatch, PortOperator, RouterConfig, SetAction,
};
use crate::counters::{Resolved, ResolvedClass, ResolvedPolicy};
use crate::engine::PortId;
use crate::figures;
use crate::marking::greatest;
use crate::packet::protocol;
use crate::policer::PolicePlan;
use crate::queue::QueuePlan;
use crate::scheduler::SlotPlan;
use crate::shaper::ShapePlan;
use crate::switch::plan as switch_plan;

/// The class that is always there and last.
pub(crate) const CLASS_DEFAULT: &str = "class-default";
/// Levels of nested policy-maps.
const MAX_LEVELS: usize = 3;
/// Levels of nested class-maps.
const MAX_NESTED_CLASS_MAPS: usize = 8;
/// Classes of a policy-map.
const MAX_CLASSES: usize = 256;
/// Classes of an attached policy-map and its children together: keeps the product of levels from exhausting memory.
const MAX_ATTACHED_CLASSES: usize = 4_096;
/// Match statements of a class-map and those that it refers to, together.
const MAX_STATEMENTS: usize = 4_096;

/// A class of an attached policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassPlan {
    pub name: String,
    pub matcher: Matcher,
    pub set: Vec<SetAction>,
    pub police: Option<PolicePlan>,
    /// The queue that its packets join: its own, its parent's, or 0 for the interface's.
    pub slot: usize,
    /// Whether that queue is its own.
    pub own_queue: bool,
    pub parent: Option<usize>,
    /// The classes of the child policy-map, and its name.
    pub child: Option<(String, Vec<usize>)>,
}

/// An attached policy-map, its children included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyPlan {
    pub name: String,
    /// All classes of all levels; a parent comes before its children.
    pub classes: Vec<ClassPlan>,
    /// The classes of the first level, in order.
    pub roots: Vec<usize>,
    /// Queues of classes: queue 1 and following. A policy that has some replaces the interface's default queueing; one that only marks
    /// and polices does not.
    pub slots: Vec<SlotPlan>,
}

/// What a policy is attached to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attachment {
    pub bandwidth_kbps: u64,
    pub output: bool,
}

/// A configuration being compiled.
pub(crate) struct Compiler<'a> {
    pub config: &'a RouterConfig,
    pub ports: &'a BTreeMap<String, PortId>,
    /// Numbers of the access lists.
    pub access_lists: &'a BTreeMap<String, usize>,
}

fn at(path: &str, error: &ConfigError) -> ConfigError {
    ConfigError::new(format!("{path}.{}", error.path), error.message.clone())
}

impl Compiler<'_> {
    /// Checks everything that does not depend on an interface.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.config.format != crate::config::FORMAT {
            let message =
                format!("format {} is not known: this engine reads {}", self.config.format, crate::config::FORMAT);
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
            switch_plan::check(switch)?;
            switch_plan::check_aggregates(self.config)?;
        }
        self.resolve().map(drop)
    }

    /// The policy-maps with their defaults.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        let mut policy_maps = BTreeMap::new();
        for (name, policy) in &self.config.policy_maps {
            let mut classes = Vec::new();
            for (path, class) in self.classes(name, policy)? {
                classes.push(self.resolve_class(&class).map_err(|error| at(&path, &error))?);
                if let Some(child) = &class.service_policy {
                    self.check_child(child, 1, &format!("{path}.service_policy"))?;
                }
            }
            policy_maps.insert(name.clone(), ResolvedPolicy { classes });
        }
        Ok(Resolved { policy_maps })
    }

    fn resolve_class(&self, class: &PolicyClass) -> Result<ResolvedClass, ConfigError> {
        match &self.config.switch {
            Some(switch) => switch_plan::check_class(class, switch)?,
            None => switch_plan::check_router_class(class)?,
        }
        for (field, given) in [
            ("bandwidth", class.bandwidth.is_some()),
            ("priority", class.priority.is_some()),
            ("random_detect", class.random_detect.is_some()),
        ] {
            if given {
                return Err(ConfigError::new(field, "this engine does not have it yet: give null"));
            }
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
        let police = class.police.as_ref().map(|police| figures::police(police, None)).transpose()?;
        let shape = class.shape.as_ref().map(|shape| figures::shape(shape, None, generation)).transpose()?;
        let queue = figures::class_queue(class, None, generation)?.as_ref().map(figures::resolved_queue);
        Ok(ResolvedClass {
            name: class.name.clone(),
            police,
            shape,
            queue_limit_packets: queue.map(|(limit, _)| limit),
            fair_queue: queue.and_then(|(_, fair)| fair),
            bandwidth: None,
            priority: None,
            random_detect: None,
            service_policy: class.service_policy.clone(),
        })
    }

    fn check_child(&self, name: &str, level: usize, path: &str) -> Result<(), ConfigError> {
        let Some(policy) = self.config.policy_maps.get(name) else {
            return Err(ConfigError::new(path, format!("there is no policy-map {name:?}: define it first")));
        };
        if level >= MAX_LEVELS {
            let message = format!("policy-map {name:?} is nested deeper than {MAX_LEVELS} levels, or in itself");
            return Err(ConfigError::new(path, message));
        }
        policy
            .classes
            .iter()
            .filter_map(|class| class.service_policy.as_ref())
            .try_for_each(|child| self.check_child(child, level + 1, path))
    }

    /// The classes of a policy-map with their paths, `class-default` last.
    fn classes(&self, name: &str, policy: &PolicyMap) -> Result<Vec<(String, PolicyClass)>, ConfigError> {
        let path = |index: usize| format!("policy_maps.{name}.classes[{index}]");
        let mut classes: Vec<_> =
            policy.classes.iter().enumerate().map(|(index, class)| (path(index), class.clone())).collect();
        if classes.len() > MAX_CLASSES {
            let message = format!("{} classes: at most {MAX_CLASSES} are possible", classes.len());
            return Err(ConfigError::new(format!("policy_maps.{name}.classes"), message));
        }
        for index in 1..classes.len() {
            if classes[..index].iter().any(|(_, earlier)| earlier.name == classes[index].1.name) {
                let message = format!("class {:?} is there already", classes[index].1.name);
                return Err(ConfigError::new(format!("{}.name", path(index)), message));
            }
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
        let mut plan = PolicyPlan { name: name.to_owned(), classes: Vec::new(), roots: Vec::new(), slots: Vec::new() };
        let base_bps = to.bandwidth_kbps.saturating_mul(1_000);
        plan.roots = self.level(&mut plan, name, path, to, base_bps, None)?;
        Ok(plan)
    }

    fn level(
        &self,
        plan: &mut PolicyPlan,
        name: &str,
        path: &str,
        to: Attachment,
        base_bps: u64,
        parent: Option<usize>,
    ) -> Result<Vec<usize>, ConfigError> {
        let Some(policy) = self.config.policy_maps.get(name) else {
            return Err(ConfigError::new(path, format!("there is no policy-map {name:?}: define it, or give null")));
        };
        let mut numbers = Vec::new();
        for (class_path, class) in self.classes(name, policy)? {
            let (queue, shape, police) =
                self.class_figures(&class, to, base_bps).map_err(|error| at(&class_path, &error))?;
            if queue.is_some() && !to.output {
                let message =
                    format!("policy-map {name:?} queues or shapes in class {:?}, which is for output only", class.name);
                return Err(ConfigError::new(path, message));
            }
            if queue.is_some() && parent.is_some() {
                let message = "queueing in a child policy-map: this engine does not have it yet; queue in the parent";
                return Err(ConfigError::new(class_path, message));
            }
            let slot = match queue {
                Some(queue) => {
                    plan.slots.push(SlotPlan { queue, shape });
                    plan.slots.len()
                }
                None => parent.map_or(0, |parent| plan.classes[parent].slot),
            };
            let matcher = match class.name.as_str() {
                CLASS_DEFAULT => Matcher::any(),
                class_map => self.matcher(class_map)?,
            };
            let number = plan.classes.len();
            if number >= MAX_ATTACHED_CLASSES {
                let message = format!(
                    "policy-map {:?} has more than {MAX_ATTACHED_CLASSES} classes with its children",
                    plan.name
                );
                return Err(ConfigError::new(path, message));
            }
            numbers.push(number);
            plan.classes.push(ClassPlan {
                name: class.name.clone(),
                matcher,
                set: class.set.clone(),
                police,
                slot,
                own_queue: queue.is_some(),
                parent,
                child: None,
            });
            if let Some(child) = &class.service_policy {
                let child_path = format!("{class_path}.service_policy");
                let base_bps = shape.map_or(base_bps, |shape| shape.cir_bps);
                let classes = self.level(plan, child, &child_path, to, base_bps, Some(number))?;
                plan.classes[number].child = Some((child.clone(), classes));
            }
        }
        Ok(numbers)
    }

    #[allow(clippy::type_complexity)]
    fn class_figures(
        &self,
        class: &PolicyClass,
        to: Attachment,
        base_bps: u64,
    ) -> Result<(Option<QueuePlan>, Option<ShapePlan>, Option<PolicePlan>), ConfigError> {
        let generation = self.config.generation;
        let incomplete = |path: &str| ConfigError::new(path, "cannot be worked out for this interface");
        let shape = match &class.shape {
            None => None,
            Some(shape) => {
                let resolved = figures::shape(shape, Some(base_bps), generation)?;
                Some(figures::shape_plan(&resolved).ok_or_else(|| incomplete("shape"))?)
            }
        };
        let police = match &class.police {
            None => None,
            Some(police) => {
                let resolved = figures::police(police, Some(base_bps))?;
                Some(figures::police_plan(&resolved).ok_or_else(|| incomplete("police"))?)
            }
        };
        Ok((figures::class_queue(class, Some(to.bandwidth_kbps), generation)?, shape, police))
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
