//! UDP: what sends datagrams at a pace, and what counts those that arrive. By the sans-IO parts of `flood`.

use std::ops::Range;

use flood::datagram::Draw;
use flood::pace::{Gap, Next, Pacer};
use flood::sequence::{Jitter, Sequence};
use qos_core::ConfigError;
use qos_core::Time;

use crate::network::LONGEST_NS;
use crate::packet::{ip_header, MTU, UDP_HEADER};
use crate::scenario::{Flow, RateLayer};

/// A sender of datagrams over one stream, or over several by turns.
#[derive(Debug)]
pub(crate) struct Source {
    /// By their numbers among those of UDP.
    pub streams: Range<usize>,
    pacer: Pacer,
    draw: Draw,
    turn: usize,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub stream: usize,
    pub port: u16,
    pub payload: u32,
}

/// What a source does at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Send(Datagram),
    Wait(Time),
    Done,
}

/// Checks what concerns UDP in a flow, and finds the gap between two datagrams of a stream.
pub(crate) fn gap(flow: &Flow, ipv6: bool, path: &str) -> Result<Gap, ConfigError> {
    let headers = ip_header(ipv6) + UDP_HEADER;
    let wrong = |field: &str, message: String| Err(ConfigError::new(format!("{path}.{field}"), message));
    for (field, found) in
        [("congestion_control", flow.congestion_control.is_some()), ("window_bytes", flow.window_bytes.is_some())]
    {
        if found {
            return wrong(field, "found on a UDP flow, expected on TCP flows only".to_owned());
        }
    }
    if let Some(payload) = flow.payload_bytes {
        if payload == 0 || payload > MTU - headers {
            let message =
                format!("found {payload}, expected 1 to {} bytes: fragments are not simulated", MTU - headers);
            return wrong("payload_bytes", message);
        }
    }
    let gap = match (flow.rate_bps, flow.gap_ns, flow.payload_bytes) {
        (Some(_), Some(_), _) | (None, None, _) => {
            return wrong("rate_bps", "a UDP flow needs either rate_bps or gap_ns".to_owned());
        }
        (Some(_), None, None) => {
            return wrong("rate_bps", "found with payloads of random length, expected gap_ns".to_owned());
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

impl Source {
    pub fn new(flow: &Flow, gap: Gap, streams: Range<usize>, seed: u64, start: Time, duration_ns: u64) -> Source {
        debug_assert!(duration_ns <= 2 * LONGEST_NS, "a scenario's times are bounded");
        Source {
            streams,
            // The sender is never late.
            pacer: Pacer::new(start.0, gap, Some(duration_ns), 0),
            draw: Draw::new(flow.port, flow.payload_bytes, seed),
            turn: 0,
        }
    }

    pub fn step(&mut self, now: Time) -> Step {
        match self.pacer.at(now.0) {
            Next::Wait(due) => Step::Wait(Time(due)),
            Next::Done => Step::Done,
            Next::Send(_) => {
                let stream = self.streams.start + self.turn;
                self.turn = (self.turn + 1) % self.streams.len();
                let (port, payload) = self.draw.next();
                Step::Send(Datagram { stream, port, payload })
            }
        }
    }
}

/// One stream of datagrams, as sender and receiver know it.
#[derive(Debug)]
pub(crate) struct UdpStream {
    /// Its number among all streams.
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

    /// Notes a datagram that leaves, and gives it its number.
    pub fn sends(&mut self, payload: u32) -> u64 {
        let number = self.sent;
        self.sent += 1;
        self.sent_bytes += u64::from(payload);
        number
    }

    pub fn arrives(&mut self, now: Time, number: u64, sent: Time, payload: u32) {
        self.sequence.arrived(number);
        self.jitter.arrived(sent.0, now.0);
        self.bytes += u64::from(payload);
        self.last = Some(now);
    }
}
