//! The network namespace in which the sockets of IP SLA are opened.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::thread;

use netio::socket::{Kind, Socket};

/// Where the sockets are opened.
#[derive(Debug)]
pub enum Namespace {
    /// In the daemon's own network namespace.
    Own,
    /// In this network namespace.
    Other(File),
    /// In none: there is no IP SLA.
    None,
}

impl Namespace {
    /// Opens a socket there.
    ///
    /// # Errors
    /// Those of [`Socket::open`], and of entering the namespace.
    pub fn open(&self, kind: Kind, source: Option<IpAddr>, tos: u8) -> io::Result<Socket> {
        match self {
            Namespace::Own => Socket::open(kind, source, tos),
            Namespace::None => Err(io::ErrorKind::Unsupported.into()),
            // A thread of its own goes there, so that the daemon stays where it is.
            Namespace::Other(namespace) => thread::scope(|scope| {
                let open = move || {
                    // SAFETY: no pointers; the descriptor is open as long as `self` is borrowed.
                    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
                        return Err(io::Error::last_os_error());
                    }
                    Socket::open(kind, source, tos)
                };
                scope.spawn(open).join().expect("opening does not panic")
            }),
        }
    }
}
