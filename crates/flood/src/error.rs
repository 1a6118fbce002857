//! Errors, with messages for the user.

use std::net::{IpAddr, SocketAddr};

use netio::program_end::Failure;
use nix::errno::Errno;

/// Reason why a flood or its receiver failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A combination of options that makes no sense.
    #[error("{0}")]
    Options(String),
    /// The local address cannot be used.
    #[error("cannot use {0} as the local address: {reason}", reason = .1.desc())]
    Bind(SocketAddr, Errno),
    /// The destination cannot be reached at all.
    #[error("cannot send to {0}: {reason}", reason = .1.desc())]
    Destination(IpAddr, Errno),
    /// The datagrams would be fragmented.
    #[error(
        "found a size of {size} bytes, expected at most {mtu}, the MTU towards {destination}: \
         fragments would be lost one by one"
    )]
    Size {
        /// Asked for.
        size: u32,
        /// The MTU of the path.
        mtu: i32,
        /// Destination.
        destination: IpAddr,
    },
    /// A connection was not established.
    #[error("cannot connect to {0}: {reason}", reason = .1.desc())]
    Connect(SocketAddr, Errno),
    /// Another program answers.
    #[error("found more acknowledgements than the {0} pages, expected the other end to be `flood receive-pages`")]
    Acknowledgements(usize),
    /// The kernel lacks a congestion control algorithm.
    #[error(
        "cannot use the congestion control {0}: {reason}; expected one of \
         /proc/sys/net/ipv4/tcp_available_congestion_control",
        reason = .1.desc()
    )]
    Congestion(String, Errno),
    /// The first datagram was refused.
    #[error("cannot send the first datagram to {0}: {reason}", reason = .1.desc())]
    First(SocketAddr, Errno),
    /// The process may not receive datagrams to all ports.
    #[error(
        "receiving on any port needs a raw socket (CAP_NET_RAW): start as root, \
         or receive on one port with --port"
    )]
    Raw,
    /// Another refusal by the system.
    #[error("{0}: {reason}", reason = .1.desc())]
    System(&'static str, Errno),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Options(message) => Failure::Usage(message),
            error => Failure::Failed(error.to_string()),
        }
    }
}
