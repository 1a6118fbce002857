//! Receiver that counts floods by source.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    bind, recvmsg, setsockopt, socket, sockopt, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType,
    SockaddrStorage,
};
use serde::Serialize;

use flood::datagram::{headers, parse_datagram, parse_packet, Stamp};
use flood::sequence::{Jitter, Sequence};
use netio::clock;
use netio::program_end::{print_json, Failure};
use netio::wait::Stop;

use crate::address::{family, peer};
use crate::error::Error;

/// Size of the receive buffer in bytes: 0.1 s of full packets at 1 Gb/s, bookkeeping included.
const BUFFER: usize = 16 << 20;
/// Number of datagrams that are read before the clock is read again.
const BATCH: usize = 256;

/// Options of a receiver.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// Local address; an unspecified address is every address of its family.
    pub address: IpAddr,
    /// Port; if absent, every port, which needs a raw socket.
    pub port: Option<u16>,
    /// Number of the counted floods; all floods if absent.
    pub id: Option<u64>,
    /// Nanoseconds between two lines of output.
    pub interval: u64,
    /// Duration in nanoseconds; until a signal if absent.
    pub duration: Option<u64>,
}

/// Line of output: packets received since the previous line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    /// Nothing has arrived yet.
    Waiting { seconds: f64 },
    /// Interval between two times since the first arrival.
    Interval { start_s: f64, end_s: f64, packets: u64, payload_bytes: u64, sources: Vec<SourceInterval<'a>> },
    /// The last line.
    Received(Received<'a>),
}

#[derive(Debug, Serialize)]
struct SourceInterval<'a> {
    #[serde(flatten)]
    source: &'a Source,
    packets: u64,
    payload_bytes: u64,
}

/// Everything that arrived.
#[derive(Debug, Serialize)]
struct Received<'a> {
    tool: &'static str,
    version: &'static str,
    port: Option<u16>,
    packets: u64,
    /// IP and UDP headers included.
    bytes: u64,
    payload_bytes: u64,
    /// Time from the first arrival to the last.
    seconds: f64,
    /// Datagrams that are not of a counted flood.
    foreign: u64,
    /// Datagrams dropped because the receive buffer was full: if there are any, the values are too low.
    overflowed: u64,
    /// Different destination ports.
    ports: usize,
    sources: Vec<SourceReceived<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Source {
    address: IpAddr,
    source_port: u16,
    flood: u64,
}

#[derive(Debug, Serialize)]
struct SourceReceived<'a> {
    #[serde(flatten)]
    source: &'a Source,
    packets: u64,
    payload_bytes: u64,
    /// Sequence numbers below the greatest one that did not arrive.
    missing: u64,
    reordered: u64,
    /// Not counted as packets.
    repeated: u64,
    jitter_ms: f64,
    /// Seconds since the first arrival from any source.
    first_s: f64,
    last_s: f64,
}

#[derive(Debug, Default)]
struct Counts {
    sequence: Sequence,
    jitter: Jitter,
    payload_bytes: u64,
    first_ns: u64,
    last_ns: u64,
    interval_packets: u64,
    interval_bytes: u64,
}

#[derive(Debug, Default)]
struct Tally {
    sources: BTreeMap<Source, Counts>,
    ports: BTreeSet<u16>,
    foreign: u64,
    overflowed: u32,
    /// Monotonic times of the first and the last arrival.
    times: Option<(u64, u64)>,
}

impl Receiver {
    /// Counts until a signal or the end of the duration; writes lines of JSON.
    pub fn run(&self, stop: &mut Stop) -> Result<(), Failure> {
        let socket = self.open()?;
        let mut tally = Tally::default();
        let start = clock::monotonic();
        let end = self.duration.map(|duration| start + duration);
        let mut line_due = start + self.interval;
        let mut line_start = start;
        let mut buffer = vec![0u8; 65_536];
        loop {
            let now = clock::monotonic();
            if stop.is_requested() || end.is_some_and(|end| now >= end) {
                break;
            }
            let until = end.map_or(line_due, |end| end.min(line_due));
            stop.wait([socket.as_raw_fd()], Some(until.saturating_sub(now)));
            let waiting = tally.times.is_none();
            self.read(&socket, &mut buffer, &mut tally)?;
            if let (true, Some((first, _))) = (waiting, tally.times) {
                // Lines are counted from the first arrival.
                line_start = first;
                line_due = first + self.interval;
            }
            let now = clock::monotonic();
            if now >= line_due {
                match tally.times {
                    None => print_json(&Line::Waiting { seconds: (now - start) as f64 / 1e9 })?,
                    Some((first, _)) => {
                        tally.interval((line_start - first) as f64 / 1e9, (now - first) as f64 / 1e9)?
                    }
                }
                line_start = now;
                // Even after a stall at whole intervals, and never twice for the same time.
                line_due += self.interval * ((now - line_due) / self.interval + 1);
            }
        }
        self.read(&socket, &mut buffer, &mut tally)?;
        tally.total(self.port, headers(self.address))
    }

    fn open(&self) -> Result<OwnedFd, Error> {
        let (kind, protocol) = match self.port {
            Some(_) => (SockType::Datagram, SockProtocol::Udp),
            None => (SockType::Raw, SockProtocol::Udp),
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family(self.address), kind, flags, protocol).map_err(|errno| match errno {
            Errno::EPERM | Errno::EACCES if self.port.is_none() => Error::Raw,
            errno => Error::System("cannot open a socket", errno),
        })?;
        // Exceed the machine's limit if allowed.
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER)
                .map_err(|e| Error::System("cannot set the size of the receive buffer", e))?;
        }
        setsockopt(&socket, sockopt::RxqOvfl, &1)
            .map_err(|e| Error::System("cannot enable the kernel's drop counter", e))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)
            .map_err(|e| Error::System("cannot enable receive timestamps", e))?;
        // A raw socket has a fixed IP version.
        if self.address.is_ipv6() && self.port.is_some() {
            setsockopt(&socket, sockopt::Ipv6V6Only, &true)
                .map_err(|e| Error::System("cannot restrict the socket to IPv6", e))?;
        }
        let local = SocketAddr::new(self.address, self.port.unwrap_or(0));
        bind(socket.as_raw_fd(), &SockaddrStorage::from(local)).map_err(|e| Error::Bind(local, e))?;
        Ok(socket)
    }

    fn read(&self, socket: &OwnedFd, buffer: &mut [u8], tally: &mut Tally) -> Result<(), Error> {
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec, u32);
        for _ in 0..BATCH {
            let mut into = [IoSliceMut::new(buffer)];
            let message = match recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut into,
                Some(&mut control),
                MsgFlags::empty(),
            ) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => break,
                Err(errno) => return Err(Error::System("cannot receive", errno)),
            };
            let mut stamped = None;
            for said in message.cmsgs().map_err(|e| Error::System("cannot read the control data of a datagram", e))? {
                match said {
                    ControlMessageOwned::ScmTimestampns(time) => {
                        stamped = Some(std::time::Duration::from(time).as_nanos() as u64)
                    }
                    ControlMessageOwned::RxqOvfl(count) => tally.overflowed = count,
                    _ => {}
                }
            }
            let (from, length) = (message.address, message.bytes);
            let Some(from) = from.as_ref().and_then(peer) else { continue };
            let found = match self.port {
                Some(port) => Some((from.port(), port, &buffer[..length])),
                // An IPv6 raw socket delivers the data after the header.
                None if from.is_ipv6() => parse_datagram(&buffer[..length]),
                None => parse_packet(&buffer[..length]),
            };
            let stamped = stamped.unwrap_or_else(clock::wall);
            let found = found.and_then(|(source, port, payload)| {
                // A short stamp contains only part of the flood's number.
                let short = || self.id.and_then(|id| Stamp::read_short(payload, id, stamped));
                Some((source, port, payload, Stamp::read(payload).or_else(short)?))
            });
            let found = found.filter(|(_, _, _, stamp)| self.id.is_none_or(|id| id == stamp.flood));
            tally.record_arrival(from.ip(), found, stamped, clock::monotonic());
        }
        Ok(())
    }
}

impl Tally {
    /// Records a datagram: source port, destination port, payload and stamp, by wall clock and monotonic clock.
    fn record_arrival(&mut self, address: IpAddr, datagram: Option<(u16, u16, &[u8], Stamp)>, stamped: u64, now: u64) {
        let Some((source_port, port, payload, stamp)) = datagram else {
            self.foreign += 1;
            return;
        };
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
        self.ports.insert(port);
        let counts = self.sources.entry(Source { address, source_port, flood: stamp.flood }).or_default();
        let before = counts.sequence.received;
        counts.sequence.record_arrival(stamp.sequence);
        if counts.sequence.received == before {
            return; // repeated
        }
        if before == 0 {
            counts.first_ns = now;
        }
        counts.last_ns = now;
        counts.jitter.record_arrival(stamp.sent_ns, stamped);
        counts.payload_bytes += payload.len() as u64;
        counts.interval_packets += 1;
        counts.interval_bytes += payload.len() as u64;
    }

    fn interval(&mut self, start_s: f64, end_s: f64) -> Result<(), Failure> {
        let sources: Vec<SourceInterval> = self
            .sources
            .iter_mut()
            .filter(|(_, counts)| counts.interval_packets > 0)
            .map(|(source, counts)| SourceInterval {
                source,
                packets: std::mem::take(&mut counts.interval_packets),
                payload_bytes: std::mem::take(&mut counts.interval_bytes),
            })
            .collect();
        let packets = sources.iter().map(|source| source.packets).sum();
        let payload_bytes = sources.iter().map(|source| source.payload_bytes).sum();
        print_json(&Line::Interval { start_s, end_s, packets, payload_bytes, sources })
    }

    fn total(&self, port: Option<u16>, headers: u32) -> Result<(), Failure> {
        let (first, last) = self.times.unwrap_or_default();
        let seconds = |ns: u64| ns.saturating_sub(first) as f64 / 1e9;
        let sources: Vec<SourceReceived> = self
            .sources
            .iter()
            .map(|(source, counts)| SourceReceived {
                source,
                packets: counts.sequence.received,
                payload_bytes: counts.payload_bytes,
                missing: counts.sequence.missing(),
                reordered: counts.sequence.reordered,
                repeated: counts.sequence.repeated,
                jitter_ms: counts.jitter.nanoseconds() / 1e6,
                first_s: seconds(counts.first_ns),
                last_s: seconds(counts.last_ns),
            })
            .collect();
        let packets: u64 = sources.iter().map(|source| source.packets).sum();
        let payload_bytes: u64 = sources.iter().map(|source| source.payload_bytes).sum();
        let received = Received {
            tool: "flood",
            version: env!("CARGO_PKG_VERSION"),
            port,
            packets,
            bytes: payload_bytes + packets * u64::from(headers),
            payload_bytes,
            seconds: seconds(last),
            foreign: self.foreign,
            overflowed: u64::from(self.overflowed),
            ports: self.ports.len(),
            sources,
        };
        print_json(&Line::Received(received))
    }
}
