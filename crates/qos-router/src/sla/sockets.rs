//! Raw ICMP and UDP sockets, opened in another network namespace where it must be.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, RawFd};
use std::thread;

use socket2::{Domain, Protocol, SockAddr, Type};

use super::stamps::Key;
use super::Place;

/// Longest IP packet.
const LONGEST: usize = 65_535;

/// What is opened.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// ICMP with one other address.
    Icmp {
        /// The other end.
        target: Ipv4Addr,
    },
    /// UDP with anyone.
    Udp {
        /// The local port; any where 0.
        port: u16,
    },
}

/// A packet that was received.
#[derive(Debug)]
pub struct Received {
    /// Sender; the port is 0 for ICMP.
    pub from: (Ipv4Addr, u16),
    /// ICMP message or UDP payload.
    pub bytes: Vec<u8>,
    /// The kernel's receive stamp, wall clock in ns.
    pub stamp: u64,
    /// What it is recognised by.
    pub key: Key,
}

/// One socket that never blocks.
#[derive(Debug)]
pub struct Socket {
    socket: socket2::Socket,
    /// Local port of UDP.
    port: Option<u16>,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket at `place`.
    ///
    /// # Errors
    /// Those of the system calls; an address that the router does not have, a port in use.
    pub fn open(place: &Place, kind: Kind, source: Option<Ipv4Addr>, tos: u8) -> io::Result<Self> {
        match place {
            Place::Here => Self::make(kind, source, tos),
            Place::Nowhere => Err(io::ErrorKind::Unsupported.into()),
            // A thread of its own goes there, so that the daemon stays where it is.
            Place::Namespace(namespace) => thread::scope(|scope| {
                let open = move || {
                    // SAFETY: no pointers; the descriptor is open as long as `place` is borrowed.
                    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
                        return Err(io::Error::last_os_error());
                    }
                    Self::make(kind, source, tos)
                };
                scope.spawn(open).join().expect("opening does not panic")
            }),
        }
    }

    fn make(kind: Kind, source: Option<Ipv4Addr>, tos: u8) -> io::Result<Self> {
        let (socket, port) = match kind {
            Kind::Icmp { .. } => (socket2::Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?, 0),
            Kind::Udp { port } => (socket2::Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?, port),
        };
        socket.set_nonblocking(true)?;
        socket.set_tos(u32::from(tos))?;
        let on: libc::c_int = 1;
        // SAFETY: `on` is a readable int of the size that is given.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                (&raw const on).cast(),
                std::mem::size_of_val(&on) as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        if let (Kind::Udp { .. }, _) | (_, Some(_)) = (kind, source) {
            socket.bind(&SockAddr::from(SocketAddrV4::new(source.unwrap_or(Ipv4Addr::UNSPECIFIED), port)))?;
        }
        let port = match kind {
            // Connected, the kernel hands over only what this address sends.
            Kind::Icmp { target } => {
                socket.connect(&SockAddr::from(SocketAddrV4::new(target, 0)))?;
                None
            }
            Kind::Udp { .. } => socket.local_addr()?.as_socket_ipv4().map(|address| address.port()),
        };
        Ok(Self { socket, port, buffer: vec![0; LONGEST] })
    }

    /// The local port of a UDP socket.
    pub fn udp_port(&self) -> Option<u16> {
        self.port
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// No route, no buffer, too long.
    pub fn send(&self, bytes: &[u8], target: (Ipv4Addr, u16)) -> io::Result<()> {
        match self.port {
            None => self.socket.send(bytes),
            Some(_) => self.socket.send_to(bytes, &SockAddr::from(SocketAddrV4::new(target.0, target.1))),
        }
        .map(drop)
    }

    /// Takes the next packet; `None` when there is none. Errors that ICMP messages leave on the socket are passed over.
    pub fn receive(&mut self) -> Option<Received> {
        loop {
            let (length, from, stamp) = match self.receive_message() {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EHOSTUNREACH | libc::ECONNREFUSED | libc::EINTR)) =>
                {
                    continue
                }
                Err(_) => return None,
            };
            let (source, port) = from;
            let bytes = &self.buffer[..length];
            let Some(own) = self.port else {
                let header = usize::from(bytes.first()? & 0x0f) * 4;
                let Some(message) = bytes.get(header..).filter(|m| m.len() >= 8) else { continue };
                let at = |n: usize| u16::from_be_bytes([message[n], message[n + 1]]);
                let key = Key::icmp(source, message[0], at(4), at(6));
                return Some(Received { from, bytes: message.to_vec(), stamp, key });
            };
            let key = Key::udp(source, port, own, bytes);
            return Some(Received { from, bytes: bytes.to_vec(), stamp, key });
        }
    }

    fn receive_message(&mut self) -> io::Result<(usize, (Ipv4Addr, u16), u64)> {
        let mut address = MaybeUninit::<libc::sockaddr_in>::zeroed();
        let mut vector = libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        // Aligned for the control message's header.
        let mut control = [0u64; 16];
        // SAFETY: all zeros is a valid empty msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = address.as_mut_ptr().cast();
        message.msg_namelen = std::mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = std::mem::size_of_val(&control) as _;
        // SAFETY: every pointer in `message` refers to live memory of the length that is given beside it.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, 0) };
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zeroed, which is valid, and perhaps overwritten by the kernel.
        let address = unsafe { address.assume_init() };
        let from = (Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)), u16::from_be(address.sin_port));
        let mut stamp = 0;
        // SAFETY: the macros walk the control messages that the kernel has written within `control`.
        unsafe {
            let mut each = libc::CMSG_FIRSTHDR(&raw const message);
            while !each.is_null() {
                if (*each).cmsg_level == libc::SOL_SOCKET && (*each).cmsg_type == libc::SCM_TIMESTAMPNS {
                    let time = libc::CMSG_DATA(each).cast::<libc::timespec>().read_unaligned();
                    stamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                }
                each = libc::CMSG_NXTHDR(&raw const message, each);
            }
        }
        let port = if self.port.is_some() { from.1 } else { 0 };
        Ok((length as usize, (from.0, port), stamp))
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
