//! UDP: senders of paced datagrams, and counters of received ones, with the IO-free parts of `flood`.

use std::ops::Range;

use flood::datagram::Draw;
use flood::pace::{Gap, Next, Pacer};
use flood::sequence::{Jitter, Sequence};
use qos_core::ConfigError;
use qos_core::Time;

use crate::network::LONGEST_NS;
use crate::packet::{ip_header, MTU, UDP_HEADER};
use crate::scenario::{Flow, RateLayer};

/// Maximum number of frames in a cycle.
const MOST_FRAMES: usize = 10_000;
/// Bytes of a frame.
const LARGEST_FRAME: u32 = 10_000_000;

/// A sender of datagrams over one stream, or over several in turn.
#[derive(Debug)]
pub(crate) struct Source {
    /// Streams of the source, by their numbers among those of UDP.
    pub streams: Range<usize>,
    pacer: Pacer,
    draw: Draw,
    turn: usize,
    /// Bytes of the frames in a cycle, index of the next frame, and the unsent rest of the last one.
    frames: Vec<u32>,
    frame: usize,
    left: u32,
    /// Maximum payload of a datagram of a frame.
    most: u32,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub stream: usize,
    pub port: u16,
    pub payload: u32,
}

/// Action of a source at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Send(Datagram),
    Wait(Time),
    Done,
}

/// Checks the UDP settings of a flow, and calculates the gap between two datagrams of a stream.
pub(crate) fn gap(flow: &Flow, ipv6: bool, path: &str) -> Result<Gap, ConfigError> {
    let headers = ip_header(ipv6) + UDP_HEADER;
    let wrong = |field: &str, message: String| Err(ConfigError::new(format!("{path}.{field}"), message));
    for (field, found) in
        [("congestion_control", flow.congestion_control.is_some()), ("window_bytes", flow.window_bytes.is_some())]
    {
        if found {
            return wrong(field, "found this key on a UDP flow, expected it on TCP flows only".to_owned());
        }
    }
    if let Some(payload) = flow.payload_bytes {
        if payload == 0 || payload > MTU - headers {
            let message =
                format!("found {payload}, expected 1 to {} bytes: fragments are not simulated", MTU - headers);
            return wrong("payload_bytes", message);
        }
    }
    check_frames(flow, path)?;
    let gap = match (flow.rate_bps, flow.gap_ns, flow.payload_bytes) {
        (Some(_), Some(_), _) | (None, None, _) => {
            return wrong("rate_bps", "a UDP flow needs either rate_bps or gap_ns".to_owned());
        }
        (Some(_), None, None) => {
            return wrong("rate_bps", "found a rate with random payload lengths, expected gap_ns".to_owned());
        }
        (Some(rate), None, Some(payload)) => {
            let counted = match flow.rate_layer {
                RateLayer::Payload => payload,
                RateLayer::Ip => payload + headers,
            };
            Gap::of_rate(counted, rate)
        }
        (None, Some(gap), _) => Gap::of_delay(gap),
    };
    let gap = if flow.take_turns { gap.and_then(|gap| gap.divided(flow.streams)) } else { gap };
    match gap {
        Some(gap) => Ok(gap),
        None => {
            let field = if flow.gap_ns.is_some() { "gap_ns" } else { "rate_bps" };
            wrong(field, "found a pace of less than a nanosecond or more than an hour between datagrams".to_owned())
        }
    }
}

fn check_frames(flow: &Flow, path: &str) -> Result<(), ConfigError> {
    if flow.frames.is_empty() {
        return Ok(());
    }
    let wrong = |field: &str, message: &str| Err(ConfigError::new(format!("{path}.{field}"), message));
    if flow.frames.len() > MOST_FRAMES || flow.frames.iter().any(|bytes| !(1..=LARGEST_FRAME).contains(bytes)) {
        let message = format!("expected at most {MOST_FRAMES} frames of 1 to {LARGEST_FRAME} bytes");
        return wrong("frames", &message);
    }
    if flow.gap_ns.is_none() || flow.payload_bytes.is_none() {
        return wrong("frames", "found frames without gap_ns and payload_bytes, expected both");
    }
    if flow.take_turns {
        return wrong("take_turns", "found true on a flow with frames, expected false: each stream has its own frames");
    }
    Ok(())
}

impl Source {
    pub fn new(flow: &Flow, gap: Gap, streams: Range<usize>, seed: u64, start: Time, duration_ns: u64) -> Source {
        debug_assert!(duration_ns <= 2 * LONGEST_NS, "a scenario's times are bounded");
        Source {
            streams,
            // The sender is never late.
            pacer: Pacer::new(start.0, gap, Some(duration_ns), 0),
            draw: Draw::new(flow.port, flow.payload_bytes, seed),
            turn: 0,
            frames: flow.frames.clone(),
            frame: 0,
            left: 0,
            most: flow.payload_bytes.unwrap_or(0),
        }
    }

    pub fn step(&mut self, now: Time) -> Step {
        if self.left > 0 {
            return Step::Send(self.part_of_frame());
        }
        match self.pacer.at(now.0) {
            Next::Wait(due) => Step::Wait(Time(due)),
            Next::Done => Step::Done,
            Next::Send(_) if !self.frames.is_empty() => {
                self.left = self.frames[self.frame];
                self.frame = (self.frame + 1) % self.frames.len();
                Step::Send(self.part_of_frame())
            }
            Next::Send(_) => {
                let stream = self.streams.start + self.turn;
                self.turn = (self.turn + 1) % self.streams.len();
                let (port, payload) = self.draw.next();
                Step::Send(Datagram { stream, port, payload })
            }
        }
    }
}

impl Source {
    /// Returns the next datagram of the frame that is being sent.
    fn part_of_frame(&mut self) -> Datagram {
        let payload = self.left.min(self.most);
        self.left -= payload;
        let (port, _) = self.draw.next();
        Datagram { stream: self.streams.start, port, payload }
    }
}

/// State of one stream of datagrams at sender and receiver.
#[derive(Debug)]
pub(crate) struct UdpStream {
    /// Number among all streams.
    pub stream: usize,
    pub sent: u64,
    pub sent_bytes: u64,
    pub bytes: u64,
    pub sequence: Sequence,
    pub jitter: Jitter,
    pub last: Option<Time>,
}

impl UdpStream {
    pub fn new(stream: usize) -> UdpStream {
        let (sequence, jitter) = (Sequence::default(), Jitter::default());
        UdpStream { stream, sent: 0, sent_bytes: 0, bytes: 0, sequence, jitter, last: None }
    }

    /// Records a departing datagram and returns its number.
    pub fn record_sent(&mut self, payload: u32) -> u64 {
        let number = self.sent;
        self.sent += 1;
        self.sent_bytes += u64::from(payload);
        number
    }

    pub fn arrives(&mut self, now: Time, number: u64, sent: Time, payload: u32) {
        self.sequence.record_arrival(number);
        self.jitter.record_arrival(sent.0, now.0);
        self.bytes += u64::from(payload);
        self.last = Some(now);
    }
}
