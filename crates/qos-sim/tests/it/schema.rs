//! The committed schemas are those of the types.

use std::path::Path;

use qos_sim::schema;

fn compare(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/qos-sim-{name}.schema.json"));
    #[allow(clippy::disallowed_methods)] // the test reads the repository
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/schema/qos-sim-{name}.schema.json is stale; run: qos-sim schema {name} > {}",
        path.display()
    );
}

#[test]
fn the_schema_of_the_scenario_is_fresh() {
    compare("scenario", &schema::scenario());
}

#[test]
fn the_schema_of_the_result_is_fresh() {
    compare("result", &schema::result());
}

#[test]
fn the_schemas_of_a_question_and_its_answer_are_fresh() {
    compare("question", &schema::question());
    compare("explanation", &schema::explanation());
}
