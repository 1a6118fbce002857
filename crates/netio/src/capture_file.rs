//! Writer of captured frames as pcapng (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>), in the
//! order of their times.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::{DataLink, Endianness, PcapError};

/// Time stamps are in units of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// Description of a capture in its file.
#[derive(Clone, Debug)]
pub struct About {
    /// Name of the interface.
    pub interface: String,
    /// Maximum number of stored bytes of each frame.
    pub snaplen: u32,
    /// Comment of the whole file; may be empty.
    pub comment: String,
}

/// A frame to be written, ordered by its time; frames with equal times stay in the order of recording.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    time_ns: u64,
    number: u64,
    bytes: Vec<u8>,
    length: u32,
}

/// Frames of one Ethernet interface.
pub struct CaptureFile<W: Write> {
    writer: PcapNgWriter<W>,
    /// Frames that are recorded before their time.
    waiting: BinaryHeap<Reverse<Seen>>,
    number: u64,
}

impl<W: Write> CaptureFile<W> {
    /// Writes the header of the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(into: W, about: &About) -> io::Result<Self> {
        let mut section = SectionHeaderBlock { endianness: Endianness::Little, ..Default::default() };
        if !about.comment.is_empty() {
            section.options.push(SectionHeaderOption::Comment(Cow::Owned(about.comment.clone())));
        }
        let mut writer = PcapNgWriter::with_section_header(into, section).map_err(io_error)?;
        let description = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: about.snaplen,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(about.interface.clone())),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        writer.write_pcapng_block(description).map_err(io_error)?;
        Ok(Self { writer, waiting: BinaryHeap::new(), number: 0 })
    }

    /// Adds a frame of `length` bytes, of which `bytes` are stored, seen at `time_ns` since 1970. The first
    /// [`write_until`](Self::write_until) with a later time writes it.
    pub fn record(&mut self, time_ns: u64, length: u32, bytes: Vec<u8>) {
        self.number += 1;
        self.waiting.push(Reverse(Seen { time_ns, number: self.number, bytes, length }));
    }

    /// Writes the frames seen before `now_ns`: no earlier one can follow.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_until(&mut self, now_ns: u64) -> io::Result<()> {
        while self.waiting.peek().is_some_and(|Reverse(seen)| seen.time_ns < now_ns) {
            let Some(Reverse(seen)) = self.waiting.pop() else { break };
            self.write(seen)?;
        }
        Ok(())
    }

    fn write(&mut self, seen: Seen) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(seen.time_ns),
            original_len: seen.length,
            data: Cow::Owned(seen.bytes),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }

    /// Flushes all written data to the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }

    /// Writes the remaining frames.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        while let Some(Reverse(seen)) = self.waiting.pop() {
            self.write(seen)?;
        }
        let mut into = self.writer.into_inner();
        into.flush()?;
        Ok(into)
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
