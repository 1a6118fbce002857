//! The results of small scenarios, kept: whoever changes what comes out sees what.

use std::path::Path;

use qos_sim::{Scenario, Simulation};

/// A router that polices, a switch with shared round robin, a probe behind a transmit ring.
const NAMES: [&str; 3] = ["router", "switch", "probe"];

#[test]
fn the_results_are_those_that_were_kept() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    #[allow(clippy::disallowed_methods)] // the test reads the repository
    let read = |name: String| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    for name in NAMES {
        let scenario = Scenario::from_json(&read(format!("{name}.scenario.json"))).unwrap();
        let report = Simulation::new(&scenario).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
        let found = serde_json::to_string_pretty(&report).unwrap() + "\n";
        assert!(
            found == read(format!("{name}.result.json")),
            "the result of {name} is another one; if that is meant, run in {}: \
             qos-sim run --pretty {name}.scenario.json > {name}.result.json",
            folder.display()
        );
    }
}
