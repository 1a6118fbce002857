//! JSON Schemas of the messages on the control socket, generated from the types, and the rules of policy-maps.

use qos_core::counters::Resolved;
use qos_core::{Counters, PortsConfig};
use schemars::{schema_for, JsonSchema};
use serde::Serialize;

use crate::config::DataPlaneConfig;
use crate::health::Health;
use crate::lab::LabConfig;

/// The `counters` reply without `ok`.
#[derive(Debug, serde::Serialize, JsonSchema)]
pub struct CountersReply {
    /// Counters of the engine.
    #[serde(flatten)]
    pub counters: Counters,
    /// State of the daemon.
    pub health: Health,
}

fn text(content: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(content).expect("it is plain JSON");
    text.push('\n');
    text
}

/// Returns the schema of the configuration.
pub fn config() -> String {
    text(&schema_for!(DataPlaneConfig))
}

/// Returns the schema of the reply to `counters`.
pub fn counters() -> String {
    text(&schema_for!(CountersReply))
}

/// Returns the schema of the reply to `resolve`, without `ok`.
pub fn resolve() -> String {
    text(&schema_for!(Resolved))
}

/// Returns the schema of the wiring file.
pub fn ports() -> String {
    text(&schema_for!(PortsConfig))
}

/// Returns the schema of the file of a lab's routers.
pub fn lab() -> String {
    text(&schema_for!(LabConfig))
}

/// Returns the schema of the reply to `ip_sla`.
pub fn ip_sla() -> String {
    text(&schema_for!(ip_sla::Report))
}

/// Returns the rules of policy-maps, for programs that decide the same.
pub fn rules() -> String {
    text(&qos_core::policy_rules())
}
