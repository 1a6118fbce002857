//! The bytes of a capture, plain or compressed, in a moving window.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// Minimum number of bytes per read from the source.
const PIECE: usize = 1 << 20;
/// First bytes of a file written by gzip (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes of a source, with access to any number of bytes ahead.
pub struct Input<'a> {
    source: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    start: usize,
    passed: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("passed", &self.passed).field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<'a> Input<'a> {
    /// Reads a source whose bytes may be compressed by gzip.
    pub fn new(mut source: impl Read + 'a) -> Input<'a> {
        let mut first = Vec::new();
        let failure = source.by_ref().take(GZIP.len() as u64).read_to_end(&mut first).err();
        let compressed = first == GZIP;
        let whole = io::Cursor::new(first).chain(source);
        let source: Box<dyn Read + 'a> =
            if compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        let ended = failure.is_some();
        Input { source, buffer: Vec::new(), start: 0, passed: 0, ended, failure }
    }

    /// Returns the number of passed bytes.
    pub fn offset(&self) -> u64 {
        self.passed
    }

    /// Returns the reason for the end of the bytes, unless it is the end of the source.
    pub fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(|error| format!("cannot be read to its end: {error}"))
    }

    /// Returns the next `count` bytes; fewer at the end.
    pub fn peek(&mut self, count: usize) -> &[u8] {
        if self.buffer.len() - self.start < count && !self.ended {
            self.buffer.drain(..self.start);
            self.start = 0;
            while self.buffer.len() < count && !self.ended {
                let held = self.buffer.len();
                // Never more than has arrived so far: a false length takes no memory.
                let wanted = (count - held).clamp(PIECE, PIECE.max(held));
                match self.source.by_ref().take(wanted as u64).read_to_end(&mut self.buffer) {
                    Ok(read) => self.ended = read < wanted,
                    Err(error) => {
                        self.ended = true;
                        self.failure = Some(error);
                    }
                }
            }
        }
        let end = self.buffer.len().min(self.start + count);
        &self.buffer[self.start..end]
    }

    /// Consumes bytes that were peeked at.
    pub fn pass(&mut self, count: usize) {
        self.start += count;
        self.passed += count as u64;
    }
}
