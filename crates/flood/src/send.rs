//! Sender of a flood, which reports the sent packets.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use hdrhistogram::Histogram;
use nix::errno::Errno;
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::sys::socket::{
    bind, connect, getsockname, getsockopt, setsockopt, socket, sockopt, SockFlag, SockType, SockaddrStorage,
};
use serde::Serialize;

use flood::datagram::{headers, Draw, Stamp, LEAST_PAYLOAD};
use flood::pace::{Gap, Next, Pacer};
use flood::source_frames::Frames;
use netio::clock;
use netio::wait::Stop;

use crate::address::{family, peer, unspecified};
use crate::batch::{self, Batch};
use crate::error::Error;

/// Nanoseconds between two checks for a signal while the sender does not sleep.
const LOOK_NS: u64 = 100_000_000;

/// Options of a sender.
#[derive(Debug, Clone)]
pub struct Flood {
    /// Destination address.
    pub destination: IpAddr,
    /// Destination port; random if absent.
    pub port: Option<u16>,
    /// IP length; random if absent.
    pub size: Option<u32>,
    /// Time between two datagrams of one stream.
    pub gap: Gap,
    /// Duration in nanoseconds; until a signal if absent.
    pub duration: Option<u64>,
    /// Local address; chosen by the kernel if absent.
    pub source: Option<IpAddr>,
    /// Port of the first stream, followed by those of the others; chosen by the kernel if absent.
    pub source_port: Option<u16>,
    /// Source ports that take turns.
    pub streams: u16,
    /// DSCP of every packet.
    pub dscp: u8,
    /// Number in every stamp; the time if absent.
    pub id: Option<u64>,
    /// Seed of random sizes and ports.
    pub seed: u64,
    /// Datagrams that are due together.
    pub batch: u32,
    /// Payload bytes of the frames of a stream in a cycle, in place of single datagrams; empty without frames. The gap
    /// is that of two frames, and a size is that of the largest packet.
    pub frames: Vec<u32>,
    /// Overdue batches that may leave late.
    pub catch_up: u32,
    /// Nanoseconds of busy waiting before a deadline.
    pub spin_ns: u64,
}

/// Counters of sent packets.
#[derive(Debug, Serialize)]
pub struct Sent {
    tool: &'static str,
    version: &'static str,
    destination: IpAddr,
    port: Option<u16>,
    size: Option<u32>,
    dscp: u8,
    seed: u64,
    /// Requested nanoseconds between two datagrams of all streams together.
    gap_ns: f64,
    /// Time from the first deadline to the end.
    seconds: f64,
    packets: u64,
    /// IP and UDP headers included.
    bytes: u64,
    payload_bytes: u64,
    /// IP bits per second.
    rate_bps: f64,
    /// Datagrams that were skipped because the sender could not run.
    skipped: u64,
    /// Datagrams that were due together and were handed to the kernel in one call.
    batch: u32,
    /// Maximum number of overdue batches that leave at once, in addition to the due one.
    catch_up: u32,
    /// Refusals by the system, by error.
    send_errors: BTreeMap<String, u64>,
    pacing_error_ns: Quantiles,
    streams: Vec<StreamSent>,
}

#[derive(Debug, Serialize)]
struct StreamSent {
    source_port: u16,
    packets: u64,
    payload_bytes: u64,
}

/// Lateness of datagrams at the handover to the kernel, in nanoseconds.
#[derive(Debug, Serialize)]
struct Quantiles {
    mean: f64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Quantiles {
    fn of(late: &Histogram<u64>) -> Quantiles {
        Quantiles {
            mean: late.mean(),
            p50: late.value_at_quantile(0.5),
            p90: late.value_at_quantile(0.9),
            p99: late.value_at_quantile(0.99),
            p999: late.value_at_quantile(0.999),
            max: late.max(),
        }
    }
}

struct Stream {
    socket: OwnedFd,
    sent: StreamSent,
}

/// Streams, and their common counters.
struct Sending {
    streams: Vec<Stream>,
    /// Index of the next stream.
    turn: usize,
    /// Batches that were sent.
    turns: u64,
    packets: u64,
    payload_bytes: u64,
    /// Refusals by the system, by error.
    errors: BTreeMap<String, u64>,
    late: Histogram<u64>,
}

impl Sending {
    fn new(streams: Vec<Stream>) -> Sending {
        Sending { streams, turn: 0, turns: 0, packets: 0, payload_bytes: 0, errors: BTreeMap::new(), late: lateness() }
    }

    /// Stamps the datagrams of a batch and passes them to the kernel, `late` nanoseconds after they were due. A refusal
    /// of one is counted, unless it shows that no datagram will ever arrive.
    fn send(&mut self, flood: u64, batch: &mut Batch, late: u64) -> Result<(), Error> {
        self.turns += 1;
        let turn = self.turn;
        self.turn = (turn + 1) % self.streams.len();
        let stream = &mut self.streams[turn];
        let mut first = 0;
        while first < batch.len() {
            batch.stamp(first, Stamp { flood, sequence: stream.sent.packets, sent_ns: clock::wall() });
            match batch.send(&stream.socket, first) {
                Ok(taken) => {
                    let (packets, length) = (taken as u64, batch.bytes(first..first + taken));
                    stream.sent.packets += packets;
                    stream.sent.payload_bytes += length;
                    self.packets += packets;
                    self.payload_bytes += length;
                    self.late.saturating_record_n(late, packets);
                    first += taken;
                }
                Err(errno) if self.packets == 0 && self.errors.is_empty() && !transient(errno) => {
                    return Err(Error::First(batch.destination(first), errno));
                }
                Err(errno) => {
                    *self.errors.entry(format!("{errno:?}")).or_insert(0) += 1;
                    first += 1;
                }
            }
        }
        Ok(())
    }
}

/// Longest distinguished lateness, in nanoseconds: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Returns a histogram of lateness. Its bounds are given, since one that grows by itself does not when a value
/// saturates it.
fn lateness() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are constants that fit")
}

impl Flood {
    /// Sends until the end of the duration or a signal.
    pub fn run(&self, stop: &mut Stop) -> Result<Sent, Error> {
        let headers = headers(self.destination);
        self.check_size(headers)?;
        let mut sending = Sending::new(self.open()?);
        let gap = self.gap.divided(u32::from(self.streams)).ok_or_else(|| {
            Error::Options(format!(
                "found {} streams at this rate, with less than a nanosecond between datagrams",
                self.streams
            ))
        })?;
        let length = self.size.map(|size| size - headers);
        let frames = self.frames(length.unwrap_or(0))?;
        let mut draw = Draw::new(self.port, length, self.seed);
        let mut batch = Batch::new(frames.as_ref().map_or(self.batch, Frames::longest));
        let together = gap
            .times(self.batch)
            .ok_or_else(|| Error::Options(format!("found batches of {}, sent more than an hour apart", self.batch)))?;
        let flood = self.id.unwrap_or_else(clock::wall);
        let start = clock::monotonic();
        let mut pacer = Pacer::new(start, together, self.duration, self.catch_up);
        let mut look = start;
        // With frames: the next frame, and datagrams of skipped ones.
        let (mut next, mut skipped) = (0, 0);
        while !stop.is_requested() {
            let now = clock::monotonic();
            if now >= look {
                // A flood that never waits sees no signal otherwise.
                stop.wait([], Some(0));
                look = now + LOOK_NS;
            }
            let due = match pacer.at(now) {
                Next::Wait(due) => {
                    stop.wait_until(due, self.spin_ns);
                    continue;
                }
                Next::Send(due) => due,
                Next::Done => match self.duration.map(|d| start + d).filter(|end| *end > now) {
                    Some(end) => {
                        stop.wait_until(end, 0);
                        continue;
                    }
                    None => break,
                },
            };
            match &frames {
                None => batch.draw(&mut draw, self.destination),
                Some(frames) => {
                    let number = sending.turns + pacer.skipped();
                    skipped += (next..number).map(|number| frames.datagrams(number).count() as u64).sum::<u64>();
                    next = number + 1;
                    sending.turn = (number % u64::from(self.streams)) as usize;
                    batch.draw_frame(&mut draw, self.destination, frames.datagrams(number));
                }
            }
            sending.send(flood, &mut batch, now - due)?;
        }
        let seconds = (clock::monotonic() - start) as f64 / 1e9;
        let skipped = if frames.is_some() { skipped } else { pacer.skipped() * u64::from(self.batch) };
        Ok(self.report(sending, gap, seconds, skipped))
    }

    /// Refuses a packet size without room for the flood's payload, or above the MTU of the interface.
    fn check_size(&self, headers: u32) -> Result<(), Error> {
        let Some(size) = self.size else { return Ok(()) };
        let least = headers + LEAST_PAYLOAD;
        if size < least {
            return Err(Error::Options(format!("found a size of {size} bytes, expected at least {least} for IPv6")));
        }
        self.check_mtu(size)
    }

    /// Returns the frames of the load in datagrams of at most `largest` bytes of payload; none if it sends single
    /// datagrams.
    fn frames(&self, largest: u32) -> Result<Option<Frames>, Error> {
        if self.frames.is_empty() {
            return Ok(None);
        }
        let found = Frames::new(self.frames.clone(), largest, self.streams);
        match found.filter(|found| found.longest() <= batch::MOST) {
            Some(found) => Ok(Some(found)),
            None => Err(Error::Options(format!(
                "found frames in packets of {} bytes, expected at most {} packets per frame, each of at least 24 bytes",
                self.size.unwrap_or(0),
                batch::MOST
            ))),
        }
    }

    fn report(&self, sending: Sending, gap: Gap, seconds: f64, skipped: u64) -> Sent {
        let Sending { streams, packets, payload_bytes, errors, late, .. } = sending;
        let bytes = payload_bytes + packets * u64::from(headers(self.destination));
        Sent {
            tool: "flood",
            version: env!("CARGO_PKG_VERSION"),
            destination: self.destination,
            port: self.port,
            size: self.size,
            dscp: self.dscp,
            seed: self.seed,
            gap_ns: gap.nanoseconds(),
            seconds,
            packets,
            bytes,
            payload_bytes,
            rate_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            skipped,
            batch: self.batch,
            catch_up: self.catch_up,
            send_errors: errors,
            pacing_error_ns: Quantiles::of(&late),
            streams: streams.into_iter().map(|stream| stream.sent).collect(),
        }
    }

    fn check_mtu(&self, size: u32) -> Result<(), Error> {
        let probe = self.udp_socket()?;
        // Connecting a datagram socket sends nothing. Linux reports the MTU by the same option for both families.
        let to = SocketAddr::new(self.destination, self.port.unwrap_or(1));
        connect(probe.as_raw_fd(), &SockaddrStorage::from(to)).map_err(|e| Error::Destination(self.destination, e))?;
        let mtu = getsockopt(&probe, sockopt::IpMtu).map_err(|e| Error::System("cannot read the MTU", e))?;
        if i64::from(size) > i64::from(mtu) {
            return Err(Error::Size { size, mtu, destination: self.destination });
        }
        Ok(())
    }

    fn open(&self) -> Result<Vec<Stream>, Error> {
        let (soft, hard) =
            getrlimit(Resource::RLIMIT_NOFILE).map_err(|e| Error::System("cannot read the limit of open files", e))?;
        // Reserve for standard input and output and descriptors that the program itself opens.
        let needed = u64::from(self.streams) + 16;
        if needed > hard {
            return Err(Error::Options(format!(
                "found {} streams, but a process can open only {hard} files",
                self.streams
            )));
        }
        if needed > soft {
            setrlimit(Resource::RLIMIT_NOFILE, needed, hard)
                .map_err(|e| Error::System("cannot raise the limit of open files", e))?;
        }
        (0..self.streams).map(|number| self.open_stream(number)).collect()
    }

    fn open_stream(&self, number: u16) -> Result<Stream, Error> {
        let socket = self.udp_socket()?;
        let class = i32::from(self.dscp) << 2;
        match self.destination {
            IpAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4Tos, &class),
            IpAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6TClass, &class),
        }
        .map_err(|e| Error::System("cannot set the DSCP", e))?;
        let port = match self.source_port {
            None => 0,
            Some(first) => first.checked_add(number).ok_or_else(|| {
                Error::Options(format!(
                    "found source port {first} for {} streams, expected all ports up to 65535",
                    self.streams
                ))
            })?,
        };
        let local = SocketAddr::new(self.source.unwrap_or(unspecified(self.destination)), port);
        if local.is_ipv4() != self.destination.is_ipv4() {
            let message = format!("found {} as the local address of a flood to {}", local.ip(), self.destination);
            return Err(Error::Options(format!("{message}, expected one of the same family")));
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(local)).map_err(|e| Error::Bind(local, e))?;
        let bound: SockaddrStorage =
            getsockname(socket.as_raw_fd()).map_err(|e| Error::System("cannot read the local port", e))?;
        let source_port = peer(&bound).map_or(0, |bound| bound.port());
        Ok(Stream { socket, sent: StreamSent { source_port, packets: 0, payload_bytes: 0 } })
    }

    fn udp_socket(&self) -> Result<OwnedFd, Error> {
        socket(family(self.destination), SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|e| Error::System("cannot open a socket", e))
    }
}

/// Returns whether an error is that of a full output queue, after which the next datagram may succeed.
fn transient(errno: Errno) -> bool {
    matches!(errno, Errno::EAGAIN | Errno::ENOBUFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_of_milliseconds_is_reported() {
        let mut late = lateness();
        for ns in [500, 5_000_000, u64::MAX] {
            late.saturating_record(ns);
        }
        assert_eq!(late.value_at_quantile(0.3), 500);
        assert!(late.equivalent(late.value_at_quantile(0.6), 5_000_000));
        assert!(late.max() >= LONGEST_NS);
    }
}
