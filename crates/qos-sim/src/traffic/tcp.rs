//! A TCP stream: the two ends of a connection with their applications, which behave like iperf. Pure.

use std::collections::VecDeque;

use flood::pace::{Gap, Next, Pacer};
use qos_core::ConfigError;
use qos_core::{Duration, Time};

use super::delay::Delays;
use crate::packet::{ip_header, Way, IPV4_HEADER, MTU};
use crate::report::TcpReport;
use crate::scenario::{Flow, RateLayer};
use crate::tcp::{Connection, Profile, Segment, Settings, State};

/// Data offered by an application without a rate limit: more than any run can send.
const WITHOUT_END: u64 = u64::MAX / 2;
/// Bytes per write of iperf.
const WRITE_BYTES: u32 = 131_072;

/// One stream.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Number among all streams.
    pub stream: usize,
    settings: [Settings; 2],
    ends: [Option<Connection>; 2],
    /// Time of the next event of each end.
    due: [Option<Time>; 2],
    /// For an application with a rate: bytes per write, and interval between writes.
    writes: Option<(u32, Gap)>,
    pacer: Option<Pacer>,
    /// Bytes written so far; last byte and time of each write that has not arrived completely.
    written: u64,
    writing: VecDeque<(u64, Time)>,
    write_times: Delays,
    /// Time at which the connection was established at each end.
    since: [Option<Time>; 2],
    /// Data received by the application, in total and within its time.
    received: u64,
    pub counted: u64,
    pub sent_bytes: u64,
    rtt_sum_ns: u128,
    rtt_count: u32,
    /// Data retransmitted by the sender until the end of its time.
    retransmitted: Option<u64>,
    mss: Option<u32>,
    given_up: bool,
    /// Counters of the ends at that time.
    past: [TcpReport; 2],
}

/// Returns the index of the sending end in arrays of two.
pub(crate) fn sender(way: Way) -> usize {
    way as usize
}

fn check_profile(profile: &Profile, path: &str) -> Result<(), ConfigError> {
    let wrong = |field: &str, message: String| Err(ConfigError::new(format!("{path}.{field}"), message));
    if profile.recovery > 7 {
        return wrong("recovery", format!("found {}, expected 0 to 7", profile.recovery));
    }
    if !matches!(profile.early_retrans, 0 | 3 | 4) {
        return wrong("early_retrans", format!("found {}, expected 0, 3 or 4", profile.early_retrans));
    }
    if profile.frto > 2 {
        return wrong("frto", format!("found {}, expected 0 to 2", profile.frto));
    }
    if profile.initcwnd == 0 || profile.initcwnd > 255 {
        return wrong("initcwnd", format!("found {}, expected 1 to 255 segments", profile.initcwnd));
    }
    if profile.rto_min_ns == 0 || profile.rto_min_ns > 120_000_000_000 {
        return wrong("rto_min_ns", format!("found {}, expected more than 0 and at most 120 s", profile.rto_min_ns));
    }
    Ok(())
}

/// Returns the settings of a host's end of a flow's connections.
pub(crate) fn settings(profile: &Profile, flow: &Flow, ipv6: bool, path: &str) -> Result<Settings, ConfigError> {
    check_profile(profile, path)?;
    let mut settings = Settings::from_profile(profile, MTU);
    // The longer header reduces each segment's payload.
    settings.mss -= ip_header(ipv6) - IPV4_HEADER;
    settings.small_queue = true;
    if let Some(window) = flow.window_bytes {
        // Linux doubles what is asked for, and counts its own structures in it: half of a receive buffer becomes window
        // (tcp_adv_win_scale 1), and about half of a send buffer holds payload where each packet has a structure of its
        // own.
        settings.receive_buffer = window;
        settings.initial_receive_window = settings.initial_receive_window.min(window);
        settings.send_buffer = window;
    }
    Ok(settings)
}

/// Returns the bytes per write and the time between two writes of an application with a rate or a gap.
fn writes(flow: &Flow, path: &str) -> Result<Option<(u32, Gap)>, ConfigError> {
    let wrong = |field: &str, message: String| Err(ConfigError::new(format!("{path}.{field}"), message));
    let bytes = flow.payload_bytes.unwrap_or(WRITE_BYTES);
    match (flow.rate_bps, flow.gap_ns) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => wrong("gap_ns", "found both gap_ns and rate_bps, expected only one of them".to_owned()),
        (Some(_), None) if flow.rate_layer == RateLayer::Ip => {
            let message = "found ip on a TCP flow, expected payload: a TCP application sees no packet sizes";
            wrong("rate_layer", message.to_owned())
        }
        (None, Some(gap_ns)) => {
            let Some(gap) = Gap::of_delay(gap_ns) else {
                return wrong("gap_ns", format!("found {gap_ns}, expected 1 ns to an hour"));
            };
            Ok(Some((bytes, gap)))
        }
        (Some(rate), None) => {
            let Some(gap) = Gap::of_rate(bytes, rate) else {
                let message =
                    format!("found {rate} with writes of {bytes} bytes, expected at least one write per hour");
                return wrong("rate_bps", message);
            };
            Ok(Some((bytes, gap)))
        }
    }
}

impl Transfer {
    /// Creates a stream of a flow without opening the connection.
    pub fn new(stream: usize, flow: &Flow, settings: [Settings; 2], path: &str) -> Result<Transfer, ConfigError> {
        let wrong = |field: &str, message: String| Err(ConfigError::new(format!("{path}.{field}"), message));
        for (field, found) in [("frames", !flow.frames.is_empty()), ("take_turns", flow.take_turns)] {
            if found {
                return wrong(field, "found this key on a TCP flow, expected it on UDP flows only".to_owned());
            }
        }
        if flow.port.is_none() {
            return wrong("port", "found none, expected the port of the receiver".to_owned());
        }
        let least = u64::from(settings[0].mss);
        if let Some(window) = flow.window_bytes.filter(|window| *window < least || *window > 1 << 30) {
            return wrong("window_bytes", format!("found {window}, expected a full segment ({least}) to 1 GiB"));
        }
        if flow.payload_bytes == Some(0) {
            return wrong("payload_bytes", "found 0, expected the bytes per application write".to_owned());
        }
        let writes = writes(flow, path)?;
        Ok(Transfer {
            stream,
            settings,
            ends: [None, None],
            due: [None, None],
            writes,
            pacer: None,
            written: 0,
            writing: VecDeque::new(),
            write_times: Delays::default(),
            since: [None, None],
            received: 0,
            counted: 0,
            sent_bytes: 0,
            rtt_sum_ns: 0,
            rtt_count: 0,
            retransmitted: None,
            mss: None,
            given_up: false,
            past: [TcpReport::default(); 2],
        })
    }

    /// Opens the connection from the client.
    pub fn connect(&mut self, now: Time, out: &mut Vec<Segment>) {
        self.ends[0] = Some(Connection::connect(self.settings[0].clone(), now, out));
    }

    /// Handles a segment that arrives from that direction.
    pub fn arrives(&mut self, now: Time, way: Way, segment: &Segment, out: &mut Vec<Segment>) {
        match (way, &mut self.ends) {
            (Way::Forward, [_, Some(server)]) => {
                server.on_segment(now, segment, out);
                if server.is_peer_finished() {
                    server.close(now, out);
                }
            }
            (Way::Forward, [_, server @ None]) => {
                // An abandoned connection gets no answer.
                if segment.syn && !self.given_up {
                    *server = Some(Connection::accept(self.settings[1].clone(), now, segment, out));
                }
            }
            (Way::Backward, [Some(client), _]) => client.on_segment(now, segment, out),
            (Way::Backward, [None, _]) => {}
        }
    }

    /// Returns whether the connection has just been established at an end.
    pub fn is_newly_established(&mut self, end: usize, now: Time) -> bool {
        let Some(connection) = &self.ends[end] else { return false };
        let waiting = matches!(connection.state(), State::SynSent | State::SynReceived);
        if waiting || self.since[end].is_some() {
            return false;
        }
        self.since[end] = Some(now);
        if end == 0 {
            self.mss = Some(connection.mss());
        }
        true
    }

    /// Returns the time since the connection was established at the receiver.
    pub fn receiving(&self, now: Time) -> Option<Duration> {
        self.since[1].map(|since| now.since(since))
    }

    /// Returns the data that has reached the receiver's application since the last call.
    pub fn take_received(&mut self, now: Time) -> u64 {
        let Some(server) = &self.ends[1] else { return 0 };
        let before = std::mem::replace(&mut self.received, server.received());
        while let Some((_, at)) = self.writing.front().filter(|(last, _)| *last <= self.received) {
            self.write_times.record(now.since(*at).0);
            self.writing.pop_front();
        }
        self.received - before
    }

    /// Starts writing by the sender's application. Returns the time of its next write.
    pub fn begin(&mut self, now: Time, duration_ns: u64, out: &mut Vec<Segment>) -> Option<Time> {
        match self.writes {
            None => {
                self.offer(now, WITHOUT_END, out);
                None
            }
            Some((_, gap)) => {
                self.pacer = Some(Pacer::new(now.0, gap, Some(duration_ns), 0));
                self.write(now, out)
            }
        }
    }

    /// Writes the due data of the sender's application. Returns the time of its next write.
    pub fn write(&mut self, now: Time, out: &mut Vec<Segment>) -> Option<Time> {
        let (bytes, _) = self.writes?;
        loop {
            match self.pacer.as_mut()?.at(now.0) {
                Next::Send(_) => {
                    self.written += u64::from(bytes);
                    self.writing.push_back((self.written, now));
                    self.offer(now, u64::from(bytes), out);
                }
                Next::Wait(due) => return Some(Time(due)),
                Next::Done => return None,
            }
        }
    }

    /// Returns the times of the writes that arrived in full; empty without a rate.
    pub fn write_times(&self) -> &Delays {
        &self.write_times
    }

    /// Returns the number of writes whose last byte has not arrived.
    pub fn unfinished_writes(&self) -> u64 {
        self.writing.len() as u64
    }

    fn offer(&mut self, now: Time, bytes: u64, out: &mut Vec<Segment>) {
        if let Some(client) = &mut self.ends[0] {
            client.offer(now, bytes, out);
        }
    }

    /// Ends the sender's time: drops unsent data and closes the connection.
    pub fn stop(&mut self, now: Time, out: &mut Vec<Segment>) {
        self.pacer = None;
        self.sample_round_trip();
        if let Some(client) = &mut self.ends[0] {
            self.retransmitted = Some(client.statistics().retransmitted_segments);
            client.drop_unsent();
            client.close(now, out);
        }
    }

    /// Records the sender's smoothed round trip at the end of each of its intervals.
    pub fn sample_round_trip(&mut self) {
        if let Some(rtt) = self.ends[0].as_ref().and_then(|client| client.statistics().srtt_ns) {
            self.rtt_sum_ns += u128::from(rtt);
            self.rtt_count += 1;
        }
    }

    /// Counts a segment that leaves in a direction.
    pub fn leaves(&mut self, way: Way, segment: &Segment) {
        if way == Way::Forward && !segment.retransmission {
            self.sent_bytes += u64::from(segment.len);
        }
    }

    /// Records that a segment of an end leaves its host's queue.
    pub fn leaves_queue(&mut self, end: usize, segment: &Segment, at: Time) {
        if let Some(connection) = self.ends[end].as_mut().filter(|_| segment.len > 0 || segment.fin) {
            connection.leaves_queue(at);
        }
    }

    /// Returns the time at which an end needs an event, unless there is one at or before that time.
    pub fn reschedule(&mut self, end: usize) -> Option<Time> {
        let deadline = self.ends[end].as_ref()?.deadline()?;
        if self.due[end].is_some_and(|due| due <= deadline) {
            return None;
        }
        self.due[end] = Some(deadline);
        Some(deadline)
    }

    /// Handles an event for an end; returns false if it is outdated.
    pub fn timer(&mut self, end: usize, now: Time, out: &mut Vec<Segment>) -> bool {
        if self.due[end] != Some(now) {
            return false;
        }
        self.due[end] = None;
        if let Some(connection) = &mut self.ends[end] {
            // The deadline may have moved since then.
            if connection.deadline().is_some_and(|deadline| deadline <= now) {
                connection.on_timer(now, out);
            }
        }
        true
    }

    /// Ends both applications.
    pub fn give_up(&mut self) {
        self.past = [self.counts(0), self.counts(1)];
        self.retransmitted = self.retransmitted.or(Some(self.past[0].retransmitted_segments));
        self.ends = [None, None];
        self.given_up = true;
    }

    /// Returns the counters of the TCP at an end.
    pub fn counts(&self, end: usize) -> TcpReport {
        let Some(connection) = &self.ends[end] else { return self.past[end] };
        let statistics = connection.statistics();
        TcpReport {
            sent_segments: statistics.sent_segments - statistics.retransmitted_segments,
            retransmitted_segments: statistics.retransmitted_segments,
            timeouts: statistics.timeouts,
        }
    }

    /// Returns whether the sender's time is over.
    pub fn is_stopped(&self) -> bool {
        self.retransmitted.is_some()
    }

    /// Returns the number of segments retransmitted within the duration of the flow.
    pub fn retransmits(&self) -> u64 {
        self.retransmitted.unwrap_or_else(|| self.counts(0).retransmitted_segments)
    }

    /// Returns the payload of a full segment, once the ends have agreed.
    pub fn mss(&self) -> Option<u32> {
        self.mss
    }

    /// Returns whether the connection was established at the receiver.
    pub fn is_connected(&self) -> bool {
        self.since[1].is_some()
    }

    /// Returns the mean of the recorded round trips, in milliseconds.
    pub fn rtt_mean_ms(&self) -> Option<f64> {
        (self.rtt_count > 0).then(|| self.rtt_sum_ns as f64 / f64::from(self.rtt_count) / 1e6)
    }
}
