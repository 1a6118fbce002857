//! Compiler from the policies of a switch's VLAN interfaces to one policy for each port with `mls qos vlan-based`.
//!
//! The policies of a port's VLANs run as one: an outermost class for each VLAN, which contains the policy-map of its
//! interface (VLAN level), whose classes can contain the policy-map with the policers of ports (interface level).

use std::collections::BTreeMap;

use crate::compile::catalyst_policer::policer;
use crate::compile::class_tree::{Attachment, Position};
use crate::compile::context::Context;
use crate::compile::policy;
use crate::compile::subinterfaces::{add, outermost};
use crate::config::catalyst::{SwitchConfig, SwitchportConfig, SwitchportMode};
use crate::config::classification::{Criterion, MatchMode};
use crate::config::defaults;
use crate::config::policy::{PolicyClass, SetField};
use crate::config::router::RouterConfig;
use crate::error::ConfigError;
use crate::plan::catalyst::{ClassAction, Mark, PolicerPlan};
use crate::plan::classes::{LevelPlan, Matcher, PolicyPlan, Statement, Test, CLASS_DEFAULT, VLAN_BASED};
use crate::plan::tree::{ROOT, SINGLE};

/// Returns the policies of a port's VLANs as one; none if no VLAN of the port has a policy.
pub(crate) fn attached(
    context: &Context<'_>,
    switch: &SwitchConfig,
    switchport: &SwitchportConfig,
    path: &str,
) -> Result<Option<PolicyPlan>, ConfigError> {
    let of_port = |vlan: u16| switchport.mode == SwitchportMode::Trunk || vlan == switchport.vlan;
    let policies: Vec<_> = switch.vlan_policies.iter().filter(|(vlan, _)| of_port(**vlan)).collect();
    if policies.is_empty() {
        return Ok(None);
    }
    let top = LevelPlan { name: VLAN_BASED.to_owned(), classes: Vec::new(), priority_queues: Vec::new() };
    let mut plan = PolicyPlan { classes: Vec::new(), top, nodes: Vec::new(), flow_queues: None };
    for (vlan, policy) in policies {
        let own = format!("switch.vlan_policies.{vlan}");
        let number = add(&mut plan, outermost(&format!("Vlan{vlan}"), matcher(*vlan, switchport), None), path)?;
        let to = Attachment { bandwidth_kbps: 1, max_reserved_percent: 100, output: false };
        let position = Position { to, rate_bps: 0, guaranteed_bps: 0, parent: Some(number), node: ROOT, leaf: SINGLE };
        plan.classes[number].child = Some(policy::level(context, &mut plan, policy, &own, position)?);
    }
    add(&mut plan, outermost(CLASS_DEFAULT, Matcher::any(), None), path)?;
    Ok(Some(plan))
}

/// Returns the test for a VLAN: frames with its tag, and untagged frames in the port's own VLAN.
fn matcher(vlan: u16, switchport: &SwitchportConfig) -> Matcher {
    let tagged = (vlan, vlan);
    let ranges = if vlan == switchport.vlan { vec![(0, 0), tagged] } else { vec![tagged] };
    let statement = Statement { negate: false, test: Test::Vlan { ranges: ranges.into() } };
    Matcher { combine: MatchMode::All, criteria: vec![statement] }
}

/// Checks the policy-maps of the VLAN interfaces: the allowed settings of each of the two levels.
pub(crate) fn check(context: &Context<'_>, switch: &SwitchConfig) -> Result<(), ConfigError> {
    for (vlan, name) in &switch.vlan_policies {
        let path = format!("switch.vlan_policies.{vlan}");
        if !(1..=4_094).contains(vlan) {
            return Err(ConfigError::out_of_range(path, format!("{vlan} is not a VLAN: expected 1 to 4094")));
        }
        let wrong = |message: String| Err(ConfigError::new(path.clone(), message));
        let Some(policy) = context.config.policy_maps.get(name) else {
            let message = format!("there is no policy-map {name:?}: define it, or leave the VLAN out");
            return Err(ConfigError::unknown(path, message));
        };
        for class in &policy.classes {
            if class.police.is_some() || class.police_aggregate.is_some() {
                return wrong(format!(
                    "policy-map {name:?} polices in class {:?}: a VLAN policy-map cannot police, so put \
                     the policer into a child policy-map, which applies to ports",
                    class.name
                ));
            }
            if matches_ports(context, class).any(|port| port) {
                return wrong(format!(
                    "class {:?} of policy-map {name:?} matches ports: move the match to the child policy-map",
                    class.name
                ));
            }
            let Some(child) = &class.service_policy else { continue };
            for below in &context.config.policy_maps[child].classes {
                check_interface_level(context, below, child).or_else(wrong)?;
            }
        }
    }
    Ok(())
}

/// Refuses settings that a class with a port policer cannot have.
fn check_interface_level(context: &Context<'_>, class: &PolicyClass, name: &str) -> Result<(), String> {
    let what = format!("class {:?} of policy-map {name:?}, at the port level,", class.name);
    if class.trust.is_some() || !class.set.is_empty() {
        return Err(format!("{what} marks: move the marking to the class of the parent"));
    }
    if class.police_aggregate.is_some() {
        return Err(format!("{what} has an aggregate policer: use a separate policer"));
    }
    if class.service_policy.is_some() {
        return Err(format!("{what} has a child: there are only two levels"));
    }
    if matches_ports(context, class).any(|port| !port) {
        return Err(format!("{what} matches something other than ports"));
    }
    Ok(())
}

/// Returns for each criterion of a class whether it matches the input port.
fn matches_ports<'a>(context: &'a Context<'_>, class: &'a PolicyClass) -> impl Iterator<Item = bool> + 'a {
    let criteria = context.config.class_maps.get(&class.name).into_iter().flat_map(|map| &map.criteria);
    criteria.map(|each| matches!(each, Criterion::InputInterface { .. } | Criterion::InputInterfaces { .. }))
}

/// Actions of the classes of a port's input policy.
pub(crate) struct Actions<'a> {
    pub switch: &'a SwitchConfig,
    pub router: &'a RouterConfig,
    /// Action of a class that neither trusts nor sets.
    pub unmarked: Mark,
    pub policers: Vec<PolicerPlan>,
    /// Aggregate policers that classes share, by number.
    aggregates: BTreeMap<&'a str, usize>,
}

impl<'a> Actions<'a> {
    pub fn new(switch: &'a SwitchConfig, router: &'a RouterConfig, unmarked: Mark) -> Actions<'a> {
        Actions { switch, router, unmarked, policers: Vec::new(), aggregates: BTreeMap::new() }
    }

    /// Moves the markings and policers out of a policy's classes.
    pub fn of(&mut self, policy: &mut PolicyPlan) -> Result<Vec<ClassAction>, ConfigError> {
        for class in &mut policy.classes {
            class.police = None;
            class.set.clear();
        }
        let mut actions = vec![ClassAction { mark: self.unmarked, policer: None }; policy.classes.len()];
        self.level(policy, &policy.top, None, &mut actions)?;
        Ok(actions)
    }

    fn level(
        &mut self,
        policy: &PolicyPlan,
        level: &LevelPlan,
        above: Option<Mark>,
        actions: &mut [ClassAction],
    ) -> Result<(), ConfigError> {
        // The outermost level of VLANs is not configured, so it may lack class-default.
        let configured = self.router.policy_maps.get(&level.name).map_or(&[][..], |policy| &policy.classes);
        for number in &level.classes {
            let class = &policy.classes[*number];
            let found = configured.iter().find(|each| each.name == class.name);
            let own = found.and_then(|found| self.mark(found));
            let policer = match found {
                Some(found) => self.policer(found)?,
                None => None,
            };
            actions[*number] = ClassAction { mark: own.or(above).unwrap_or(self.unmarked), policer };
            if let Some(child) = &class.child {
                self.level(policy, child, own.or(above), actions)?;
            }
        }
        Ok(())
    }

    fn mark(&self, class: &PolicyClass) -> Option<Mark> {
        match (class.trust, class.set.first()) {
            (Some(trust), _) => Some(Mark::Trust(trust)),
            (None, Some(set)) => Some(match set.field {
                SetField::Dscp | SetField::IpDscp => Mark::Dscp(set.value as u8),
                // Inferred: the map from a trusted precedence to its code point also applies to a precedence that a
                // policy sets.
                _ => Mark::Dscp(self.switch.maps.ip_prec_dscp[usize::from(set.value & 7)]),
            }),
            (None, None) => None,
        }
    }

    fn policer(&mut self, class: &'a PolicyClass) -> Result<Option<usize>, ConfigError> {
        let new = match (&class.police, &class.police_aggregate) {
            (Some(police), _) => policer(police)?,
            (None, Some(name)) => {
                let aggregate = self.switch.aggregate_policers[name];
                if let Some(number) = self.aggregates.get(name.as_str()) {
                    return Ok(Some(*number));
                }
                self.aggregates.insert(name, self.policers.len());
                let (rate_bps, burst_bytes) = (aggregate.rate_bps, aggregate.burst_bytes);
                PolicerPlan { rate_bps, burst_bytes, exceed: aggregate.exceed }
            }
            (None, None) => return Ok(None),
        };
        self.policers.push(new);
        Ok(Some(self.policers.len() - 1))
    }
}

/// Returns the marking of a packet of a VLAN whose class, if any, neither trusts nor sets.
pub(crate) fn unmarked(source: Mark) -> Mark {
    if defaults::VLAN_CLASS_KEEPS_PORT_TRUST {
        source
    } else {
        Mark::Zero
    }
}
