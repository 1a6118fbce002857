//! Result of each flow.

use std::collections::BTreeMap;

use super::delay::Delays;
use super::tcp::Transfer;
use super::udp::UdpStream;
use super::{Arrivals, Course, Kind, Stream, Traffic};
use crate::report::{FlowReport, IntervalReport, StreamReport};

impl Traffic {
    /// Returns the result of each flow.
    pub fn report(&self) -> BTreeMap<String, FlowReport> {
        self.flows.iter().map(|flow| (flow.name.clone(), self.report_flow(flow))).collect()
    }

    fn report_flow(&self, flow: &Course) -> FlowReport {
        let mut report = FlowReport::default();
        let (mut delays, mut writes) = (Delays::default(), Delays::default());
        for stream in &self.streams[flow.first..flow.first + flow.streams] {
            report.streams.push(match stream.kind {
                Kind::Udp(number) => report_udp(flow, stream, &self.datagrams[number]),
                Kind::Tcp(number) => report_tcp(flow, stream, &self.transfers[number]),
            });
            report.intervals.extend(stream.arrivals.report(stream.number, flow.duration_ns));
            delays.add(&stream.delays);
            if let Kind::Tcp(number) = stream.kind {
                writes.add(self.transfers[number].write_times());
                report.unfinished_writes += self.transfers[number].unfinished_writes();
            }
        }
        (report.delay, report.writes) = (delays.report(true), writes.report(true));
        report
    }
}

impl Arrivals {
    /// Returns the results by interval, for at least `duration_ns`.
    fn report(&self, stream: u32, duration_ns: u64) -> impl Iterator<Item = IntervalReport> + '_ {
        let count = (duration_ns.div_ceil(self.interval_ns) as usize).max(self.bytes.len());
        (0..count).map(move |index| {
            let start = index as u64 * self.interval_ns;
            let whole = start + self.interval_ns;
            // The last interval ends with the test, unless something came later.
            let end = if index >= self.bytes.len() || start < duration_ns {
                whole.min(duration_ns.max(start))
            } else {
                whole
            };
            IntervalReport {
                stream,
                start_s: seconds(start),
                end_s: seconds(end),
                bytes: self.bytes.get(index).copied().unwrap_or(0),
            }
        })
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn report_udp(flow: &Course, stream: &Stream, udp: &UdpStream) -> StreamReport {
    let last = udp.last.zip(flow.first_arrival).map_or(0, |(last, first)| last.since(first).0);
    StreamReport {
        stream: stream.number,
        local_port: stream.local_port,
        connected: true,
        complete: stream.complete,
        seconds: seconds(last.max(flow.duration_ns)),
        bytes: udp.bytes,
        sender_bytes: udp.sent_bytes,
        retransmits: None,
        mss_bytes: None,
        rtt_mean_ms: None,
        datagrams: Some(udp.sent),
        lost: Some(udp.sent - udp.sequence.received),
        jitter_ms: (udp.sequence.received > 0).then(|| udp.jitter.nanoseconds() / 1e6),
        delay: stream.delays.report(false),
        writes: None,
        unfinished_writes: 0,
    }
}

fn report_tcp(flow: &Course, stream: &Stream, transfer: &Transfer) -> StreamReport {
    StreamReport {
        stream: stream.number,
        local_port: stream.local_port,
        connected: transfer.is_connected(),
        complete: stream.complete,
        seconds: seconds(flow.duration_ns - stream.offset.0),
        bytes: transfer.counted,
        sender_bytes: transfer.sent_bytes,
        retransmits: Some(transfer.retransmits()),
        mss_bytes: transfer.mss(),
        rtt_mean_ms: transfer.rtt_mean_ms(),
        datagrams: None,
        lost: None,
        jitter_ms: None,
        delay: stream.delays.report(false),
        writes: transfer.write_times().report(true),
        unfinished_writes: transfer.unfinished_writes(),
    }
}
