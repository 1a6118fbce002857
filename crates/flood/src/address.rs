//! Conversion of addresses of both families from and to those of system calls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::sys::socket::{AddressFamily, SockaddrStorage};

/// Returns the family of sockets for an address.
pub fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Returns every local address of an address's family.
pub fn unspecified(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Returns the address from a system call; none for another address family.
pub fn peer(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|found| SocketAddr::from((found.ip(), found.port())));
    v4.or_else(|| storage.as_sockaddr_in6().map(|found| SocketAddr::from((found.ip(), found.port()))))
}
