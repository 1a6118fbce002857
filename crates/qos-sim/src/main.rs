//! The command line of `qos-sim`: the only part of the crate with files and streams.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use std::collections::BTreeMap;
#[cfg(not(feature = "mistakes"))]
use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand, ValueEnum};

use qos_core::time::NANOS_PER_SECOND;
use serde::{Deserialize, Serialize};

use netio::program_end::{end, print, print_json, stream_json, Failure};
use qos_sim::sample_store::SampleStore;
use qos_sim::samples::{Sample, Samples};
use qos_sim::{schema, Question, Scenario, Simulation};

/// Maximum number of bytes of samples in memory; a short run needs no file.
const MOST_IN_MEMORY: usize = 1 << 20;

/// Simulates a network with the routers' own queueing engine and modelled TCP, in virtual time.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    /// Make this mistake on purpose; `mistakes` lists them
    #[cfg(feature = "mistakes")]
    #[arg(long, value_name = "NAME", global = true)]
    mistake: Option<String>,
    /// Refused: a program makes no mistakes
    #[cfg(not(feature = "mistakes"))]
    #[arg(long = "mistake", value_name = "NAME", global = true, hide = true, value_parser = no_mistake)]
    _mistake: Option<Infallible>,
    /// Write there, after a run, the names of the mistakes whose switches it has executed, one per line
    #[cfg(feature = "mistakes")]
    #[arg(long, value_name = "FILE", global = true)]
    reached: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario and print its result, both JSON (docs/internals/simulator.md); captures go to files named in it
    Run {
        /// Scenario file. [default: standard input]
        file: Option<PathBuf>,
        /// Print the result over several lines
        #[arg(long)]
        pretty: bool,
        /// During the run, append the counters of each router to DIR/ROUTER.jsonl, once per virtual second, for
        /// watching programs
        #[arg(long, value_name = "DIR")]
        watch: Option<PathBuf>,
    },
    /// Run many scenarios, one after another: each line of standard input is a request, each line of output the result
    /// of a run or an error, all JSON (docs/internals/simulator.md)
    Serve,
    /// Send a packet to a router of a scenario and print its outcome as JSON (docs/internals/simulator.md)
    Explain {
        /// The question, JSON
        question: PathBuf,
        /// Scenario file. [default: standard input]
        file: Option<PathBuf>,
    },
    /// Check a scenario without running it
    Check {
        /// Scenario file. [default: standard input]
        file: Option<PathBuf>,
    },
    /// Print a JSON Schema
    Schema {
        /// Format of the schema
        of: Schema,
    },
    /// List the deliberate mistakes, one per line: name, tab, description
    #[cfg(feature = "mistakes")]
    Mistakes,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Schema {
    /// The scenario
    Scenario,
    /// The result
    Result,
    /// A question about a packet
    Question,
    /// The answer to it
    Explanation,
}

/// Returns the error for a mistake in a program without the feature.
#[cfg(not(feature = "mistakes"))]
fn no_mistake(_name: &str) -> Result<Infallible, &'static str> {
    Err("this program has no deliberate mistakes: only a build for tests has them (`tox -e prove` makes one)")
}

/// An input line of `serve`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Folder of the captures.
    folder: PathBuf,
    /// File of the scenario.
    scenario: PathBuf,
    /// Folder for watching programs, like the option of `run`.
    watch: PathBuf,
    /// Real time before the first files in `watch`: a run that ends earlier creates none.
    watch_after_s: f64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    #[cfg(feature = "mistakes")]
    if cli.mistake.as_ref().is_some_and(|name| !mistakes::make(name)) {
        return end("qos-sim", Err(Failure::Usage("--mistake: unknown mistake; `qos-sim mistakes` lists them".into())));
    }
    let result = match cli.command {
        Command::Run { file, pretty, watch } => run(file, pretty, watch.map(|folder| Watch::new(folder, 0.0))),
        Command::Serve => serve(),
        Command::Explain { question, file } => explain(&question, file),
        Command::Check { file } => read(file).and_then(|scenario| set_up(&scenario)).map(|_| ()),
        Command::Schema { of } => print(&match of {
            Schema::Scenario => schema::scenario(),
            Schema::Result => schema::result(),
            Schema::Question => schema::question(),
            Schema::Explanation => schema::explanation(),
        }),
        #[cfg(feature = "mistakes")]
        Command::Mistakes => {
            let lines = mistakes::CATALOGUE.iter().map(|(_, name, what)| format!("{name}\t{what}\n"));
            print(&lines.collect::<String>())
        }
    };
    #[cfg(feature = "mistakes")]
    let result = result.and_then(|()| match cli.reached {
        None => Ok(()),
        Some(path) => std::fs::write(&path, mistakes::reached().map(|name| format!("{name}\n")).collect::<String>())
            .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display()))),
    });
    end("qos-sim", result)
}

fn read(file: Option<PathBuf>) -> Result<Scenario, Failure> {
    let mut text = String::new();
    match &file {
        Some(path) => {
            text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        }
        None => {
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| format!("cannot read standard input: {error}"))?;
        }
    }
    Scenario::from_json(&text).map_err(|error| Failure::Failed(format!("scenario: {error}")))
}

fn explain(question: &Path, file: Option<PathBuf>) -> Result<(), Failure> {
    let text = std::fs::read_to_string(question);
    let text = text.map_err(|error| format!("cannot read {}: {error}", question.display()))?;
    let asked = Question::from_json(&text).map_err(|error| Failure::Failed(format!("question: {error}")))?;
    let scenario = read(file)?;
    let simulation = Simulation::for_question(&scenario);
    let simulation = simulation.map_err(|error| Failure::Failed(format!("scenario: {error}")))?;
    let answer = simulation.explain::<BufWriter<File>>(&scenario, &asked);
    print_json(&answer.map_err(|error| Failure::Failed(format!("question: {error}")))?)
}

fn set_up(scenario: &Scenario) -> Result<Simulation, Failure> {
    Simulation::new(scenario).map_err(|error| Failure::Failed(format!("scenario: {error}")))
}

/// Appends lines to a file, which is created with its folder if it is missing.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    let open = || OpenOptions::new().append(true).create(true).open(path);
    let mut file = open().or_else(|error| match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(folder)) => std::fs::create_dir_all(folder).and_then(|()| open()),
        _ => Err(error),
    })?;
    file.write_all(lines)
}

/// Files for watching programs.
struct Watch {
    folder: PathBuf,
    /// Time at which files are created: a run that ends earlier creates none.
    begins: Instant,
    /// Unwritten lines of each router's file.
    waiting: BTreeMap<PathBuf, Vec<u8>>,
}

impl Watch {
    fn new(folder: PathBuf, after: f64) -> Self {
        Watch {
            folder,
            begins: Instant::now() + Duration::try_from_secs_f64(after).unwrap_or_default(),
            waiting: BTreeMap::new(),
        }
    }

    /// Writes the counters of a router, once files are created. An error names the file.
    fn take(&mut self, router: &str, counters: &impl Serialize) -> io::Result<()> {
        let path = self.folder.join(format!("{router}.jsonl"));
        let lines = self.waiting.entry(path).or_default();
        serde_json::to_writer(&mut *lines, counters)?;
        lines.push(b'\n');
        if Instant::now() < self.begins {
            return Ok(());
        }
        while let Some((path, lines)) = self.waiting.pop_first() {
            append(&path, &lines)
                .map_err(|error| io::Error::other(format!("cannot write {}: {error}", path.display())))?;
        }
        Ok(())
    }
}

fn serve() -> Result<(), Failure> {
    for line in io::stdin().lines() {
        let line = line.map_err(|error| format!("cannot read standard input: {error}"))?;
        match serve_one(&line) {
            Err(Failure::Usage(error) | Failure::Failed(error)) => print_json(&BTreeMap::from([("error", error)]))?,
            other => other?,
        }
    }
    Ok(())
}

fn serve_one(line: &str) -> Result<(), Failure> {
    let asked: Request = serde_json::from_str(line).map_err(|error| format!("request: {error}"))?;
    let folder = asked.folder.display();
    std::env::set_current_dir(&asked.folder).map_err(|error| format!("cannot enter {folder}: {error}"))?;
    run(Some(asked.scenario), false, Some(Watch::new(asked.watch, asked.watch_after_s)))
}

fn run(file: Option<PathBuf>, pretty: bool, watch: Option<Watch>) -> Result<(), Failure> {
    let simulation = set_up(&read(file)?)?;
    let open = |path: &str| match File::create(path) {
        Ok(file) => Ok(BufWriter::new(file)),
        Err(error) => Err(format!("cannot create {path}: {error}")),
    };
    let files = simulation.captures().map(|capture| open(&capture.file)).collect::<Result<Vec<_>, _>>()?;
    let mut output =
        SampleOutput { store: SampleStore::new(pretty, MOST_IN_MEMORY, unnamed_file), watch, unwritten: None };
    let report = simulation.run_sampled(files, &mut output);
    let report =
        report.map_err(|error| output.unwritten.unwrap_or_else(|| format!("cannot write a capture: {error}")))?;
    stream_json(&report.with_routers(output.store), pretty)
}

/// Storage of samples until the result is printed; those of whole seconds are also appended to files in `watch`.
struct SampleOutput {
    store: SampleStore<File>,
    watch: Option<Watch>,
    /// Error message of the first sample that could not be written.
    unwritten: Option<String>,
}

impl Samples for SampleOutput {
    fn take(&mut self, router: &str, sample: Sample) -> io::Result<()> {
        if let (Some(watch), 0) = (&mut self.watch, sample.elapsed.0 % NANOS_PER_SECOND) {
            watch.take(router, &sample.counters).inspect_err(|error| self.unwritten = Some(error.to_string()))?;
        }
        self.store.take(router, sample).inspect_err(|error| {
            let folder = temporary_folder();
            let advice = "free space there, or set TMPDIR to another folder";
            self.unwritten = Some(format!("cannot write samples to {}: {error}: {advice}", folder.display()));
        })
    }
}

/// Returns the folder of large temporary files: /var/tmp, because /tmp is often in memory.
fn temporary_folder() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from)
}

/// Opens a temporary file without a name, which disappears with the program.
fn unnamed_file() -> io::Result<File> {
    let path = temporary_folder().join(format!("qos-sim-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}
