//! Kernel notifications about the interfaces that stand for links in memory.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use netlink_packet_core::ParseableParametrized;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::Socket;

use super::link_end::WireState;
use crate::forwarding::netlink::{dump, messages, monitor, DATAGRAM, LINKS};

/// The group of `linux/rtnetlink.h` for notifications about interfaces.
const LINK_GROUP: u32 = 1;
/// Bytes of messages that may wait.
const BUFFER: usize = 1 << 20;

/// Subscription to notifications about the interfaces that stand for links.
#[derive(Debug)]
pub(super) struct Faces {
    socket: Socket,
    datagram: Vec<u8>,
}

impl Faces {
    /// Returns the descriptor that is readable when there are notifications.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Subscribes to notifications about the interfaces of this thread's namespace.
    pub fn open() -> io::Result<Self> {
        Ok(Self { socket: monitor(NETLINK_ROUTE, LINK_GROUP, BUFFER)?.0, datagram: Vec::with_capacity(DATAGRAM) })
    }

    /// Calls `each` with the number and the state of interfaces that have changed. Returns false if notifications were
    /// lost.
    pub fn news(&mut self, mut each: impl FnMut(u32, WireState)) -> bool {
        loop {
            self.datagram.clear();
            match self.socket.recv(&mut self.datagram, 0) {
                Ok(_) => messages(&self.datagram).for_each(|(header, body)| read(header.message_type, body, &mut each)),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }
}

/// Reads a message about an interface.
fn read(kind: u16, body: &[u8], each: &mut impl FnMut(u32, WireState)) {
    match RouteNetlinkMessage::parse_with_param(body, kind) {
        Ok(RouteNetlinkMessage::NewLink(link)) => {
            let listeners = link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Promiscuity(count) => Some(*count),
                _ => None,
            });
            let up = link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp);
            each(link.header.index, WireState { up, captured: listeners.unwrap_or(0) > 0 });
        }
        Ok(RouteNetlinkMessage::DelLink(link)) => each(link.header.index, WireState::default()),
        _ => {}
    }
}

/// Calls `each` with all interfaces of this thread's namespace.
pub(super) fn read_states(mut each: impl FnMut(u32, WireState)) -> io::Result<()> {
    dump(NETLINK_ROUTE, LINKS, |kind, body| read(kind, body, &mut each))
}
