//! Sender of pages over TCP: each connection is a user who is sent a page at regular intervals.
//!
//! The receiver acknowledges each complete page with one byte. The time of a page is from its start until this byte
//! arrives, without half of the connection's minimum round-trip time: an estimate of the time until the last byte
//! arrives that needs no common clock. Queueing of the acknowledgement makes it too long.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{bind, connect, setsockopt, socket, sockopt, SockFlag, SockType, SockaddrStorage};
use serde::Serialize;

use flood::pace::{Gap, Next, Pacer};
use flood::starts::starts;
use netio::clock;
use netio::tcp_info::{limit_unsent, tcp_info, TcpInfo};
use netio::wait::{Interest, Stop};

use crate::address::{family, unspecified};
use crate::error::Error;

/// Maximum number of unsent bytes in the kernel; the rest of a page waits in the program, and is dropped at the end.
const UNSENT: u32 = 131_072;
/// Time between two samples of the round-trip time.
const SAMPLE_NS: u64 = 1_000_000_000;

/// Options of a sender of pages.
#[derive(Debug, Clone)]
pub struct PageSender {
    /// Destination address and port.
    pub destination: SocketAddr,
    /// Local address; chosen by the kernel if absent.
    pub source: Option<IpAddr>,
    /// Local port of the first connection, followed by those of the others; chosen by the kernel if absent.
    pub source_port: Option<u16>,
    /// Bytes of a page.
    pub bytes: u32,
    /// Between the starts of two pages of a connection.
    pub gap: Gap,
    /// Number of connections.
    pub streams: u16,
    /// Connections start at random times within this time, in nanoseconds.
    pub spread: u64,
    /// Duration of all connections, in nanoseconds.
    pub duration: u64,
    /// Seed of the start times.
    pub seed: u64,
    /// DSCP of every packet.
    pub dscp: u8,
    /// Congestion control algorithm; that of the system if absent.
    pub congestion: Option<String>,
}

/// Report of a sender.
#[derive(Debug, Serialize)]
pub struct Sent {
    tool: &'static str,
    version: &'static str,
    destination: SocketAddr,
    page_bytes: u32,
    dscp: u8,
    seed: u64,
    seconds: f64,
    streams: Vec<StreamSent>,
}

#[derive(Debug, Serialize)]
struct StreamSent {
    source_port: u16,
    /// Start of the connection and duration of its traffic.
    start_s: f64,
    seconds: f64,
    /// Bytes that the kernel accepted.
    bytes: u64,
    retransmits: u32,
    mss_bytes: u32,
    /// Mean of the smoothed round-trip times, sampled once a second.
    rtt_mean_ms: Option<f64>,
    pages: Vec<Page>,
}

/// A page, with its start after that of the first connection attempt.
#[derive(Debug, Serialize)]
struct Page {
    start_s: f64,
    /// None if the page was not complete at the end.
    time_ms: Option<f64>,
}

/// The traffic of an established connection.
#[derive(Debug)]
struct Traffic {
    began: u64,
    end: u64,
    pacer: Pacer,
    /// Start of the next page.
    due: Option<u64>,
    /// Bytes of started pages, and how many of them the kernel accepted.
    started: u64,
    accepted: u64,
    pages: Vec<Page>,
    /// Start times of pages without acknowledgement.
    open: VecDeque<u64>,
    sample: u64,
    rtt_sum_us: u64,
    rtt_count: u32,
    /// Values of the connection at the end of its traffic.
    last: Option<TcpInfo>,
}

#[derive(Debug)]
enum State {
    Waiting,
    Connecting(TcpStream),
    Open(TcpStream, Traffic),
    Closed(u16, Traffic),
}

#[derive(Debug)]
struct Connection {
    offset: u64,
    /// Local port; 0 for one that the kernel chooses.
    port: u16,
    state: State,
}

impl PageSender {
    /// Sends until the end of the duration, until the receiver has closed all connections, or until a signal.
    pub fn run(&self) -> Result<Sent, Error> {
        if self.spread >= self.duration {
            return Err(Error::Options("found a spread that is not below the duration, expected a shorter one".into()));
        }
        let mut stop = Stop::on_signals().map_err(|error| system("cannot wait for signals", &error))?;
        let first = self.source_port.unwrap_or(0);
        if first > u16::MAX - (self.streams - 1) {
            let message = format!("found source port {first} for {} connections", self.streams);
            return Err(Error::Options(format!("{message}, expected all ports up to 65535")));
        }
        let step = u16::from(first > 0);
        let mut connections: Vec<Connection> = starts(self.seed, self.streams.into(), self.spread)
            .zip((0..self.streams).map(|number| first + number * step))
            .map(|(offset, port)| Connection { offset, port, state: State::Waiting })
            .collect();
        let mut data = vec![0u8; UNSENT as usize];
        fastrand::Rng::with_seed(self.seed).fill(&mut data);
        let start = clock::monotonic();
        loop {
            let mut next = u64::MAX;
            for connection in &mut connections {
                next = next.min(self.step(connection, start, &data)?);
            }
            if connections.iter().all(|each| matches!(each.state, State::Closed(..))) {
                break;
            }
            let now = clock::monotonic();
            let timeout = (next < u64::MAX).then(|| next.saturating_sub(now));
            if stop.wait_for(connections.iter().filter_map(Connection::awaited), timeout) {
                break;
            }
        }
        Ok(self.report(connections, start))
    }

    /// Carries out the due actions of a connection; returns the time of the next action.
    fn step(&self, connection: &mut Connection, start: u64, data: &[u8]) -> Result<u64, Error> {
        let (now, offset) = (clock::monotonic(), connection.offset);
        match &mut connection.state {
            State::Waiting if now < start + offset => Ok(start + offset),
            State::Waiting => {
                connection.state = State::Connecting(self.connect(connection.port)?);
                Ok(start + self.duration)
            }
            State::Connecting(stream) => {
                let refused =
                    stream.take_error().map_err(|error| system("cannot read the state of a socket", &error))?;
                if let Some(error) = refused {
                    return Err(Error::Connect(self.destination, errno(&error)));
                }
                if stream.peer_addr().is_err() {
                    let end = start + self.duration;
                    return if now < end { Ok(end) } else { Err(Error::Connect(self.destination, Errno::ETIMEDOUT)) };
                }
                let State::Connecting(stream) = std::mem::replace(&mut connection.state, State::Waiting) else {
                    unreachable!("the state is the matched one")
                };
                let pacer = Pacer::new(now, self.gap, Some(self.duration - offset), 0);
                connection.state = State::Open(stream, Traffic::new(now, now + self.duration - offset, pacer));
                self.step(connection, start, data)
            }
            State::Open(stream, traffic) => {
                let ended = traffic.receive(stream)?;
                traffic.send(stream, start, self.bytes, data)?;
                if !ended {
                    return Ok(traffic.next());
                }
                let port = stream.local_addr().map_or(0, |address| address.port());
                traffic.finish(stream)?;
                let State::Open(_, traffic) = std::mem::replace(&mut connection.state, State::Waiting) else {
                    unreachable!("the state is the matched one")
                };
                connection.state = State::Closed(port, traffic);
                Ok(u64::MAX)
            }
            State::Closed(..) => Ok(u64::MAX),
        }
    }

    /// Starts to connect, from that local port.
    fn connect(&self, port: u16) -> Result<TcpStream, Error> {
        let to = self.destination;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket: OwnedFd = socket(family(to.ip()), SockType::Stream, flags, None)
            .map_err(|e| Error::System("cannot open a socket", e))?;
        let class = i32::from(self.dscp) << 2;
        match to {
            SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4Tos, &class),
            SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6TClass, &class),
        }
        .map_err(|e| Error::System("cannot set the DSCP", e))?;
        if let Some(name) = &self.congestion {
            setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(name))
                .map_err(|e| Error::Congestion(name.clone(), e))?;
        }
        // A page ends with a segment that is not full, and does not wait for the answer to the others.
        setsockopt(&socket, sockopt::TcpNoDelay, &true).map_err(|e| Error::System("cannot set TCP_NODELAY", e))?;
        limit_unsent(&socket, UNSENT).map_err(|error| system("cannot limit the unsent data", &error))?;
        let local = SocketAddr::new(self.source.unwrap_or(unspecified(to.ip())), port);
        if local.is_ipv4() != to.is_ipv4() {
            let message = format!("found {} as the local address of pages to {}", local.ip(), to.ip());
            return Err(Error::Options(format!("{message}, expected one of the same family")));
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(local)).map_err(|e| Error::Bind(local, e))?;
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
            Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(socket)),
            Err(error) => Err(Error::Connect(to, error)),
        }
    }

    fn report(&self, connections: Vec<Connection>, start: u64) -> Sent {
        let now = clock::monotonic();
        let streams = connections.into_iter().filter_map(|connection| match connection.state {
            State::Open(stream, mut traffic) => {
                let port = stream.local_addr().map_or(0, |address| address.port());
                // A connection that a signal ends has no values if the kernel does not report them.
                let _ = traffic.finish(&stream);
                Some((port, traffic))
            }
            State::Closed(port, traffic) => Some((port, traffic)),
            State::Waiting | State::Connecting(_) => None,
        });
        Sent {
            tool: "flood",
            version: env!("CARGO_PKG_VERSION"),
            destination: self.destination,
            page_bytes: self.bytes,
            dscp: self.dscp,
            seed: self.seed,
            seconds: seconds(now - start),
            streams: streams.map(|(port, traffic)| traffic.report(port, start, now)).collect(),
        }
    }
}

impl Connection {
    /// Returns the socket, with the events for which the connection waits.
    fn awaited(&self) -> Option<(RawFd, Interest)> {
        match &self.state {
            State::Connecting(stream) => Some((stream.as_raw_fd(), Interest { read: false, write: true })),
            State::Open(stream, traffic) => {
                Some((stream.as_raw_fd(), Interest { read: true, write: traffic.accepted < traffic.started }))
            }
            State::Waiting | State::Closed(..) => None,
        }
    }
}

impl Traffic {
    fn new(began: u64, end: u64, pacer: Pacer) -> Self {
        Self {
            began,
            end,
            pacer,
            due: Some(began),
            started: 0,
            accepted: 0,
            pages: Vec::new(),
            open: VecDeque::new(),
            sample: began + SAMPLE_NS,
            rtt_sum_us: 0,
            rtt_count: 0,
            last: None,
        }
    }

    /// Takes the acknowledgements of pages; returns whether the receiver has closed the connection.
    fn receive(&mut self, stream: &mut TcpStream) -> Result<bool, Error> {
        let mut bytes = [0u8; 64];
        loop {
            let count = match stream.read(&mut bytes) {
                Ok(0) => return Ok(true),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(system("a connection failed", &error)),
            };
            let now = clock::monotonic();
            let back_ns = u64::from(info(stream)?.min_rtt_us) * 1000 / 2;
            for _ in 0..count {
                let number = self.pages.len() - self.open.len();
                let Some(start) = self.open.pop_front() else {
                    return Err(Error::Acknowledgements(self.pages.len()));
                };
                self.pages[number].time_ms = Some((now - start).saturating_sub(back_ns) as f64 / 1e6);
            }
        }
    }

    /// Starts due pages and passes data to the kernel; drops the rest at the end of the duration.
    fn send(&mut self, stream: &mut TcpStream, start: u64, page: u32, data: &[u8]) -> Result<(), Error> {
        let now = clock::monotonic();
        if self.last.is_some() {
            return Ok(());
        }
        if now >= self.sample {
            self.rtt_sum_us += u64::from(info(stream)?.rtt_us);
            self.rtt_count += 1;
            self.sample = now + SAMPLE_NS;
        }
        if now >= self.end {
            self.started = self.accepted;
            self.last = Some(info(stream)?);
            return stream
                .shutdown(std::net::Shutdown::Write)
                .map_err(|error| system("cannot close a connection", &error));
        }
        while self.due.is_some() {
            match self.pacer.at(now) {
                Next::Send(_) => {
                    self.started += u64::from(page);
                    self.open.push_back(now);
                    self.pages.push(Page { start_s: seconds(now - start), time_ms: None });
                }
                Next::Wait(due) => {
                    self.due = Some(due);
                    break;
                }
                Next::Done => self.due = None,
            }
        }
        while self.accepted < self.started {
            let length = (self.started - self.accepted).min(data.len() as u64) as usize;
            match stream.write(&data[..length]) {
                Ok(count) => self.accepted += count as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(system("a connection failed", &error)),
            }
        }
        Ok(())
    }

    /// Returns the time of the next action without an event.
    fn next(&self) -> u64 {
        match self.last {
            None => self.due.unwrap_or(u64::MAX).min(self.end).min(self.sample),
            Some(_) => u64::MAX,
        }
    }

    /// Reads the kernel's values, unless they were read at the end of the duration.
    fn finish(&mut self, stream: &TcpStream) -> Result<(), Error> {
        if self.last.is_none() {
            self.last = Some(info(stream)?);
        }
        Ok(())
    }

    fn report(self, source_port: u16, start: u64, now: u64) -> StreamSent {
        let last = self.last.unwrap_or_default();
        let mean = || self.rtt_sum_us as f64 / f64::from(self.rtt_count) / 1e3;
        StreamSent {
            source_port,
            start_s: seconds(self.began - start),
            seconds: seconds(self.end.min(now) - self.began),
            bytes: self.accepted,
            retransmits: last.retransmits,
            mss_bytes: last.mss_bytes,
            rtt_mean_ms: (self.rtt_count > 0).then(mean),
            pages: self.pages,
        }
    }
}

fn info(stream: &TcpStream) -> Result<TcpInfo, Error> {
    tcp_info(stream).map_err(|error| system("cannot read the TCP values of a connection", &error))
}

/// Converts nanoseconds to seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

/// Returns the error of a system call.
pub fn system(action: &'static str, error: &io::Error) -> Error {
    Error::System(action, errno(error))
}
