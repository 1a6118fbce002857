//! Closes packet sockets without waiting for the kernel.
//!
//! The kernel delays a thread that closes a packet socket until no processor can be using it, twice for a socket with a
//! ring: 20 to 30 ms on an idle machine. A descriptor in transit in a message that cannot be received any more is
//! closed by the kernel itself (unix(7), SCM_RIGHTS), so no thread waits.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of sockets left to the kernel, which closes them one after another. Further ones are closed at once
/// and in parallel, so that their memory is soon free.
const MOST: usize = 16;

static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Closes a packet socket, usually after this function has returned.
pub(crate) fn close_later(socket: OwnedFd) {
    if LEFT.fetch_add(1, Ordering::Relaxed) < MOST {
        // If it fails nothing is lost: the socket is closed here.
        let _ = leave(socket);
    }
}

/// Sends a socket, together with the receiving end, to that end of a socket pair, and closes both ends.
fn leave(socket: OwnedFd) -> io::Result<()> {
    let (near, far) = UnixDatagram::pair()?;
    send(&far, [socket.as_raw_fd(), near.as_raw_fd()])?;
    drop(socket);
    drop(near);
    // When an end is closed, the kernel searches for sockets that nobody can receive, so this end is closed last.
    drop(far);
    Ok(())
}

fn send(over: &UnixDatagram, descriptors: [RawFd; 2]) -> io::Result<()> {
    let mut byte = [0u8];
    let mut vector = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
    // Aligned for headers of ancillary data, and larger than needed.
    let mut control = [0u64; 8];
    let length = size_of::<[RawFd; 2]>() as libc::c_uint;
    // SAFETY: all zeros is a valid empty msghdr; `control` has room for the header and two descriptors, which are
    // written unaligned; the message refers to live data.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(length) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(length) as _;
        libc::CMSG_DATA(header).cast::<[RawFd; 2]>().write_unaligned(descriptors);
        libc::sendmsg(over.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn descriptors_left_to_the_kernel_are_closed() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        leave(ours.into()).unwrap();
        // The end of the stream comes when its other end is closed.
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
    }
}
