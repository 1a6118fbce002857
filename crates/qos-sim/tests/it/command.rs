//! The program: its result, the samples for those who watch, and samples that it cannot store.
#![allow(clippy::disallowed_methods)] // the tests run a program in a folder

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use qos_sim::{Scenario, Simulation};
use serde_json::{json, Value};

/// The scenario of the router, with so many samples that they do not stay in memory.
fn scenario_with_many_samples() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/router.scenario.json");
    let mut scenario: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    scenario["sample_ns"] = 10_000_000.into();
    scenario.to_string()
}

/// An empty folder with the scenario in a file.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("temporary")).unwrap();
    std::fs::write(folder.join("scenario.json"), scenario_with_many_samples()).unwrap();
    folder
}

fn run(folder: &Path, temporary: &str, words: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_qos-sim"));
    program.current_dir(folder).env("TMPDIR", folder.join(temporary));
    program.args(["run", "scenario.json"]).args(words).output().unwrap()
}

#[test]
fn the_program_prints_what_the_library_returns_and_leaves_no_file() {
    let folder = folder("result");
    let scenario = Scenario::from_json(&scenario_with_many_samples()).unwrap();
    let report = Simulation::new(&scenario).unwrap().run(Vec::<Vec<u8>>::new()).unwrap();
    let printed = run(&folder, "temporary", &["--watch", "cell/counters"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    assert!(printed.stdout == (serde_json::to_string(&report).unwrap() + "\n").as_bytes());
    let samples = &report.routers["R1"].samples;
    let whole = samples.iter().filter(|each| (each.time_ns - samples[0].time_ns) % 1_000_000_000 == 0);
    let whole: String = whole.map(|each| serde_json::to_string(each).unwrap() + "\n").collect();
    assert!(std::fs::read_to_string(folder.join("cell/counters/R1.jsonl")).unwrap() == whole);
    assert_eq!(std::fs::read_dir(folder.join("temporary")).unwrap().count(), 0);
}

#[test]
fn a_served_run_prints_the_result_of_a_single_one_and_an_error_ends_nothing() {
    let folder = folder("served");
    let alone = run(&folder, "temporary", &[]);
    let path = |name: &str| folder.join(name).display().to_string();
    let request = |scenario: &str, after: u32| {
        let asked = json!({
            "folder": path(""), "scenario": path(scenario), "watch": path("cell/counters"), "watch_after_s": after
        });
        asked.to_string() + "\n"
    };
    let asked = request("missing.json", 0) + &request("scenario.json", 3600) + "{}\n" + &request("scenario.json", 3600);
    std::fs::write(folder.join("requests"), asked).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_qos-sim"));
    program.arg("serve").env("TMPDIR", folder.join("temporary"));
    let printed = program.stdin(File::open(folder.join("requests")).unwrap()).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let lines: Vec<&[u8]> = printed.stdout.split_inclusive(|each| *each == b'\n').collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with(b"{\"error\":\"cannot read "), "{}", String::from_utf8_lossy(lines[0]));
    assert!(lines[2].starts_with(b"{\"error\":\"request: missing field"), "{}", String::from_utf8_lossy(lines[2]));
    assert!(lines[1] == alone.stdout && lines[3] == alone.stdout);
    assert!(!folder.join("cell").exists(), "both ended before their counters were to be written");
}

#[test]
fn missing_folder_for_samples_is_reported_with_advice() {
    let printed = run(&folder("no-room"), "missing", &[]);
    let message = String::from_utf8(printed.stderr).unwrap();
    assert_eq!(printed.status.code(), Some(1));
    assert!(message.contains("missing: No such file or directory"), "{message}");
    assert!(message.contains("set TMPDIR to another folder"), "{message}");
}
