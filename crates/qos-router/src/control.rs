//! The control socket: request and reply lines over a Unix stream socket that never blocks the data plane.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use netio::wait::Interest;
use qos_core::{Duration, Time};

/// Maximum length of a line in either direction, newline included.
pub const LONGEST_LINE: usize = 4 * 1024 * 1024;
/// Maximum number of connections at a time; further ones wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// Pause after a failure to accept a connection. The client stays in the kernel's queue, so without this pause a
/// process without free descriptors would be notified again at once, repeatedly.
const REST: Duration = Duration(100_000_000);
/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// Splits a stream of bytes into lines of bounded length.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// Position up to which no newline follows `start`.
    searched: usize,
}

/// One step of [`Lines`].
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// No whole line yet.
    More,
    /// The line is longer than [`LONGEST_LINE`]; the connection cannot continue.
    TooLong,
}

impl Lines {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next line.
    pub fn pull(&mut self) -> Line {
        let found = self.buffer[self.searched..].iter().position(|&b| b == b'\n');
        match found.map(|at| self.searched + at) {
            Some(end) if end - self.start < LONGEST_LINE => {
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                self.searched = self.start;
                Line::Whole(line)
            }
            None if self.buffer.len() - self.start < LONGEST_LINE => {
                self.searched = self.buffer.len();
                Line::More
            }
            _ => Line::TooLong,
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    lines: Lines,
    output: Vec<u8>,
    written: usize,
    /// Whether the other end has closed or violated the protocol: the connection ends after the outstanding output is
    /// written.
    ending: bool,
    /// Events for which the connection waits.
    interest: Interest,
}

impl Connection {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            lines: Lines::default(),
            output: Vec::new(),
            written: 0,
            ending: false,
            interest: Interest::READ,
        })
    }

    /// Reads, answers and writes as far as possible without waiting. `answer` maps a line to its reply; `refuse`
    /// returns the reply to a line that is too long. Returns false if the connection is over.
    pub fn serve(&mut self, answer: impl FnMut(&[u8]) -> Vec<u8>, refuse: impl FnOnce() -> Vec<u8>) -> bool {
        self.step(answer, refuse).map(|interest| self.interest = interest).is_some()
    }

    /// Returns the events that the connection waits for.
    pub fn interest(&self) -> Interest {
        self.interest
    }

    fn step(&mut self, mut answer: impl FnMut(&[u8]) -> Vec<u8>, refuse: impl FnOnce() -> Vec<u8>) -> Option<Interest> {
        // A peer that does not read its replies is not read from, so that its backlog stays bounded.
        if !self.ending && self.flush().ok()? {
            let mut chunk = [0; CHUNK];
            match self.stream.read(&mut chunk) {
                Ok(0) => self.ending = true,
                Ok(count) => self.lines.push(&chunk[..count]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return None,
            }
        }
        loop {
            if !self.flush().ok()? {
                break;
            }
            match self.lines.pull() {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => {
                    self.output.extend(answer(&line));
                    self.output.push(b'\n');
                }
                Line::More => break,
                Line::TooLong => {
                    if !self.ending {
                        self.output.extend(refuse());
                        self.output.push(b'\n');
                        self.ending = true;
                        self.flush().ok()?;
                    }
                    break;
                }
            }
        }
        let pending = !self.output.is_empty();
        (pending || !self.ending).then_some(Interest { read: !pending && !self.ending, write: pending })
    }

    /// Writes as much as possible; returns whether nothing is left.
    fn flush(&mut self) -> io::Result<bool> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(true)
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

/// The listening socket and its connections. Removes its path when dropped.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// Time at which connections are accepted again, after a failure.
    rests_until: Time,
    /// Open connections.
    pub connections: Vec<Connection>,
}

impl Control {
    /// Listens at `path`, which only its owner may use. The socket of a killed daemon is replaced, but not one that
    /// answers.
    ///
    /// # Errors
    /// Those of the system calls, and `AddrInUse` when another daemon listens there or the path is some other file.
    pub fn listen(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        let listener = match UnixListener::bind(path) {
            Err(e) if e.kind() == ErrorKind::AddrInUse => {
                let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
                if !is_socket || UnixStream::connect(path).is_ok() {
                    return Err(e);
                }
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            other => other?,
        };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: path.to_owned(), rests_until: Time(0), connections: Vec::new() })
    }

    /// Accepts one waiting connection, if any.
    pub fn accept(&mut self, now: Time) {
        match self.listener.accept().and_then(|(stream, _)| Connection::new(stream)) {
            Ok(connection) => self.connections.push(connection),
            // The client has already disconnected.
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => self.rests_until = now + REST,
        }
    }

    /// Returns the time from which further connections are accepted: `now` or earlier if they already are, `None` if
    /// there is no room.
    pub fn accepts_from(&self) -> Option<Time> {
        (self.connections.len() < CONNECTIONS).then_some(self.rests_until)
    }
}

impl AsRawFd for Control {
    fn as_raw_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // A failure cannot be handled: the path may have disappeared with its file system.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn oversized_line_is_detected() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; LONGEST_LINE - 1]);
        assert_eq!(lines.pull(), Line::More);
        lines.push(b"\n");
        assert!(matches!(lines.pull(), Line::Whole(line) if line.len() == LONGEST_LINE - 1));
        lines.push(&vec![b'x'; LONGEST_LINE]);
        assert_eq!(lines.pull(), Line::TooLong);
    }

    #[test]
    fn requests_in_one_piece_are_answered_in_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours).unwrap();
        theirs.write_all(b"a\n\nb\n").unwrap();
        assert!(connection.serve(|line| [line, b"!"].concat(), || b"long".to_vec()));
        assert_eq!(connection.interest(), Interest::READ);
        drop(connection);
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a!\nb!\n");
    }

    #[test]
    fn peer_that_does_not_read_is_paused() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours).unwrap();
        theirs.write_all(b"a\na\na\n").unwrap();
        let mut answered = 0;
        let big = |_: &[u8]| {
            answered += 1;
            vec![b'x'; 1 << 20]
        };
        assert!(connection.serve(big, Vec::new));
        assert_eq!(connection.interest(), Interest { read: false, write: true });
        assert_eq!(answered, 1);
    }

    #[test]
    fn stale_socket_is_replaced_and_active_socket_is_kept() {
        let folder = std::env::temp_dir().join(format!("qos-router-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("control.sock");
        drop(UnixListener::bind(&path).unwrap());
        let control = Control::listen(&path).unwrap();
        assert_eq!(Control::listen(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(control);
        assert!(!path.exists());
        std::fs::write(&path, "not a socket").unwrap();
        assert_eq!(Control::listen(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    proptest! {
        /// The lines do not depend on the pieces in which the bytes arrive.
        #[test]
        fn request_pieces_are_joined(text in "[ab\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..6)) {
            let mut lines = Lines::default();
            let mut got = Vec::new();
            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                lines.push(&text.as_bytes()[pair[0]..pair[1]]);
                while let Line::Whole(line) = lines.pull() {
                    got.push(String::from_utf8(line).unwrap());
                }
            }
            let mut expected: Vec<_> = text.split('\n').map(str::to_owned).collect();
            expected.pop();
            prop_assert_eq!(got, expected);
        }
    }
}
