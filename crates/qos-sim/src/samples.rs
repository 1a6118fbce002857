//! Samples of the routers' counters, which a run passes on immediately.

use std::collections::BTreeMap;
use std::io;

use ip_sla::Report as IpSlaReport;
use qos_core::{Counters, Duration};

use crate::report::RouterReport;

/// Counters of one router at one time.
#[derive(Debug)]
pub struct Sample {
    /// Virtual time since the start.
    pub elapsed: Duration,
    /// Counters of the router.
    pub counters: Counters,
    /// Values of its IP SLA, if it has any.
    pub ip_sla: Option<IpSlaReport>,
    /// Working time of its process level in nanoseconds, if that is modelled.
    pub process_busy_ns: Option<u64>,
}

/// Receiver of the samples of a run.
pub trait Samples {
    /// Takes a sample of a router. Samples arrive in order of time.
    ///
    /// # Errors
    /// When it cannot be stored: the run ends.
    fn take(&mut self, router: &str, sample: Sample) -> io::Result<()>;
}

/// All samples in memory.
impl Samples for BTreeMap<String, RouterReport> {
    fn take(&mut self, router: &str, sample: Sample) -> io::Result<()> {
        let report = self.entry(router.to_owned()).or_default();
        report.samples.push(sample.counters);
        report.ip_sla.extend(sample.ip_sla);
        report.process_busy_ns.extend(sample.process_busy_ns);
        Ok(())
    }
}
