//! Output and end of a program.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde::Serialize;

/// Reason why a program ends without success.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong: exit status 2, as clap has it.
    Usage(String),
    /// Anything else: exit status 1.
    Failed(String),
    /// The reader of the output has closed it: no error.
    ReaderGone,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Failed(message)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

/// Ends a program: prints the error on standard error.
pub fn end(program: &str, result: Result<(), Failure>) -> ExitCode {
    let (message, status) = match result {
        Ok(()) | Err(Failure::ReaderGone) => return ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => (message, 2),
        Err(Failure::Failed(message)) => (message, 1),
    };
    eprintln!("{program}: {message}");
    ExitCode::from(status)
}

/// Prints text to standard output at once, because the reader may be waiting for it.
///
/// # Errors
/// Standard output cannot be written to, or has no reader.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(|error| unwritten(&error))
}

/// Returns the failure for an error of standard output.
fn unwritten(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Failed(format!("cannot write to standard output: {error}")),
    }
}

/// Prints a value as one line of JSON; see [`print()`].
///
/// # Errors
/// Those of [`print()`], and a value that JSON cannot hold.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text =
        serde_json::to_string(value).map_err(|error| Failure::Failed(format!("cannot write as JSON: {error}")))?;
    text.push('\n');
    print(&text)
}

/// Prints a value as JSON, over several lines if `pretty`, without its whole text in memory.
///
/// # Errors
/// Those of [`print()`], and a value that JSON cannot hold, after the part before it.
pub fn stream_json(value: &impl Serialize, pretty: bool) -> Result<(), Failure> {
    let mut output = BufWriter::new(io::stdout().lock());
    let written = match pretty {
        true => serde_json::to_writer_pretty(&mut output, value),
        false => serde_json::to_writer(&mut output, value),
    };
    written.map_err(|error| match error.is_io() {
        true => unwritten(&error.into()),
        false => Failure::Failed(format!("cannot write as JSON: {error}")),
    })?;
    output.write_all(b"\n").and_then(|()| output.flush()).map_err(|error| unwritten(&error))
}
