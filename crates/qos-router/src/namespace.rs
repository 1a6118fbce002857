//! Network namespaces in which sockets are opened from outside: that of the router's own IP stack, and that of the
//! ports if one process runs several routers.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;

use netio::socket::{Kind, Socket};

/// Location of the router's IP stack, or of its ports.
#[derive(Clone, Debug)]
pub enum Namespace {
    /// A network namespace.
    Other(Arc<File>),
    /// No other namespace is known. For an IP stack: there is no IP SLA, and the kernel forwards all frames. For ports:
    /// they are in the namespace of the process.
    None,
}

impl Namespace {
    /// Moves this thread to the namespace permanently: its sockets then belong to the IP stack.
    ///
    /// # Errors
    /// Those of `setns`, usually a missing `CAP_SYS_ADMIN`; `Unsupported` where it is not known.
    pub fn enter(&self) -> io::Result<()> {
        let Namespace::Other(namespace) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        // SAFETY: no pointers; the descriptor is open as long as `self` is borrowed.
        match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Moves this thread to the namespace, if another one is known. For threads that serve several routers: code that
    /// depends on the namespace calls this first.
    ///
    /// # Errors
    /// Those of [`Self::enter`].
    pub fn visit(&self) -> io::Result<()> {
        match self {
            Namespace::Other(_) => self.enter(),
            Namespace::None => Ok(()),
        }
    }

    /// Returns the result of `open` in the namespace. A separate thread enters it, so that the caller's thread stays
    /// outside.
    ///
    /// # Errors
    /// Those of `open` and of [`Self::enter`].
    pub fn within<T: Send>(&self, open: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let inside = || {
            self.enter()?;
            open()
        };
        thread::scope(|scope| scope.spawn(inside).join().expect("opening does not panic"))
    }

    /// Opens a socket in the namespace.
    ///
    /// # Errors
    /// Those of [`Socket::open`] and of [`Self::within`].
    pub fn open(&self, kind: Kind, source: Option<IpAddr>, tos: u8) -> io::Result<Socket> {
        match self {
            Namespace::None => Err(io::ErrorKind::Unsupported.into()),
            Namespace::Other(_) => self.within(move || Socket::open(kind, source, tos)),
        }
    }
}
