//! The results of small scenarios, kept: whoever changes what comes out sees what.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use qos_core::Counters;
use qos_sim::{Scenario, Simulation};

/// A router that polices, a switch with shared round robin, a probe behind a transmit ring.
const NAMES: [&str; 3] = ["router", "switch", "probe"];

fn kept(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.scenario.json"));
    #[allow(clippy::disallowed_methods)] // the test reads the repository
    Scenario::from_json(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Who watches sees what the report has, once a second, and changes nothing of it.
#[test]
fn a_run_that_is_watched_is_the_same() {
    for name in NAMES {
        let alone = Simulation::new(&kept(name)).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
        let mut seen: BTreeMap<String, Vec<Counters>> = BTreeMap::new();
        let watch = |router: &str, counters: &Counters| {
            seen.entry(router.to_owned()).or_default().push(counters.clone());
            Ok(())
        };
        let watched = Simulation::new(&kept(name)).unwrap().run_watched(Vec::<Vec<u8>>::new(), watch).unwrap();
        assert_eq!(serde_json::to_string(&watched).unwrap(), serde_json::to_string(&alone).unwrap());
        assert_eq!(seen.len(), watched.routers.len());
        for (router, report) in &watched.routers {
            let start = report.samples[0].time_ns;
            let whole = report.samples.iter().filter(|each| (each.time_ns - start) % 1_000_000_000 == 0);
            let whole: Vec<Counters> = whole.cloned().collect();
            assert!(!whole.is_empty());
            assert_eq!(serde_json::to_string(&seen[router]).unwrap(), serde_json::to_string(&whole).unwrap());
        }
    }
}

/// What it cannot tell ends a run.
#[test]
fn a_watch_that_fails_ends_the_run() {
    let watch = |_: &str, _: &Counters| Err(io::Error::other("nobody there"));
    let error = Simulation::new(&kept("router")).unwrap().run_watched(Vec::<Vec<u8>>::new(), watch).unwrap_err();
    assert_eq!(error.to_string(), "nobody there");
}

#[test]
fn the_results_equal_the_stored_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    #[allow(clippy::disallowed_methods)] // the test reads the repository
    let read = |name: String| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    for name in NAMES {
        let report = Simulation::new(&kept(name)).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
        let found = serde_json::to_string_pretty(&report).unwrap() + "\n";
        assert!(
            found == read(format!("{name}.result.json")),
            "the result of {name} is another one; if that is meant, run in {}: \
             qos-sim run --pretty {name}.scenario.json > {name}.result.json",
            folder.display()
        );
    }
}
