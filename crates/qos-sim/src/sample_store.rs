//! Samples of a run as JSON text in a file, so that memory does not grow with their number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use serde::ser::{Error, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::samples::{Sample, Samples};

/// Indentation of a sample in a result over several lines.
const INDENTATION: &str = "\n        ";

/// Samples of all routers, serialised as `routers` of a report.
pub struct SampleStore<F> {
    texts: RefCell<Texts<F>>,
    pretty: bool,
    routers: BTreeMap<String, Stored>,
}

/// Positions of the samples of a router.
#[derive(Default)]
struct Stored {
    samples: Vec<Range<u64>>,
    ip_sla: Vec<Range<u64>>,
    process_busy_ns: Vec<u64>,
}

/// Stored text: the first `written` bytes are in the file, the others in memory.
struct Texts<F> {
    open: Box<dyn Fn() -> io::Result<F>>,
    file: Option<F>,
    written: u64,
    recent: Vec<u8>,
    /// Maximum number of bytes in memory.
    most_in_memory: usize,
}

impl<F: Read + Write + Seek> SampleStore<F> {
    /// Returns an empty store. `open` opens its file as soon as there are more than `most_in_memory` bytes of text;
    /// `pretty` is for a result over several lines.
    pub fn new(pretty: bool, most_in_memory: usize, open: impl Fn() -> io::Result<F> + 'static) -> SampleStore<F> {
        let texts = Texts { open: Box::new(open), file: None, written: 0, recent: Vec::new(), most_in_memory };
        SampleStore { texts: RefCell::new(texts), pretty, routers: BTreeMap::new() }
    }
}

impl<F: Read + Write + Seek> Texts<F> {
    fn add(&mut self, value: &impl Serialize, pretty: bool) -> io::Result<Range<u64>> {
        let start = self.written + self.recent.len() as u64;
        if pretty {
            // Line ends within strings are escaped in JSON.
            self.recent.extend(serde_json::to_string_pretty(value)?.replace('\n', INDENTATION).as_bytes());
        } else {
            serde_json::to_writer(&mut self.recent, value)?;
        }
        let end = self.written + self.recent.len() as u64;
        if self.recent.len() > self.most_in_memory {
            if self.file.is_none() {
                self.file = Some((self.open)()?);
            }
            if let Some(file) = &mut self.file {
                file.write_all(&self.recent)?;
            }
            self.written = end;
            self.recent.clear();
        }
        Ok(start..end)
    }

    fn get(&mut self, at: &Range<u64>) -> io::Result<String> {
        let mut bytes = vec![0; (at.end - at.start) as usize];
        match (&mut self.file, at.start.checked_sub(self.written)) {
            (Some(file), None) => {
                file.seek(SeekFrom::Start(at.start))?;
                file.read_exact(&mut bytes)?;
            }
            (_, recent) => {
                let start = recent.unwrap_or(0) as usize;
                bytes.copy_from_slice(&self.recent[start..start + (at.end - at.start) as usize]);
            }
        }
        String::from_utf8(bytes).map_err(io::Error::other)
    }
}

impl<F: Read + Write + Seek> Samples for SampleStore<F> {
    fn take(&mut self, router: &str, sample: Sample) -> io::Result<()> {
        let Sample { counters, ip_sla, process_busy_ns, .. } = sample;
        let texts = self.texts.get_mut();
        let stored = self.routers.entry(router.to_owned()).or_default();
        stored.samples.push(texts.add(&counters, self.pretty)?);
        if let Some(ip_sla) = ip_sla {
            stored.ip_sla.push(texts.add(&ip_sla, self.pretty)?);
        }
        stored.process_busy_ns.extend(process_busy_ns);
        Ok(())
    }
}

impl<F: Read + Write + Seek> Serialize for SampleStore<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.routers.iter().map(|(name, stored)| (name, Router { texts: &self.texts, stored })))
    }
}

/// The report of a router.
struct Router<'a, F> {
    texts: &'a RefCell<Texts<F>>,
    stored: &'a Stored,
}

impl<F: Read + Write + Seek> Serialize for Router<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Router { texts, stored } = self;
        let mut report = serializer.serialize_struct("RouterReport", 3)?;
        report.serialize_field("samples", &Series { texts, places: &stored.samples })?;
        report.serialize_field("ip_sla", &Series { texts, places: &stored.ip_sla })?;
        report.serialize_field("process_busy_ns", &stored.process_busy_ns)?;
        report.end()
    }
}

/// Texts in their order.
struct Series<'a, F> {
    texts: &'a RefCell<Texts<F>>,
    places: &'a [Range<u64>],
}

impl<F: Read + Write + Seek> Serialize for Series<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut series = serializer.serialize_seq(Some(self.places.len()))?;
        for place in self.places {
            let text = self.texts.borrow_mut().get(place).map_err(S::Error::custom)?;
            series.serialize_element(&RawValue::from_string(text).map_err(S::Error::custom)?)?;
        }
        series.end()
    }
}
