//! Waiting: readiness of descriptors (epoll) with a timeout in nanoseconds, and signals as a descriptor.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Most descriptors reported at a time; further ones are reported the next time.
const EVENTS: usize = 32;

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just returned by the kernel and is owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// An empty set. Also asks the kernel not to delay this thread's timers to save wake-ups.
    ///
    /// # Errors
    /// Those of `epoll_create1`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers. One nanosecond is the least slack; zero would mean the default of 50 microseconds.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
        // SAFETY: takes no pointers.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(|epoll| Self { epoll })
    }

    fn control(&self, op: libc::c_int, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` is valid for the call.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), op, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Adds a descriptor, to be reported as `token` while it can be read.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn add(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, token)
    }

    /// Changes what a descriptor is reported for.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn change(&self, fd: RawFd, token: u64, read: bool, write: bool) -> io::Result<()> {
        let events = if read { libc::EPOLLIN as u32 } else { 0 } | if write { libc::EPOLLOUT as u32 } else { 0 };
        self.control(libc::EPOLL_CTL_MOD, fd, events, token)
    }

    /// Waits until a descriptor is ready or `timeout_ns` have passed (`None`: for ever) and puts the ready ones' tokens into `tokens`.
    /// A signal that interrupts the wait ends it early.
    pub fn wait(&self, timeout_ns: Option<u64>, tokens: &mut Vec<u64>) {
        tokens.clear();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let timeout = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` has room for EVENTS entries, `timeout` is null or valid, and there is no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let count = usize::try_from(count).unwrap_or(0);
        tokens.extend(events[..count].iter().map(|e| e.u64));
    }
}

/// A descriptor that can be read when SIGTERM or SIGINT has arrived. They no longer end the process themselves.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
}

impl Signals {
    /// Takes over the two signals. Call before any thread is started.
    ///
    /// # Errors
    /// Those of `signalfd`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the set is initialised by sigemptyset before use, and every pointer is valid for its call.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            owned(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
        }
        .map(|descriptor| Self { descriptor })
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    #[test]
    fn a_timeout_is_kept() {
        let poller = Poller::new().unwrap();
        let start = Instant::now();
        poller.wait(Some(2_000_000), &mut Vec::new());
        assert!(start.elapsed() >= Duration::from_millis(2));
    }

    #[test]
    fn a_ready_descriptor_is_reported() {
        let poller = Poller::new().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        poller.add(ours.as_raw_fd(), 7).unwrap();
        let mut tokens = Vec::new();
        poller.wait(Some(0), &mut tokens);
        assert!(tokens.is_empty());
        theirs.write_all(b"x").unwrap();
        poller.wait(None, &mut tokens);
        assert_eq!(tokens, [7]);
    }
}
