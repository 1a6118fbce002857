//! Result of a simulation: the JSON document that `docs/internals/simulator.md` describes, as types.

use std::collections::BTreeMap;

use ip_sla::{OperationReport, Report as IpSlaReport};
use qos_core::Counters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result.
// `R` is the type of the routers' reports, which differs if their samples are stored elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Report")]
pub struct Report<R = BTreeMap<String, RouterReport>> {
    /// [`crate::scenario::FORMAT`].
    pub format: u32,
    /// `qos-sim`.
    pub program: String,
    /// Version.
    pub version: String,
    /// Duration of the run in virtual time.
    pub virtual_ns: u64,
    /// Number of processed events.
    pub events: u64,
    /// The traffic, by flow.
    pub flows: BTreeMap<String, FlowReport>,
    /// The hosts.
    pub hosts: BTreeMap<String, HostReport>,
    /// The routers.
    pub routers: R,
    /// Measurements of the probes at the end of the run, with the time stamps of each packet.
    pub probes: BTreeMap<String, OperationReport>,
    /// Balance of all packets.
    pub packets: PacketsReport,
}

impl Report<()> {
    /// Returns the result with the routers' reports.
    pub fn with_routers<R>(self, routers: R) -> Report<R> {
        let Report { format, program, version, virtual_ns, events, flows, hosts, routers: (), probes, packets } = self;
        Report { format, program, version, virtual_ns, events, flows, hosts, routers, probes, packets }
    }
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    /// Streams.
    pub streams: Vec<StreamReport>,
    /// Received data, by stream and then by time.
    pub intervals: Vec<IntervalReport>,
    /// One-way delay of the packets of all streams, with the histogram.
    pub delay: Option<DelayReport>,
    /// TCP with a rate or gap: time of the writes of all streams, from the write to the arrival of its last byte.
    pub writes: Option<DelayReport>,
    /// TCP with a rate or gap: writes whose last byte has not arrived, which `writes` excludes; omitted if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished_writes: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it with a reference
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Times in nanoseconds. Percentiles are at most 1/64 too high.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct DelayReport {
    pub packets: u64,
    pub mean_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
    /// Packets by the upper limit of their bucket; empty if not reported.
    pub histogram: Vec<(u64, u64)>,
}

/// One stream over the whole test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamReport {
    /// Number from 1.
    pub stream: u32,
    /// The sender's port.
    pub local_port: u16,
    /// The receiver has accepted the connection. Always true with UDP.
    pub connected: bool,
    /// Whether the stream ended before the run, or was abandoned.
    pub complete: bool,
    /// The receiver's time.
    pub seconds: f64,
    /// Payload received in that time; for TCP, in order.
    pub bytes: u64,
    /// Payload sent, without retransmissions.
    pub sender_bytes: u64,
    /// TCP: number of retransmitted segments.
    pub retransmits: Option<u64>,
    /// TCP: payload of a full segment.
    pub mss_bytes: Option<u32>,
    /// TCP: mean of the smoothed round trips at the end of each interval.
    pub rtt_mean_ms: Option<f64>,
    /// UDP: datagrams that were sent.
    pub datagrams: Option<u64>,
    /// UDP: number of sent datagrams that did not arrive.
    pub lost: Option<u64>,
    /// UDP: interarrival jitter of RFC 3550; null if nothing arrived.
    pub jitter_ms: Option<f64>,
    /// One-way delay from the sending application to the receiver, without a histogram: of datagrams, and of TCP
    /// segments with payload and timestamps. Null where none arrived.
    pub delay: Option<DelayReport>,
    /// TCP with a rate or gap: time from a write to the arrival of its last byte, with the histogram.
    pub writes: Option<DelayReport>,
    /// TCP with a rate or gap: writes whose last byte has not arrived, which `writes` excludes; omitted if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished_writes: u64,
}

/// Received data of one stream between two times of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct IntervalReport {
    pub stream: u32,
    pub start_s: f64,
    pub end_s: f64,
    pub bytes: u64,
}

/// One host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// Packets handed to its interfaces, including those of IP SLA.
    pub packets_sent: u64,
    /// Packets that arrived at the host.
    pub packets_received: u64,
    /// Packets dropped because the queue of its interface was full.
    pub queue_drops: u64,
    /// Sum over all its connections, both directions.
    pub tcp: TcpReport,
}

/// Counters of a host's TCP. As in RFC 4022, retransmitted segments are not among the sent ones. Unlike there, neither
/// are acknowledgements without data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct TcpReport {
    pub sent_segments: u64,
    pub retransmitted_segments: u64,
    pub timeouts: u64,
}

impl TcpReport {
    pub(crate) fn add(&mut self, other: TcpReport) {
        self.sent_segments += other.sent_segments;
        self.retransmitted_segments += other.retransmitted_segments;
        self.timeouts += other.timeouts;
    }
}

/// One router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouterReport {
    /// Counters at the start, at equal intervals, and at the end.
    pub samples: Vec<Counters>,
    /// IP SLA report at the same times, without the stamps of each packet; empty if it has none.
    pub ip_sla: Vec<IpSlaReport>,
    /// Working time of its process level at the same times, in nanoseconds; empty if it is not modelled.
    pub process_busy_ns: Vec<u64>,
}

/// Balance of all packets: offered = delivered + dropped + lost + queued.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PacketsReport {
    /// Packets handed to the hosts' interfaces or sent by the routers' IP SLA.
    pub offered: u64,
    /// Packets that arrived at their destinations.
    pub delivered: u64,
    /// Dropped by reason: those of the engine, `host_queue` (the sender's own queue was full) and `ttl`.
    pub dropped: BTreeMap<String, u64>,
    /// Lost on links.
    pub lost: u64,
    /// Packets still in transit at the end of the run.
    pub queued: u64,
}
