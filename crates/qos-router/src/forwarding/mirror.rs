//! Mirrors the state of the router's kernel by netlink: it is requested once, and then updated by notifications.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use netlink_packet_core::{NLMSG_DONE, NLMSG_ERROR, NLMSG_OVERRUN, NLM_F_DUMP_INTR};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::Socket;

use super::kernel::{Effect, Kernel};
use super::netlink::{messages, monitor, Request, DATAGRAM, LINKS};
use crate::namespace::Namespace;

/// The subscribed groups of `linux/rtnetlink.h`: links, neighbours, traffic control, addresses, routes and rules of
/// both versions of IP, and settings of interfaces.
const GROUPS: u32 = bits([1, 3, 4, 5, 7, 8, 9, 11, 19, 24, 25]);

/// Returns the bit mask of groups, with the first group as the lowest bit.
const fn bits<const N: usize>(groups: [u32; N]) -> u32 {
    let (mut bits, mut at) = (0, 0);
    while at < N {
        bits |= 1 << (groups[at] - 1);
        at += 1;
    }
    bits
}

const INET: u8 = libc::AF_INET as u8;
const INET6: u8 = libc::AF_INET6 as u8;

/// Requests in order, with the lengths of `linux/rtnetlink.h`.
const DUMPS: [Request; 11] = [
    LINKS,
    Request { kind: GETNETCONF, family: INET, length: 4 },
    Request { kind: GETNETCONF, family: INET6, length: 4 },
    Request { kind: libc::RTM_GETRULE, family: INET, length: 12 },
    Request { kind: libc::RTM_GETRULE, family: INET6, length: 12 },
    Request { kind: libc::RTM_GETQDISC, family: 0, length: 20 },
    Request { kind: libc::RTM_GETADDR, family: INET6, length: 8 },
    Request { kind: libc::RTM_GETROUTE, family: INET, length: 12 },
    Request { kind: libc::RTM_GETROUTE, family: INET6, length: 12 },
    Request { kind: libc::RTM_GETNEIGH, family: INET, length: 12 },
    Request { kind: libc::RTM_GETNEIGH, family: INET6, length: 12 },
];
const GETNETCONF: u16 = 82;

/// Receive buffer for messages, in bytes.
const BUFFER: usize = 1 << 20;
/// Maximum number of datagrams per call, so that frames have their turn.
const TAKEN: usize = 256;

/// State of the mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The answer to this entry of [`DUMPS`] is arriving. Everything must be requested again afterwards if `again`; a
    /// message could not be read if `lost`. The kernel answers one request at a time.
    Asking { number: usize, again: bool, lost: bool },
    /// The mirror equals the state of the kernel.
    Synchronous,
    /// A message could not be read, because an unknown feature is in use. Lasts until the next change.
    Lost,
}

/// Mirror of the kernel of a namespace.
#[derive(Debug)]
pub struct Mirror {
    socket: Socket,
    /// The kernel's name for the socket.
    port: u32,
    datagram: Vec<u8>,
    sequence: u32,
    state: State,
    kernel: Kernel,
    generation: u64,
    dumps: u64,
    overruns: u64,
}

impl Mirror {
    /// Begins to mirror the kernel of a namespace.
    ///
    /// # Errors
    /// Those of entering it and of the system calls.
    pub fn open(namespace: &Namespace) -> io::Result<Self> {
        Self::with_buffer(namespace, BUFFER)
    }

    /// Opens a mirror like [`open`](Self::open), with a receive buffer of this many bytes.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn with_buffer(namespace: &Namespace, buffer: usize) -> io::Result<Self> {
        let (socket, port) = namespace.within(|| monitor(NETLINK_ROUTE, GROUPS, buffer))?;
        let mut mirror = Self {
            socket,
            port,
            datagram: Vec::with_capacity(DATAGRAM),
            sequence: 0,
            state: State::Lost,
            kernel: Kernel::default(),
            generation: 0,
            dumps: 0,
            overruns: 0,
        };
        mirror.begin();
        Ok(mirror)
    }

    /// Discards the state and requests it again. No request may be outstanding.
    fn begin(&mut self) {
        self.kernel = Kernel::default();
        self.generation += 1;
        self.dumps += 1;
        self.ask(0, false, false);
    }

    /// Requests everything again, now or after the answers to the outstanding requests.
    pub fn renew(&mut self) {
        match self.state {
            State::Asking { .. } => self.request_again(),
            State::Synchronous | State::Lost => self.begin(),
        }
    }

    fn ask(&mut self, number: usize, again: bool, lost: bool) {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.state = match DUMPS[number].send(&self.socket, self.sequence) {
            Ok(()) => State::Asking { number, again, lost },
            Err(_) => State::Lost,
        };
    }

    /// Reads the kernel's messages, up to the limit per call.
    pub fn follow(&mut self) {
        for _ in 0..TAKEN {
            self.datagram.clear();
            match self.socket.recv(&mut self.datagram, 0) {
                Ok(_) => {
                    let datagram = std::mem::take(&mut self.datagram);
                    self.take(&datagram);
                    self.datagram = datagram;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => self.overrun(),
                // No more messages, or an error that cannot be handled.
                Err(_) => return,
            }
        }
    }

    /// Handles lost messages. Waiting messages are discarded: they are older than the next dump and would look newer.
    fn overrun(&mut self) {
        self.overruns += 1;
        loop {
            self.datagram.clear();
            match self.socket.recv(&mut self.datagram, 0) {
                Ok(_) => {}
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) || e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.begin();
    }

    fn take(&mut self, datagram: &[u8]) {
        for (header, body) in messages(datagram) {
            // Answers name the requesting socket; notifications name the process that made a change.
            let answer = header.port_number == self.port;
            if answer && !(header.sequence_number == self.sequence && matches!(self.state, State::Asking { .. })) {
                // Part of an abandoned dump.
                continue;
            }
            if answer && header.flags & NLM_F_DUMP_INTR != 0 {
                self.request_again();
            }
            match header.message_type {
                NLMSG_OVERRUN => return self.overrun(),
                // A function that the kernel lacks (a version of IP, traffic control) is not in use: an error also ends
                // the list.
                NLMSG_DONE | NLMSG_ERROR if answer => self.finish_answer(),
                NLMSG_DONE | NLMSG_ERROR => {}
                _ if !answer && self.state == State::Lost => return self.begin(),
                kind => self.message(kind, header.flags, body, answer),
            }
        }
    }

    fn message(&mut self, kind: u16, flags: u16, body: &[u8], answer: bool) {
        match self.kernel.take(kind, flags, body, answer) {
            Ok(Effect::None) => {}
            Ok(Effect::Changed) => self.generation += 1,
            Ok(Effect::Unclear) => self.renew(),
            Err(_) => {
                self.generation += 1;
                match &mut self.state {
                    State::Asking { lost, .. } => *lost = true,
                    state => *state = State::Lost,
                }
            }
        }
    }

    fn request_again(&mut self) {
        if let State::Asking { again, .. } = &mut self.state {
            *again = true;
        }
    }

    /// Handles the end of an answer: all objects of a kind were received.
    fn finish_answer(&mut self) {
        let State::Asking { number, again, lost } = self.state else { return };
        if number + 1 < DUMPS.len() {
            return self.ask(number + 1, again, lost);
        }
        if again {
            return self.begin();
        }
        self.state = if lost { State::Lost } else { State::Synchronous };
        self.generation += 1;
    }

    /// Returns the state of the kernel, if it is known now.
    pub fn kernel(&mut self) -> Option<&mut Kernel> {
        (self.state == State::Synchronous).then_some(&mut self.kernel)
    }

    /// Returns the reason why the state is not known.
    pub fn trouble(&self) -> Option<&'static str> {
        match self.state {
            State::Synchronous => None,
            State::Asking { .. } => Some("the kernel's routes are being read"),
            State::Lost => Some("the kernel reports an unknown feature"),
        }
    }

    /// Returns the number that changes with the known state.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the number of complete requests.
    pub fn dumps(&self) -> u64 {
        self.dumps
    }

    /// Returns the number of lost batches of messages.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }
}

impl AsRawFd for Mirror {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
