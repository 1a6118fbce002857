//! Stored results of small scenarios: a change of the results shows as a difference.

use std::cell::Cell;
use std::io::{self, Cursor};
use std::path::Path;
use std::rc::Rc;

use qos_sim::sample_store::SampleStore;
use qos_sim::{Scenario, Simulation};

/// A router that polices, a switch with shared round robin, a probe behind a transmit ring.
const NAMES: [&str; 3] = ["router", "switch", "probe"];

fn stored_result(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.scenario.json"));
    #[allow(clippy::disallowed_methods)] // the test reads the repository
    Scenario::from_json(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// With all, some or no samples in a file.
#[test]
fn samples_in_a_file_give_the_same_result() {
    for name in NAMES {
        let kept = stored_result(name);
        let report = Simulation::new(&kept).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
        for (pretty, most_in_memory) in [(false, 0), (false, 3_000), (false, usize::MAX), (true, 0), (true, 3_000)] {
            let opened = Rc::new(Cell::new(0));
            let count = opened.clone();
            let open = move || {
                count.set(count.get() + 1);
                Ok(Cursor::new(Vec::new()))
            };
            let mut store = SampleStore::new(pretty, most_in_memory, open);
            let stored = Simulation::new(&kept).unwrap().run_sampled(Vec::<Vec<u8>>::new(), &mut store).unwrap();
            let stored = stored.with_routers(store);
            let (found, expected) = match pretty {
                false => (serde_json::to_string(&stored), serde_json::to_string(&report)),
                true => (serde_json::to_string_pretty(&stored), serde_json::to_string_pretty(&report)),
            };
            assert!(found.unwrap() == expected.unwrap(), "{name}, {pretty}, {most_in_memory}");
            assert_eq!(opened.get(), i32::from(most_in_memory < usize::MAX), "{name}, {most_in_memory}");
        }
    }
}

#[test]
fn a_sample_that_cannot_be_stored_ends_the_run() {
    let mut store = SampleStore::<Cursor<Vec<u8>>>::new(false, 0, || Err(io::Error::other("no room")));
    let error =
        Simulation::new(&stored_result("router")).unwrap().run_sampled(Vec::<Vec<u8>>::new(), &mut store).unwrap_err();
    assert_eq!(error.to_string(), "no room");
}

#[test]
fn the_results_equal_the_stored_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    #[allow(clippy::disallowed_methods)] // the test reads the repository
    let read = |name: String| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    for name in NAMES {
        let report = Simulation::new(&stored_result(name)).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
        let found = serde_json::to_string_pretty(&report).unwrap() + "\n";
        assert!(
            found == read(format!("{name}.result.json")),
            "the result of {name} is another one; if that is meant, run in {}: \
             qos-sim run --pretty {name}.scenario.json > {name}.result.json",
            folder.display()
        );
    }
}
