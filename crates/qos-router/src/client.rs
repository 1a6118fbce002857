//! `qos-router ctl`: one request to a running daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{json, Value};

use crate::control::LONGEST_LINE;

/// Time limit for a reply. The daemon answers within milliseconds unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reason of a missing reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket has no listener.
    #[error("cannot connect to {path}: {source}; is a qos-router running with --control {path}?")]
    Connect {
        /// Path of the socket.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file to send cannot be read.
    #[error("cannot read {path}: {source}; give the path of a JSON file, or - for standard input")]
    File {
        /// The path as given.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file to send is not JSON.
    #[error("{path} is not JSON: {source}")]
    Json {
        /// The path as given.
        path: String,
        /// Message with line and column.
        source: serde_json::Error,
    },
    /// A file is given but not needed, or needed but not given.
    #[error("{0}")]
    Usage(String),
    /// The conversation broke.
    #[error("no reply from {path}: {source}")]
    Reply {
        /// Path of the socket.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Returns the request line for `op`. `configure` needs a file with the configuration.
///
/// # Errors
/// When the file is missing, superfluous, unreadable or not JSON.
pub fn request(op: &str, file: Option<&Path>, interface: Option<&str>) -> Result<Value, ClientError> {
    let mut request = json!({"op": op});
    match (op, file) {
        ("configure", None) => {
            return Err(ClientError::Usage(
                "configure needs the file with the configuration: ctl configure FILE".into(),
            ))
        }
        ("configure", Some(path)) => request["config"] = read(path)?,
        (_, Some(path)) => {
            return Err(ClientError::Usage(format!("{op} takes no file, but {} was given", path.display())));
        }
        (_, None) => {}
    }
    if let Some(interface) = interface {
        request["interface"] = interface.into();
    }
    Ok(request)
}

fn read(path: &Path) -> Result<Value, ClientError> {
    let name = path.display().to_string();
    let text = if name == "-" {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(path)
    };
    let text = text.map_err(|source| ClientError::File { path: name.clone(), source })?;
    serde_json::from_slice(&text).map_err(|source| ClientError::Json { path: name, source })
}

/// Sends one request to the socket at `path` and returns the reply's line.
///
/// # Errors
/// If there is no listener or no reply.
pub fn send(path: &Path, request: &Value) -> Result<String, ClientError> {
    let name = path.display().to_string();
    let mut stream = UnixStream::connect(path).map_err(|source| ClientError::Connect { path: name.clone(), source })?;
    let mut talk = || {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        // A reply is not limited like a request: counters of many interfaces may be longer.
        let count = BufReader::with_capacity(LONGEST_LINE / 16, &stream).read_line(&mut line)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    };
    talk().map_err(|source| ClientError::Reply { path: name, source })
}
