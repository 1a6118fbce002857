//! The result of a small scenario, kept: whoever changes what comes out sees what.

use std::path::Path;

use qos_sim::{Scenario, Simulation};

#[test]
fn the_result_is_the_one_that_was_kept() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    #[allow(clippy::disallowed_methods)] // the test reads the repository
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let scenario = Scenario::from_json(&read("scenario.json")).unwrap();
    let report = Simulation::new(&scenario).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
    let found = serde_json::to_string_pretty(&report).unwrap() + "\n";
    assert!(
        found == read("result.json"),
        "the result is another one; if that is meant, run in {}: qos-sim run --pretty scenario.json > result.json",
        folder.display()
    );
}
