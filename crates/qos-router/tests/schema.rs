//! The committed schemas are those of the types.

use std::path::Path;

use qos_router::schema;

fn compare(name: &str, generated: &str) {
    compare_file(name, &format!("qos-router-{name}.schema.json"), generated);
}

fn compare_file(name: &str, file: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(file);
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "docs/schema/{file} is stale; run: qos-router schema {name} > {}", path.display());
}

#[test]
fn the_schema_of_the_configuration_is_fresh() {
    compare("config", &schema::config());
}

#[test]
fn the_schema_of_the_counters_is_fresh() {
    compare("counters", &schema::counters());
}

#[test]
fn the_schema_of_resolved_policy_maps_is_fresh() {
    compare("resolve", &schema::resolve());
}

#[test]
fn the_schema_of_the_wiring_is_fresh() {
    compare("ports", &schema::ports());
}

#[test]
fn the_schema_of_a_lab_is_fresh() {
    compare("lab", &schema::lab());
}

#[test]
fn the_schema_of_ip_sla_is_fresh() {
    compare("ip-sla", &schema::ip_sla());
}

#[test]
fn the_rules_of_policies_are_fresh() {
    compare_file("rules", "qos-router-rules.json", &schema::rules());
}
