//! Captures at ports: frames with their event time, written to a file by a separate thread.
//!
//! An incoming frame is captured as it was on the link, at the arrival of its last bit; a departing frame with its
//! markings, when its last bit has reached the other end: like in the simulator's captures, and independent of the
//! clock at that time.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};

use netio::capture_file::{About, CaptureFile};
use qos_core::{PortId, Time};
use serde::Serialize;
use socket2::{SockFilter, SockRef};

/// Maximum number of frames that wait for the disk; further ones are counted as dropped.
const WAITING: usize = 16_384;

/// Settings of a capture at a port.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Destination file; an existing file is replaced.
    pub file: PathBuf,
    /// Description in the file, and the number of stored bytes of each frame.
    pub about: About,
    /// Instructions of a classic Berkeley packet filter (code, jump if true, jump if false, operand), as libpcap
    /// compiles them; empty: everything passes.
    pub filter: Vec<(u16, u8, u8, u32)>,
}

/// Result of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames in the file.
    pub received: u64,
    /// Frames dropped because the disk was too slow.
    pub dropped: u64,
}

/// Reason why a capture did not begin or was not saved.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file.
    #[error("cannot write {path}: {source}", path = .path.display())]
    File {
        /// Path of the capture.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another capture writes it.
    #[error("another capture already writes {path}; end it first, or choose another file", path = .0.display())]
    Taken(PathBuf),
    /// The filter.
    #[error("the kernel rejects the filter: {0}; use instructions compiled by libpcap")]
    Filter(io::Error),
    /// There is no such capture.
    #[error("no capture writes to {path}; expected one of {known}", path = .path.display())]
    Unknown {
        /// The path that was given.
        path: PathBuf,
        /// Existing captures.
        known: String,
    },
}

/// A frame on its way to the file.
struct Seen {
    /// No earlier frame can follow.
    now: Time,
    time: Time,
    bytes: Vec<u8>,
}

/// The captures of a router.
#[derive(Debug, Default)]
pub struct Captures(Vec<Capture>);

#[derive(Debug)]
struct Capture {
    port: PortId,
    file: PathBuf,
    dropped: u64,
    /// Taken to end it.
    frames: Option<SyncSender<Seen>>,
    writer: Option<JoinHandle<io::Result<u64>>>,
}

impl Captures {
    /// Begins to capture at a port.
    ///
    /// # Errors
    /// When the file cannot be written, or the kernel does not take the filter.
    pub fn begin(&mut self, port: PortId, wanted: &Wanted) -> Result<(), CaptureError> {
        let path = &wanted.file;
        if self.0.iter().any(|capture| capture.file == *path) {
            return Err(CaptureError::Taken(path.clone()));
        }
        let failed = |source| CaptureError::File { path: path.clone(), source };
        let sieve = Sieve::new(&wanted.filter).map_err(CaptureError::Filter)?;
        let into = BufWriter::new(File::create(path).map_err(failed)?);
        let mut file = CaptureFile::new(into, &wanted.about).map_err(failed)?;
        file.flush().map_err(failed)?;
        let (frames, coming) = sync_channel(WAITING);
        let snaplen = wanted.about.snaplen as usize;
        let writer = thread::Builder::new().name("capture".to_owned());
        let writer = writer.spawn(move || write(file, &coming, sieve, snaplen)).map_err(failed)?;
        let capture = Capture { port, file: path.clone(), dropped: 0, frames: Some(frames), writer: Some(writer) };
        self.0.push(capture);
        Ok(())
    }

    /// Captures a frame that passes a port at `time`; no frame earlier than `now` can follow.
    pub fn record(&mut self, port: PortId, now: Time, time: Time, bytes: &[u8]) {
        for capture in &mut self.0 {
            if capture.port == port {
                let seen = Seen { now, time, bytes: bytes.to_vec() };
                let taken = capture.frames.as_ref().is_some_and(|frames| frames.try_send(seen).is_ok());
                capture.dropped += u64::from(!taken);
            }
        }
    }

    /// Returns whether there is no capture.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends the capture to a file, which is then complete.
    ///
    /// # Errors
    /// When there is none, or the file could not be written.
    pub fn end(&mut self, path: &Path) -> Result<Counts, CaptureError> {
        let Some(at) = self.0.iter().position(|capture| capture.file == path) else {
            let known: Vec<_> = self.0.iter().map(|capture| capture.file.display().to_string()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(CaptureError::Unknown { path: path.to_owned(), known });
        };
        let mut capture = self.0.remove(at);
        let received = capture.finish().map_err(|source| CaptureError::File { path: path.to_owned(), source })?;
        Ok(Counts { received, dropped: capture.dropped })
    }
}

impl Capture {
    /// Writes the remaining frames; returns the number of frames in the file.
    fn finish(&mut self) -> io::Result<u64> {
        self.frames = None;
        let Some(writer) = self.writer.take() else { return Ok(0) };
        writer.join().unwrap_or_else(|_| Err(io::Error::other("its writer panicked")))
    }
}

/// Also ends captures of a router that is asked to stop.
impl Drop for Capture {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            eprintln!("qos-router: cannot write {}: {error}", self.file.display());
        }
    }
}

/// Writes incoming frames until none can arrive any more; returns their number.
fn write<W: io::Write>(
    mut file: CaptureFile<W>,
    coming: &Receiver<Seen>,
    mut sieve: Sieve,
    snaplen: usize,
) -> io::Result<u64> {
    let mut written = 0;
    loop {
        let seen = match coming.try_recv() {
            Ok(seen) => seen,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                // All frames so far are in the file while none arrive, even if the process dies.
                file.flush()?;
                match coming.recv() {
                    Ok(seen) => seen,
                    Err(_) => break,
                }
            }
        };
        let Seen { now, time, mut bytes } = seen;
        if !sieve.passes(&bytes)? {
            continue;
        }
        let length = bytes.len() as u32;
        bytes.truncate(snaplen);
        file.record(time.0, length, bytes);
        file.write_until(now.0)?;
        written += 1;
    }
    file.finish()?;
    Ok(written)
}

/// Selection of frames by a filter, which the kernel runs at a socket that returns the passing frames, as for captures
/// at interfaces.
struct Sieve(Option<(UnixDatagram, UnixDatagram)>);

impl Sieve {
    fn new(filter: &[(u16, u8, u8, u32)]) -> io::Result<Sieve> {
        if filter.is_empty() {
            return Ok(Sieve(None));
        }
        let (into, from) = UnixDatagram::pair()?;
        from.set_nonblocking(true)?;
        let filter: Vec<_> = filter.iter().map(|&(code, jt, jf, k)| SockFilter::new(code, jt, jf, k)).collect();
        SockRef::from(&from).attach_filter(&filter)?;
        Ok(Sieve(Some((into, from))))
    }

    fn passes(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let Some((into, from)) = &self.0 else { return Ok(true) };
        into.send(bytes)?;
        match from.recv(&mut [0]) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
