//! JSON Schemas of input and output, generated from the types.

use schemars::{schema_for, Schema};

use crate::{Explanation, Question, Report, Scenario};

fn text(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

/// Returns the schema of the scenario.
pub fn scenario() -> String {
    text(&schema_for!(Scenario))
}

/// Returns the schema of the result.
pub fn result() -> String {
    text(&schema_for!(Report))
}

/// Returns the schema of a question about a packet.
pub fn question() -> String {
    text(&schema_for!(Question))
}

/// Returns the schema of the answer to such a question.
pub fn explanation() -> String {
    text(&schema_for!(Explanation))
}
