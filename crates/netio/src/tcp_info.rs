//! State of TCP connections in the kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::socket::set;

/// Values of a connection, from the kernel's `struct tcp_info` (include/uapi/linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Minimum round-trip time, microseconds; the kernel's greatest number before the first sample.
    pub min_rtt_us: u32,
    /// Retransmitted segments.
    pub retransmits: u32,
}

/// Offsets of the values in the structure, in bytes.
const MSS: usize = 16;
const RTT: usize = 68;
const RETRANSMITS: usize = 100;
const MIN_RTT: usize = 148;
/// Length of the structure up to the last of them; Linux 4.9 and later fill it.
const LENGTH: usize = 152;

/// Reads the values of a connection.
///
/// # Errors
/// The socket is not a TCP socket, or the kernel is older than Linux 4.9.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut info = [0u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: `info` is writable for `length` bytes, and the kernel writes no more.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < LENGTH {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel reports no minimum round-trip time"));
    }
    let number = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    Ok(TcpInfo {
        mss_bytes: number(MSS),
        rtt_us: number(RTT),
        min_rtt_us: number(MIN_RTT),
        retransmits: number(RETRANSMITS),
    })
}

/// Limits the unsent data of a connection in the kernel: a socket with more is not writable.
///
/// # Errors
/// The socket is not a TCP socket.
pub fn limit_unsent(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    set(&socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_loopback_connection_has_a_round_trip_and_a_segment_size() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        limit_unsent(&client, 131_072).unwrap();
        client.write_all(&[0; 100_000]).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.read_exact(&mut [0; 100_000]).unwrap();
        let info = tcp_info(&client).unwrap();
        assert!((500..65_536).contains(&info.mss_bytes), "{info:?}");
        assert!((1..1_000_000).contains(&info.rtt_us) && info.min_rtt_us <= info.rtt_us, "{info:?}");
        assert!(info.retransmits < 1000, "{info:?}");
    }

    #[test]
    fn a_socket_that_is_not_tcp_is_an_error() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(&socket).is_err());
        assert!(limit_unsent(&socket, 1).is_err());
    }
}
