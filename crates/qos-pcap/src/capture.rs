//! A capture in either file format.

use std::io::Read;

use crate::input::Input;
use crate::link::Link;
use crate::pcap::Pcap;
use crate::pcapng::{Pcapng, SECTION};
use crate::record::Record;

/// The packets of a capture, in the order of the file.
#[derive(Debug)]
pub struct Capture<'a> {
    input: Input<'a>,
    form: Form,
    /// Bytes of the last returned block, which is not consumed yet.
    given: usize,
}

#[derive(Debug)]
enum Form {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970.
    pub time_ns: i64,
    /// Bytes of the frame on the wire, without the FCS, even if fewer were captured.
    pub length: u32,
    /// Link type of the frame.
    pub link: Link,
    /// The interface of the capture, numbered across all sections of the file.
    pub interface: u32,
    /// Captured bytes.
    pub frame: &'a [u8],
}

impl<'a> Capture<'a> {
    /// Reads a source that may be compressed by gzip. Packets of unknown link types are an error, except those of
    /// interfaces that are not `wanted`, by name or number; without names, all interfaces are.
    ///
    /// # Errors
    /// Contents found in place of a capture.
    pub fn new(source: impl Read + 'a, wanted: &[String]) -> Result<Capture<'a>, String> {
        let mut input = Input::new(source);
        let first = input.peek(4).to_vec();
        let form = if first == SECTION {
            Form::Pcapng(Pcapng::new(wanted))
        } else if let Some((order, ticks)) = Pcap::recognise(&first) {
            Form::Pcap(Pcap::new(&mut input, order, ticks)?)
        } else if first.len() < 4 {
            return Err(input
                .failure()
                .unwrap_or_else(|| format!("found {} bytes, expected a pcap or pcapng file", first.len())));
        } else {
            let shown = first.escape_ascii();
            return Err(format!("found a file that begins with \"{shown}\", expected a pcap or pcapng file"));
        };
        Ok(Capture { input, form, given: 0 })
    }

    /// Returns the names of the interfaces in the file; empty if it names none.
    pub fn interfaces(&self) -> &[String] {
        match &self.form {
            Form::Pcap(_) => &[],
            Form::Pcapng(form) => form.names(),
        }
    }

    /// The next packet; none at the end of the file.
    ///
    /// # Errors
    /// Kind and byte position of the damage. Nothing after it can be read.
    // Not an iterator: a packet is a view of the reader's own bytes.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, String> {
        self.input.pass(std::mem::take(&mut self.given));
        let found = match &mut self.form {
            Form::Pcap(form) => form.next(&mut self.input),
            Form::Pcapng(form) => form.next(&mut self.input),
        };
        let record = match found {
            Ok(Some(record)) => record,
            // The bytes read before an error of the source may end anywhere.
            other => return self.input.failure().map_or_else(|| other.map(|_| None), Err),
        };
        self.given = record.block;
        let block = self.input.peek(record.block);
        let frame = &block[record.start..record.start + record.kept];
        let Record { time_ns, length, link, interface, .. } = record;
        Ok(Some(Packet { time_ns, length, link, interface, frame }))
    }
}
