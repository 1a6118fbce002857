//! Compiler from the configuration to the plans of the ports, with all checks.

pub(crate) mod access_groups;
pub(crate) mod access_lists;
mod account;
pub(crate) mod adjust_mss;
pub(crate) mod bandwidth;
pub(crate) mod catalyst;
pub(crate) mod catalyst_policer;
pub(crate) mod catalyst_vlans;
pub(crate) mod class_maps;
pub(crate) mod class_tree;
pub(crate) mod classes;
mod combinations;
pub(crate) mod configuration;
pub(crate) mod context;
pub(crate) mod generation;
pub(crate) mod interface_queueing;
mod order;
pub(crate) mod parameters;
pub(crate) mod policy;
#[cfg(feature = "serde")]
pub(crate) mod policy_rules;
pub(crate) mod port;
pub(crate) mod queue_limit;
pub(crate) mod range;
pub(crate) mod rate_limits;
pub(crate) mod resolve;
pub(crate) mod rules;
pub(crate) mod subinterfaces;
mod sums;
pub(crate) mod tree;
pub(crate) mod wiring;
