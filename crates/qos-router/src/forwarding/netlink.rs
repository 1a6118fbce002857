//! Netlink sockets: requests for all objects of a kind, and the messages in received data.

use std::io;

use netlink_packet_core::{
    Emitable, ErrorBuffer, ErrorMessage, NetlinkBuffer, NetlinkHeader, Parseable, NLMSG_DONE, NLMSG_ERROR, NLM_F_DUMP,
    NLM_F_REQUEST,
};
use netlink_sys::{Socket, SocketAddr};

/// Buffer for one message of the kernel: dumps come in pieces of at most 32 KiB.
pub const DATAGRAM: usize = 64 * 1024;

/// All interfaces.
pub const LINKS: Request = Request { kind: libc::RTM_GETLINK, family: 0, length: 16 };

/// Request for all objects of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Type of the message.
    pub kind: u16,
    /// First byte after the header, usually the family; followed by zeros.
    pub family: u8,
    /// Number of bytes after the header.
    pub length: usize,
}

impl Request {
    /// Sends the request.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn send(self, socket: &Socket, sequence: u32) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        let mut bytes = vec![0; header.buffer_len() + self.length];
        header.length = bytes.len() as u32;
        header.message_type = self.kind;
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        header.sequence_number = sequence;
        header.emit(&mut bytes);
        if let Some(family) = bytes.get_mut(header.buffer_len()) {
            *family = self.family;
        }
        socket.send_to(&bytes, &SocketAddr::new(0, 0), 0).map(drop)
    }
}

/// Returns the messages of a datagram: header and body of each. A damaged message ends the list.
pub fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (NetlinkHeader, &[u8])> {
    const ALIGNMENT: usize = 4;
    std::iter::from_fn(move || {
        let buffer = NetlinkBuffer::new_checked(datagram).ok()?;
        let (header, body) = (NetlinkHeader::parse(&NetlinkBuffer::new(datagram)).ok()?, buffer.payload());
        let next = (header.length as usize).next_multiple_of(ALIGNMENT);
        datagram = datagram.get(next..).unwrap_or(&[]);
        Some((header, body))
    })
}

/// Returns the error in a message of the type `NLMSG_ERROR`.
fn error(body: &[u8]) -> Option<io::Error> {
    let code = ErrorBuffer::new_checked(&body).ok().and_then(|buffer| ErrorMessage::parse(&buffer).ok())?.code?;
    Some(io::Error::from_raw_os_error(code.get().saturating_neg()))
}

/// Requests all objects of a kind and waits for them: calls `each` with the type and body of every message.
///
/// # Errors
/// Those of the system calls, and errors in the kernel's answer.
pub fn dump(protocol: isize, request: Request, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
    const SEQUENCE: u32 = 1;
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    request.send(&socket, SEQUENCE)?;
    let mut datagram = Vec::with_capacity(DATAGRAM);
    loop {
        datagram.clear();
        socket.recv(&mut datagram, 0)?;
        for (header, body) in messages(&datagram).filter(|(header, _)| header.sequence_number == SEQUENCE) {
            match header.message_type {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => return error(body).map_or(Ok(()), Err),
                kind => each(kind, body),
            }
        }
    }
}

/// Opens a non-blocking socket that receives notifications of these groups (the bits of `linux/rtnetlink.h`); returns
/// it and the kernel's number for it.
///
/// # Errors
/// Those of the system calls.
pub fn monitor(protocol: isize, groups: u32, buffer: usize) -> io::Result<(Socket, u32)> {
    let mut socket = Socket::new(protocol)?;
    socket.bind(&SocketAddr::new(0, groups))?;
    let mut address = SocketAddr::new(0, 0);
    socket.get_address(&mut address)?;
    socket.set_non_blocking(true)?;
    // The kernel limits this silently to net.core.rmem_max; an overrun is counted when it happens.
    socket.set_rx_buf_sz(buffer as libc::c_int)?;
    Ok((socket, address.port_number()))
}
