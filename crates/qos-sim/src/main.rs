//! The command line of `qos-sim`: the only part of the crate with files and streams.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use qos_sim::{schema, Scenario, Simulation};

/// Simulates a network with the routers' own queueing engine and modelled TCP, in virtual time.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario and print its result, both JSON (docs/simulation.md); captures go to the files that it names
    Run {
        /// The scenario; standard input where absent
        file: Option<PathBuf>,
        /// Print the result over several lines
        #[arg(long)]
        pretty: bool,
    },
    /// Check a scenario without running it
    Check {
        /// The scenario; standard input where absent
        file: Option<PathBuf>,
    },
    /// Print a JSON Schema
    Schema {
        /// Of what
        of: Schema,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Schema {
    /// The scenario
    Scenario,
    /// The result
    Result,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run { file, pretty } => run(file, pretty),
        Command::Check { file } => read(file).and_then(|scenario| set_up(&scenario)).map(|_| ()),
        Command::Schema { of } => print(match of {
            Schema::Scenario => schema::scenario(),
            Schema::Result => schema::result(),
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("qos-sim: {message}");
            ExitCode::FAILURE
        }
    }
}

fn read(file: Option<PathBuf>) -> Result<Scenario, String> {
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
    Scenario::from_json(&text).map_err(|error| format!("scenario: {error}"))
}

fn set_up(scenario: &Scenario) -> Result<Simulation, String> {
    Simulation::new(scenario).map_err(|error| format!("scenario: {error}"))
}

fn run(file: Option<PathBuf>, pretty: bool) -> Result<(), String> {
    let simulation = set_up(&read(file)?)?;
    let open = |path: &str| match File::create(path) {
        Ok(file) => Ok(BufWriter::new(file)),
        Err(error) => Err(format!("cannot create {path}: {error}")),
    };
    let files = simulation.captures().map(|capture| open(&capture.file)).collect::<Result<Vec<_>, _>>()?;
    let report = simulation.run(files).map_err(|error| format!("cannot write a capture: {error}"))?;
    let text = if pretty { serde_json::to_string_pretty(&report) } else { serde_json::to_string(&report) };
    let mut text = text.map_err(|error| format!("cannot write the result: {error}"))?;
    text.push('\n');
    print(text)
}

/// Prints to standard output; a reader that has gone away is no error.
fn print(text: String) -> Result<(), String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}
