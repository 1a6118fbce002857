//! Raw ICMP and UDP sockets with the kernel's time stamps.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, RawFd};

use socket2::{Domain, Protocol, SockAddr, Type};

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
}

/// What a message from the kernel says.
struct Message {
    length: usize,
    from: (Ipv4Addr, u16),
    /// Receive stamp, wall clock in ns.
    received: u64,
    /// Stamp of a packet that left, wall clock in ns, and which one since stamps were asked for.
    left: Option<(u64, u32)>,
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
    /// Opens a socket.
    ///
    /// # Errors
    /// Those of the system calls; an address that the machine does not have, a port in use, no right to raw sockets.
    pub fn open(kind: Kind, source: Option<Ipv4Addr>, tos: u8) -> io::Result<Self> {
        let (socket, port) = match kind {
            Kind::Icmp { .. } => (socket2::Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?, 0),
            Kind::Udp { port } => (socket2::Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?, port),
        };
        socket.set_nonblocking(true)?;
        socket.set_tos_v4(u32::from(tos))?;
        set(&socket, libc::SO_TIMESTAMPNS, 1)?;
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

    /// Asks the kernel to stamp what is sent from now on, when the driver takes it; see [`left`](Self::left). Packets
    /// count from zero.
    ///
    /// # Errors
    /// A kernel that cannot do it.
    pub fn stamp_departures(&self) -> io::Result<()> {
        // The option that numbers packets starts again when it is set anew.
        set(&self.socket, libc::SO_TIMESTAMPING, 0)?;
        let flags = libc::SOF_TIMESTAMPING_TX_SOFTWARE
            | libc::SOF_TIMESTAMPING_SOFTWARE
            | libc::SOF_TIMESTAMPING_OPT_ID
            | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        set(&self.socket, libc::SO_TIMESTAMPING, flags)
    }

    /// Takes the stamp of the next packet that left: wall clock in ns, and the packet's number.
    pub fn left(&mut self) -> Option<(u64, u32)> {
        loop {
            match self.message(libc::MSG_ERRQUEUE) {
                Ok(Message { left: Some(left), .. }) => return Some(left),
                // Something else about a packet.
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Takes the next packet; `None` when there is none. Errors that ICMP messages leave on the socket are passed over.
    pub fn receive(&mut self) -> Option<Received> {
        loop {
            let Message { length, from, received: stamp, .. } = match self.message(0) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EHOSTUNREACH | libc::ECONNREFUSED | libc::EINTR)) =>
                {
                    continue
                }
                Err(_) => return None,
            };
            let bytes = &self.buffer[..length];
            if self.port.is_some() {
                return Some(Received { from, bytes: bytes.to_vec(), stamp });
            }
            let header = usize::from(bytes.first()? & 0x0f) * 4;
            let Some(message) = bytes.get(header..).filter(|m| m.len() >= 8) else { continue };
            return Some(Received { from: (from.0, 0), bytes: message.to_vec(), stamp });
        }
    }

    fn message(&mut self, flags: libc::c_int) -> io::Result<Message> {
        let mut address = MaybeUninit::<libc::sockaddr_in>::zeroed();
        let mut vector = libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        // Aligned for the control messages' headers.
        let mut control = [0u64; 32];
        // SAFETY: all zeros is a valid empty msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = address.as_mut_ptr().cast();
        message.msg_namelen = std::mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = std::mem::size_of_val(&control) as _;
        // SAFETY: every pointer in `message` refers to live memory of the length that is given beside it.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zeroed, which is valid, and perhaps overwritten by the kernel.
        let address = unsafe { address.assume_init() };
        let from = (Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)), u16::from_be(address.sin_port));
        let (mut received, mut stamped, mut number) = (0, None, None);
        // SAFETY: the macros walk the control messages that the kernel has written within `control`, and each is read
        // as what its level and type say.
        unsafe {
            let mut each = libc::CMSG_FIRSTHDR(&raw const message);
            while !each.is_null() {
                let data = libc::CMSG_DATA(each);
                match ((*each).cmsg_level, (*each).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => received = nanoseconds(data.cast()),
                    // The first of three stamps is the software's.
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => stamped = Some(nanoseconds(data.cast())),
                    (libc::IPPROTO_IP, libc::IP_RECVERR) => {
                        let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                        if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
                            number = Some(error.ee_data);
                        }
                    }
                    _ => {}
                }
                each = libc::CMSG_NXTHDR(&raw const message, each);
            }
        }
        Ok(Message { length: length as usize, from, received, left: stamped.zip(number) })
    }
}

/// Sets an option of a socket.
fn set(socket: &socket2::Socket, option: libc::c_int, value: libc::c_uint) -> io::Result<()> {
    let length = std::mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is readable and of the length that is given.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), length) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A stamp as one number.
///
/// # Safety
/// A whole `timespec` must be readable there.
unsafe fn nanoseconds(stamp: *const libc::timespec) -> u64 {
    // SAFETY: as the caller promises; it need not be aligned.
    let time = unsafe { stamp.read_unaligned() };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
