//! Raw ICMP and UDP sockets with the kernel's time stamps.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};

use socket2::{Domain, MsgHdr, Protocol, Type};

/// Longest IP packet.
const LONGEST: usize = 65_535;
/// Errors that are ignored: those caused by ICMP messages about sent packets, and an interrupting signal.
const PASSED_OVER: [i32; 5] = [libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ECONNREFUSED, libc::EACCES, libc::EINTR];

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Returns the address family of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the unspecified address, which stands for any address of the machine.
    fn unspecified(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Self::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    fn domain(self) -> Domain {
        match self {
            Self::V4 => Domain::IPV4,
            Self::V6 => Domain::IPV6,
        }
    }
}

/// Kind of socket to open.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// ICMP or ICMPv6 with one other address.
    Icmp {
        /// The other end.
        target: IpAddr,
    },
    /// UDP with any address of one family.
    Udp {
        /// The version of IP.
        family: Family,
        /// Local port; any if 0.
        port: u16,
    },
}

impl Kind {
    /// Returns the version of IP.
    pub fn family(self) -> Family {
        match self {
            Self::Icmp { target } => Family::of(target),
            Self::Udp { family, .. } => family,
        }
    }
}

/// Returns whether a socket could not be opened because the machine does not support this IP version.
pub fn lacks_family(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

/// A packet that was received.
#[derive(Debug)]
pub struct Received {
    /// Sender; the port is 0 for ICMP.
    pub from: (IpAddr, u16),
    /// UDP: the local address to which the packet was sent.
    pub to: Option<IpAddr>,
    /// ICMP message or UDP payload.
    pub bytes: Vec<u8>,
    /// The kernel's receive stamp, wall clock in ns.
    pub stamp: u64,
}

/// Contents of a message from the kernel.
struct Message {
    length: usize,
    /// Sender; none for a departure stamp.
    from: Option<(IpAddr, u16)>,
    to: Option<IpAddr>,
    /// Receive stamp, wall clock in ns.
    received: u64,
    /// Departure stamp of a packet, wall clock in ns, and its number since stamps were requested.
    left: Option<(u64, u32)>,
}

/// A non-blocking socket.
#[derive(Debug)]
pub struct Socket {
    socket: socket2::Socket,
    family: Family,
    /// Local port of UDP.
    port: Option<u16>,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket.
    ///
    /// # Errors
    /// Errors of the system calls: an address that the machine lacks, a port in use, no permission for raw sockets.
    pub fn open(kind: Kind, source: Option<IpAddr>, tos: u8) -> io::Result<Self> {
        let family = kind.family();
        let (r#type, protocol, port) = match (kind, family) {
            (Kind::Icmp { .. }, Family::V4) => (Type::RAW, Protocol::ICMPV4, 0),
            (Kind::Icmp { .. }, Family::V6) => (Type::RAW, Protocol::ICMPV6, 0),
            (Kind::Udp { port, .. }, _) => (Type::DGRAM, Protocol::UDP, port),
        };
        let socket = socket2::Socket::new(family.domain(), r#type, Some(protocol))?;
        socket.set_nonblocking(true)?;
        match family {
            Family::V4 => socket.set_tos_v4(u32::from(tos))?,
            Family::V6 => {
                // The protocol of a raw socket determines its IP version, and it refuses the option.
                if matches!(kind, Kind::Udp { .. }) {
                    socket.set_only_v6(true)?;
                }
                socket.set_tclass_v6(u32::from(tos))?;
            }
        }
        set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        match kind {
            Kind::Udp { family: Family::V4, .. } => set(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?,
            Kind::Udp { family: Family::V6, .. } => set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?,
            Kind::Icmp { .. } => {}
        }
        if let (Kind::Udp { .. }, _) | (_, Some(_)) = (kind, source) {
            socket.bind(&SocketAddr::new(source.unwrap_or(family.unspecified()), port).into())?;
        }
        let port = match kind {
            // Once connected, the kernel delivers only packets from this address.
            Kind::Icmp { target } => {
                socket.connect(&SocketAddr::new(target, 0).into())?;
                None
            }
            Kind::Udp { .. } => socket.local_addr()?.as_socket().map(|address| address.port()),
        };
        Ok(Self { socket, family, port, buffer: vec![0; LONGEST] })
    }

    /// Returns the version of IP.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the local port of a UDP socket.
    pub fn udp_port(&self) -> Option<u16> {
        self.port
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// No route, no buffer, too long.
    pub fn send(&self, bytes: &[u8], target: (IpAddr, u16)) -> io::Result<()> {
        match self.port {
            None => self.socket.send(bytes),
            Some(_) => self.socket.send_to(bytes, &SocketAddr::from(target).into()),
        }
        .map(drop)
    }

    /// Answers a UDP packet from the address to which it was sent. On a machine with several addresses, the client
    /// accepts an answer only from that address.
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    pub fn answer(&self, bytes: &[u8], target: (IpAddr, u16), own: Option<IpAddr>) -> io::Result<()> {
        let Some(own) = own else { return self.send(bytes, target) };
        let control = source(own);
        let address = SocketAddr::from(target).into();
        let buffers = [io::IoSlice::new(bytes)];
        let message = MsgHdr::new().with_addr(&address).with_buffers(&buffers).with_control(&control);
        self.socket.sendmsg(&message, 0).map(drop)
    }

    /// Requests kernel stamps for packets sent from now on, taken by the driver; see
    /// [`next_departure`](Self::next_departure). Packets are numbered from zero.
    ///
    /// # Errors
    /// A kernel that cannot do it.
    pub fn stamp_departures(&self) -> io::Result<()> {
        // The option that numbers packets restarts the count when it is set again.
        set(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0)?;
        let flags = libc::SOF_TIMESTAMPING_TX_SOFTWARE
            | libc::SOF_TIMESTAMPING_SOFTWARE
            | libc::SOF_TIMESTAMPING_OPT_ID
            | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        set(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags)
    }

    /// Takes the stamp of the next packet that left: wall clock in ns, and the packet's number.
    pub fn next_departure(&mut self) -> Option<(u64, u32)> {
        loop {
            match self.message(libc::MSG_ERRQUEUE) {
                Ok(Message { left: Some(left), .. }) => return Some(left),
                // Other ancillary data of a packet.
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Takes the next packet; `None` when there is none. Errors left on the socket by ICMP messages are ignored.
    pub fn receive(&mut self) -> Option<Received> {
        loop {
            let Message { length, from, to, received: stamp, .. } = match self.message(0) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.raw_os_error().is_some_and(|number| PASSED_OVER.contains(&number)) => continue,
                Err(_) => return None,
            };
            let Some(from) = from else { continue };
            let bytes = &self.buffer[..length];
            if self.port.is_some() {
                return Some(Received { from, to, bytes: bytes.to_vec(), stamp });
            }
            // A raw socket of IPv4 hands over the IP header, one of IPv6 does not.
            let header = match self.family {
                Family::V4 => usize::from(bytes.first().map_or(0, |first| first & 0x0f)) * 4,
                Family::V6 => 0,
            };
            let Some(message) = bytes.get(header..).filter(|m| m.len() >= 8) else { continue };
            return Some(Received { from: (from.0, 0), to: None, bytes: message.to_vec(), stamp });
        }
    }

    fn message(&mut self, flags: libc::c_int) -> io::Result<Message> {
        let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut vector = libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
        // Aligned for the control messages' headers.
        let mut control = [0u64; 32];
        // SAFETY: all zeros is a valid empty msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = address.as_mut_ptr().cast();
        message.msg_namelen = std::mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = std::mem::size_of_val(&control) as _;
        // SAFETY: every pointer in `message` refers to live memory of the length given with it.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zeroed, which is valid, and perhaps overwritten by the kernel.
        let address = unsafe { address.assume_init() };
        let from = peer(&address);
        let (mut received, mut stamped, mut number, mut to) = (0, None, None, None);
        // SAFETY: the macros walk the control messages that the kernel has written within `control`, and each is read
        // as the type that its level and type number name.
        unsafe {
            let mut each = libc::CMSG_FIRSTHDR(&raw const message);
            while !each.is_null() {
                let data = libc::CMSG_DATA(each);
                match ((*each).cmsg_level, (*each).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => received = nanoseconds(data.cast()),
                    // The first of the three stamps is the software stamp.
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => stamped = Some(nanoseconds(data.cast())),
                    (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                        let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                        if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
                            number = Some(error.ee_data);
                        }
                    }
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                        let found = data.cast::<libc::in_pktinfo>().read_unaligned();
                        to = Some(Ipv4Addr::from(u32::from_be(found.ipi_spec_dst.s_addr)).into());
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                        let found = data.cast::<libc::in6_pktinfo>().read_unaligned();
                        to = Some(Ipv6Addr::from(found.ipi6_addr.s6_addr).into());
                    }
                    _ => {}
                }
                each = libc::CMSG_NXTHDR(&raw const message, each);
            }
        }
        Ok(Message { length: length as usize, from, to, received, left: stamped.zip(number) })
    }
}

/// Returns the control message that sets the source address of a packet.
fn source(own: IpAddr) -> Vec<u8> {
    fn message<T>(level: libc::c_int, kind: libc::c_int, data: &T) -> Vec<u8> {
        let length = std::mem::size_of::<T>() as libc::c_uint;
        // SAFETY: pure arithmetic.
        let (space, filled) = unsafe { (libc::CMSG_SPACE(length), libc::CMSG_LEN(length)) };
        let mut bytes = vec![0; space as usize];
        // SAFETY: all zeros is a valid header.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = filled as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        let begin = (filled - length) as usize;
        // SAFETY: `bytes` has room for the header and, from `begin` on, for the data, aligned or not.
        unsafe {
            bytes.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header);
            bytes[begin..].as_mut_ptr().cast::<T>().copy_from_nonoverlapping(data, 1);
        }
        bytes
    }
    match own {
        IpAddr::V4(own) => {
            let own = libc::in_addr { s_addr: u32::from(own).to_be() };
            let any = libc::in_addr { s_addr: 0 };
            let data = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: own, ipi_addr: any };
            message(libc::IPPROTO_IP, libc::IP_PKTINFO, &data)
        }
        IpAddr::V6(own) => {
            let data = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: own.octets() }, ipi6_ifindex: 0 };
            message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data)
        }
    }
}

/// Returns the address and port; none if the kernel wrote none.
fn peer(storage: &libc::sockaddr_storage) -> Option<(IpAddr, u16)> {
    let at = &raw const *storage;
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage is aligned for any address, as long as the longest one, and its family says that it
            // has this type.
            let found = unsafe { &*at.cast::<libc::sockaddr_in>() };
            Some((Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr)).into(), u16::from_be(found.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let found = unsafe { &*at.cast::<libc::sockaddr_in6>() };
            Some((Ipv6Addr::from(found.sin6_addr.s6_addr).into(), u16::from_be(found.sin6_port)))
        }
        _ => None,
    }
}

/// Sets an option of a socket.
pub(crate) fn set(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_uint,
) -> io::Result<()> {
    let length = std::mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is readable and has the given length.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns a stamp as one number.
///
/// # Safety
/// A complete `timespec` must be readable at this address.
unsafe fn nanoseconds(stamp: *const libc::timespec) -> u64 {
    // SAFETY: guaranteed by the caller; it need not be aligned.
    let time = unsafe { stamp.read_unaligned() };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
