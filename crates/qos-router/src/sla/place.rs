//! Where sockets are opened.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::thread;

use sla::{Kind, Socket};

/// Where the sockets are opened.
#[derive(Debug)]
pub enum Place {
    /// In the daemon's own network namespace.
    Here,
    /// In this network namespace.
    Namespace(File),
    /// Nowhere: there is no IP SLA.
    Nowhere,
}

impl Place {
    /// Opens a socket there.
    ///
    /// # Errors
    /// Those of [`Socket::open`], and of entering the namespace.
    pub fn open(&self, kind: Kind, source: Option<Ipv4Addr>, tos: u8) -> io::Result<Socket> {
        match self {
            Place::Here => Socket::open(kind, source, tos),
            Place::Nowhere => Err(io::ErrorKind::Unsupported.into()),
            // A thread of its own goes there, so that the daemon stays where it is.
            Place::Namespace(namespace) => thread::scope(|scope| {
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
