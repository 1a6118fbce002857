//! Configuration being compiled: common queries of all stages.

use std::collections::{BTreeMap, BTreeSet};

use crate::compile::combinations::QUEUEING;
use crate::compile::generation::{properties, Properties};
use crate::config::defaults::MAX_LEVELS;
use crate::config::policy::PolicyClass;
use crate::config::router::RouterConfig;
use crate::frame::port_number::PortId;

/// A class of a policy-map with the path of its configuration.
pub(crate) type PathClass = (String, PolicyClass);

/// A configuration being compiled.
pub(crate) struct Context<'a> {
    pub config: &'a RouterConfig,
    /// Properties of the router's generation.
    pub properties: &'static Properties,
    pub ports: &'a BTreeMap<String, PortId>,
    /// Numbers of the access lists.
    pub access_lists: &'a BTreeMap<String, usize>,
    /// Policy-maps that have queues, themselves or in their children.
    queueing: BTreeSet<String>,
    /// Levels of each policy-map.
    pub levels: BTreeMap<String, usize>,
}

impl<'a> Context<'a> {
    pub fn new(
        config: &'a RouterConfig,
        ports: &'a BTreeMap<String, PortId>,
        access_lists: &'a BTreeMap<String, usize>,
    ) -> Context<'a> {
        let (queueing, levels) = (queueing(config), levels(config));
        let properties = properties(config.generation);
        Context { config, properties, ports, access_lists, queueing, levels }
    }
}

impl Context<'_> {
    /// Returns whether a policy-map has a class that queues, including its children.
    pub fn queues(&self, policy: &str) -> bool {
        self.queueing.contains(policy)
    }

    /// Returns whether a class has a queue, or its child has some.
    pub fn class_queues(&self, class: &PolicyClass) -> bool {
        has_own_queue(class) || class.service_policy.as_ref().is_some_and(|child| self.queues(child))
    }
}

fn has_own_queue(class: &PolicyClass) -> bool {
    QUEUEING.iter().any(|fact| fact.is_true(class, false))
}

/// Returns the policy-maps that have queues, themselves or in their children.
pub(crate) fn queueing(config: &RouterConfig) -> BTreeSet<String> {
    let mut queueing = BTreeSet::new();
    // Each pass finds the parents of those found before.
    for _ in 0..MAX_LEVELS {
        for (name, policy) in &config.policy_maps {
            let queues = |class: &PolicyClass| {
                has_own_queue(class) || class.service_policy.as_ref().is_some_and(|child| queueing.contains(child))
            };
            if policy.classes.iter().any(queues) {
                queueing.insert(name.clone());
            }
        }
    }
    queueing
}

/// Returns the number of levels of each policy-map, including itself; at most one more than possible.
pub(crate) fn levels(config: &RouterConfig) -> BTreeMap<String, usize> {
    let mut levels: BTreeMap<String, usize> = config.policy_maps.keys().map(|name| (name.clone(), 1)).collect();
    for _ in 0..MAX_LEVELS {
        for (name, policy) in &config.policy_maps {
            let children = policy.classes.iter().filter_map(|class| levels.get(class.service_policy.as_ref()?));
            let own = 1 + children.max().copied().unwrap_or(0);
            levels.insert(name.clone(), own.min(MAX_LEVELS + 1));
        }
    }
    levels
}
