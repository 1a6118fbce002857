//! IP SLA responder with its sockets.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use ip_sla::packet::CONTROL_PORT;
use ip_sla::responder::Refusal;
use ip_sla::{Nanos, SECOND};
use ipnet::IpNet;

use netio::socket::{lacks_family, Family, Kind, Received, Socket};

/// Sockets by port and version of IP.
pub type Sockets = BTreeMap<(u16, Family), Socket>;

/// Running responder: it listens on the control port and on requested ports, over IPv4 and IPv6.
#[derive(Debug)]
pub struct Responder {
    protocol: ip_sla::Responder,
    sockets: Sockets,
    /// Time from which the next complaint can be printed.
    silent_until: Nanos,
    /// Number of suppressed complaints.
    untold: u64,
}

impl Responder {
    /// Opens the sockets that a responder with these permanent ports needs in addition to `present`.
    ///
    /// # Errors
    /// A port that cannot be opened; nothing stays open then.
    pub fn open_missing(
        permanent: &[u16],
        present: Option<&Self>,
        open: impl Fn(Kind) -> io::Result<Socket>,
    ) -> io::Result<Sockets> {
        let ports = permanent.iter().chain([&CONTROL_PORT]).copied();
        let mut sockets = Sockets::new();
        for port in ports.filter(|port| present.is_none_or(|responder| !responder.listens_on(*port))) {
            sockets.extend(open_port(port, &open)?);
        }
        Ok(sockets)
    }

    /// Returns a responder without open sockets; see [`configure`](Self::configure).
    pub fn new() -> Self {
        Self { protocol: ip_sla::Responder::default(), sockets: Sockets::new(), silent_until: 0, untold: 0 }
    }

    /// Answers permanently on these ports, with the missing sockets in `opened`, and only to the given prefixes, or to
    /// anyone without prefixes. Ports opened by a control message stay open.
    pub fn configure(&mut self, permanent: &[u16], allowed: &[IpNet], opened: Sockets) {
        self.protocol.configure(permanent, allowed);
        self.sockets.extend(opened);
        self.close_unwanted();
    }

    fn close_unwanted(&mut self) {
        let wanted: Vec<u16> = self.protocol.ports().chain([CONTROL_PORT]).collect();
        self.sockets.retain(|(port, _), _| wanted.contains(port));
    }

    /// Returns whether the responder has a socket for this port.
    pub fn listens_on(&self, port: u16) -> bool {
        Family::ALL.iter().any(|family| self.sockets.contains_key(&(port, *family)))
    }

    /// Returns the ports of the sockets, each with its version of IP.
    pub fn ports(&self) -> impl Iterator<Item = (u16, Family)> + '_ {
        self.sockets.keys().copied()
    }

    /// Returns the descriptors of the sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.sockets.values().map(AsRawFd::as_raw_fd)
    }

    /// Returns the time at which the next port is to be closed.
    pub fn deadline(&self) -> Option<Nanos> {
        self.protocol.deadline()
    }

    /// Closes expired ports.
    pub fn poll(&mut self, now: Nanos) {
        if self.protocol.poll(now) {
            self.close_unwanted();
        }
    }

    /// Takes the next packet of a port.
    pub fn receive(&mut self, port: (u16, Family)) -> Option<Received> {
        self.sockets.get_mut(&port).and_then(Socket::receive)
    }

    /// Answers a packet that arrived on `port` at `at`, and returns the answer. A port requested by a control message
    /// is opened first.
    ///
    /// # Errors
    /// Returned if that port cannot be opened: the message is not answered, so that the other end reports no
    /// connection, and counts as an error.
    pub fn serve(
        &mut self,
        port: u16,
        mut received: Received,
        at: Nanos,
        now: impl Fn() -> Nanos,
        open: impl Fn(Kind) -> io::Result<Socket>,
    ) -> io::Result<Option<Vec<u8>>> {
        let (from, own) = (received.from, received.to);
        let answered = if port == CONTROL_PORT {
            match self.protocol.control(from, &received.bytes, at) {
                Ok(answer) => {
                    self.open_requested_ports(open)?;
                    Some(answer)
                }
                // A port may receive anything; it is counted.
                Err(Refusal::Malformed) => None,
                Err(refusal) => return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal.to_string())),
            }
        } else {
            self.protocol.answer(port, from, &mut received.bytes, at, now()).then_some(received.bytes)
        };
        if let (Some(bytes), Some(socket)) = (&answered, self.sockets.get_mut(&(port, Family::of(from.0)))) {
            // The other end counts an answer that is not sent as missing.
            let _ = socket.answer(bytes, from, own);
        }
        Ok(answered)
    }

    fn open_requested_ports(&mut self, open: impl Fn(Kind) -> io::Result<Socket>) -> io::Result<()> {
        let asked: Vec<u16> = self.protocol.ports().filter(|port| !self.listens_on(*port)).collect();
        let mut result = Ok(());
        for port in asked {
            match open_port(port, &open) {
                Ok(sockets) => self.sockets.extend(sockets),
                Err(error) => {
                    self.protocol.refuse(port);
                    result = Err(error);
                }
            }
        }
        result
    }

    /// Returns the message about an error of [`serve`](Self::serve): at most one line per second, regardless of the
    /// input.
    pub fn complaint(&mut self, error: &io::Error, now: Nanos) -> Option<String> {
        if now < self.silent_until {
            self.untold += 1;
            return None;
        }
        self.silent_until = now + SECOND;
        let untold = std::mem::take(&mut self.untold);
        Some(if untold == 0 { error.to_string() } else { format!("{error} (after {untold} unreported errors)") })
    }

    /// Returns the counters of the protocol.
    pub fn protocol(&self) -> &ip_sla::Responder {
        &self.protocol
    }
}

impl Default for Responder {
    fn default() -> Self {
        Self::new()
    }
}

/// Listens on a port in both versions of IP, or in the one that the machine has.
fn open_port(port: u16, open: impl Fn(Kind) -> io::Result<Socket>) -> io::Result<Sockets> {
    let mut sockets = Sockets::new();
    for family in Family::ALL {
        match open(Kind::Udp { family, port }) {
            Ok(socket) => drop(sockets.insert((port, family), socket)),
            Err(error) if family == Family::V6 && lacks_family(&error) => {}
            Err(error) => return Err(cannot_listen(port, &error)),
        }
    }
    Ok(sockets)
}

fn cannot_listen(port: u16, error: &io::Error) -> io::Error {
    let advice = if error.kind() == io::ErrorKind::AddrInUse {
        "; stop the program that uses it, or choose another port"
    } else {
        ""
    };
    io::Error::new(error.kind(), format!("cannot listen on UDP port {port}: {error}{advice}"))
}
