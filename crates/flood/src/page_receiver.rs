//! Receiver of pages over TCP, which acknowledges each page with one byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{bind, listen, setsockopt, socket, sockopt, Backlog, SockFlag, SockType, SockaddrStorage};
use serde::Serialize;

use netio::clock;
use netio::wait::Stop;

use crate::address::family;
use crate::error::Error;
use crate::page_sender::{seconds, system};

/// Maximum number of bytes per read.
const READ: usize = 65_536;

/// Options of a receiver of pages.
#[derive(Debug, Clone)]
pub struct PageReceiver {
    /// Local address and port; an unspecified address is every address of its family.
    pub local: SocketAddr,
    /// Bytes of a page.
    pub bytes: u32,
    /// Number of connections after which the receiver ends; it runs until a signal if absent.
    pub streams: Option<u16>,
    /// Nanoseconds of the intervals in which bytes are counted.
    pub interval: u64,
}

/// Report of a receiver.
#[derive(Debug, Serialize)]
pub struct Received {
    tool: &'static str,
    version: &'static str,
    interval_s: f64,
    streams: Vec<StreamReceived>,
}

#[derive(Debug, Serialize)]
struct StreamReceived {
    source: SocketAddr,
    bytes: u64,
    /// Complete pages.
    pages: u64,
    /// Seconds from the connection to the last byte.
    seconds: f64,
    /// Bytes by interval since the connection.
    intervals: Vec<u64>,
}

struct Connection {
    /// The connection; none after its end.
    stream: Option<TcpStream>,
    began: u64,
    received: StreamReceived,
}

impl PageReceiver {
    /// Receives until all connections have ended, or until a signal.
    pub fn run(&self) -> Result<Received, Error> {
        let listener = self.open()?;
        let mut stop = Stop::on_signals().map_err(|error| system("cannot wait for signals", &error))?;
        let mut connections: Vec<Connection> = Vec::new();
        let mut buffer = vec![0u8; READ];
        let wanted = self.streams.map_or(usize::MAX, usize::from);
        loop {
            let accepts = connections.len() < wanted;
            if !accepts && connections.iter().all(|each| each.stream.is_none()) {
                break;
            }
            let open = connections.iter().filter_map(|each| each.stream.as_ref()).map(AsRawFd::as_raw_fd);
            if stop.wait(open.chain(accepts.then(|| listener.as_raw_fd())), None) {
                break;
            }
            while connections.len() < wanted {
                match listener.accept() {
                    Ok((stream, source)) => connections.push(Connection::new(stream, source)?),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // A connection that ended before it was accepted.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => return Err(system("cannot accept a connection", &error)),
                }
            }
            for connection in &mut connections {
                connection.read(u64::from(self.bytes), self.interval, &mut buffer);
            }
        }
        Ok(Received {
            tool: "flood",
            version: env!("CARGO_PKG_VERSION"),
            interval_s: seconds(self.interval),
            streams: connections.into_iter().map(|each| each.received).collect(),
        })
    }

    fn open(&self) -> Result<TcpListener, Error> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket: OwnedFd = socket(family(self.local.ip()), SockType::Stream, flags, None)
            .map_err(|e| Error::System("cannot open a socket", e))?;
        setsockopt(&socket, sockopt::ReuseAddr, &true).map_err(|e| Error::System("cannot reuse the port", e))?;
        if self.local.is_ipv6() {
            setsockopt(&socket, sockopt::Ipv6V6Only, &true)
                .map_err(|e| Error::System("cannot restrict the socket to IPv6", e))?;
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(self.local)).map_err(|e| Error::Bind(self.local, e))?;
        listen(&socket, Backlog::MAXCONN).map_err(|e| Error::System("cannot listen", e))?;
        Ok(TcpListener::from(socket))
    }
}

impl Connection {
    fn new(stream: TcpStream, source: SocketAddr) -> Result<Self, Error> {
        stream.set_nonblocking(true).map_err(|error| system("cannot prepare a connection", &error))?;
        stream.set_nodelay(true).map_err(|error| system("cannot prepare a connection", &error))?;
        let received = StreamReceived { source, bytes: 0, pages: 0, seconds: 0.0, intervals: Vec::new() };
        Ok(Self { stream: Some(stream), began: clock::monotonic(), received })
    }

    /// Reads all data that has arrived, and acknowledges complete pages.
    fn read(&mut self, page: u64, interval: u64, buffer: &mut [u8]) {
        while let Some(stream) = &mut self.stream {
            match stream.read(buffer) {
                Ok(count) if count > 0 => {
                    let elapsed = clock::monotonic() - self.began;
                    let received = &mut self.received;
                    received.bytes += count as u64;
                    received.seconds = seconds(elapsed);
                    let place = (elapsed / interval) as usize;
                    received.intervals.resize(received.intervals.len().max(place + 1), 0);
                    received.intervals[place] += count as u64;
                    let complete = received.bytes / page - received.pages;
                    received.pages += complete;
                    if stream.write_all(&vec![0; complete as usize]).is_err() {
                        self.stream = None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The sender has ended the connection or disappeared: its report is then missing.
                Ok(_) | Err(_) => self.stream = None,
            }
        }
    }
}
