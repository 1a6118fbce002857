//! Flows and their streams: senders, receivers, times, and received data.

mod delay;
mod flow_results;
pub(crate) mod layout;
pub(crate) mod tcp;
pub(crate) mod udp;

use std::net::IpAddr;

use qos_core::wire::Framing;
use qos_core::{Descriptor, Duration, Network, Time};

use self::delay::Delays;
use self::tcp::Transfer;
use self::udp::{Source, UdpStream};
use crate::packet::{Content, Packet, Way, INITIAL_TTL};

/// A flow, with its properties before the start.
#[derive(Debug)]
pub(crate) struct Course {
    pub name: String,
    pub start: Time,
    pub duration_ns: u64,
    /// Whether the flow ends with the others, because it has no duration.
    pub background: bool,
    pub cut_off_ns: Option<u64>,
    pub interval_ns: u64,
    /// Index of the first stream of the flow, and the number of its streams.
    first: usize,
    streams: usize,
    /// UDP: arrival time of the first datagram of any stream.
    pub first_arrival: Option<Time>,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub flow: usize,
    /// Number from 1.
    pub number: u32,
    pub local_port: u16,
    /// Time of its start after that of the flow.
    pub offset: Duration,
    /// Forward and back.
    pub ways: [Direction; 2],
    pub kind: Kind,
    /// The result is there.
    complete: bool,
    pub arrivals: Arrivals,
    pub delays: Delays,
}

/// Kind of a stream, by its number among those of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Udp(usize),
    Tcp(usize),
}

/// Common properties of the packets of a stream in one direction.
#[derive(Debug)]
pub(crate) struct Direction {
    /// The host that sends them.
    pub host: usize,
    /// The end of a link by which the packets leave the host, and its framing.
    pub end: usize,
    pub framing: Framing,
    /// Numbers of the addresses.
    pub source: u32,
    pub destination: u32,
    pub source_port: u16,
    /// 0 if it is drawn for each datagram.
    pub destination_port: u16,
    pub dscp: u8,
    pub descriptor: Descriptor,
}

impl Direction {
    /// Returns a packet of the stream with a number.
    #[inline]
    pub fn packet(&self, stream: usize, way: Way, ecn: u8, content: Content) -> Packet {
        Packet {
            stream: stream as u32,
            way,
            source: self.source,
            destination: self.destination,
            ipv6: self.descriptor.network == Network::Ipv6,
            ttl: INITIAL_TTL,
            dscp: self.dscp,
            ecn,
            tag: None,
            source_port: self.source_port,
            destination_port: self.destination_port,
            content,
        }
    }
}

/// Bytes by interval of the receiver's time.
#[derive(Debug)]
pub(crate) struct Arrivals {
    interval_ns: u64,
    bytes: Vec<u64>,
}

impl Arrivals {
    /// Adds `bytes` that arrived at `elapsed` of the receiver's time.
    pub fn add(&mut self, elapsed: Duration, bytes: u64) {
        let index = (elapsed.0 / self.interval_ns) as usize;
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, 0);
        }
        self.bytes[index] += bytes;
    }
}

/// All traffic.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub flows: Vec<Course>,
    pub streams: Vec<Stream>,
    pub datagrams: Vec<UdpStream>,
    pub transfers: Vec<Transfer>,
    pub sources: Vec<Source>,
    /// End of the last flow with a duration.
    pub end: Time,
    /// The addresses of all ends and of the operations' targets, numbered.
    pub addresses: Vec<IpAddr>,
    /// Number of streams without a result yet.
    open: usize,
}

impl Traffic {
    /// Returns whether the results of all streams are known.
    pub fn is_complete(&self) -> bool {
        self.open == 0
    }

    /// Records that the result of a stream is known.
    pub fn complete(&mut self, stream: usize) {
        let stream = &mut self.streams[stream];
        if !stream.complete {
            stream.complete = true;
            self.open -= 1;
        }
    }

    /// Records that a source has sent its last datagram. The run waits for packets in transit anyway.
    pub fn sent_all(&mut self, source: usize) {
        for number in self.sources[source].streams.clone() {
            self.complete(self.datagrams[number].stream);
        }
    }

    /// Stops waiting for a stream.
    pub fn give_up(&mut self, number: usize) {
        let stream = &mut self.streams[number];
        if stream.complete {
            return;
        }
        if let Kind::Tcp(transfer) = stream.kind {
            self.transfers[transfer].give_up();
        }
        self.complete(number);
    }
}
