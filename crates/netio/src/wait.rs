//! Waiting for descriptors with a timeout in nanoseconds, for signals through a descriptor, and for points in time.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::clock::monotonic;

/// Event for which a descriptor is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// Readable.
    pub read: bool,
    /// Writable.
    pub write: bool,
}

impl Interest {
    /// Adds a descriptor to watch until it is readable.
    pub const READ: Self = Self { read: true, write: false };
}

/// Descriptors to watch, each with a token. It is filled before each wait.
///
/// This is ppoll(2): unlike epoll(7), it causes no wake-up per frame while no thread waits.
#[derive(Debug)]
pub struct Waiter<T> {
    descriptors: Vec<libc::pollfd>,
    tokens: Vec<T>,
}

impl<T> Default for Waiter<T> {
    fn default() -> Self {
        Self { descriptors: Vec::new(), tokens: Vec::new() }
    }
}

impl<T: Copy> Waiter<T> {
    /// Empties the set.
    pub fn clear(&mut self) {
        self.descriptors.clear();
        self.tokens.clear();
    }

    /// Adds a descriptor. Without an event to wait for, it is reported when its other end is gone.
    pub fn add(&mut self, fd: RawFd, interest: Interest, token: T) {
        let events = if interest.read { libc::POLLIN } else { 0 } | if interest.write { libc::POLLOUT } else { 0 };
        self.descriptors.push(libc::pollfd { fd, events, revents: 0 });
        self.tokens.push(token);
    }

    /// Waits until a descriptor is ready or `timeout_ns` have passed (`None`: for ever). A signal that interrupts the
    /// wait ends it early.
    pub fn wait(&mut self, timeout_ns: Option<u64>) {
        let timeout = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let count = self.descriptors.len() as libc::nfds_t;
        // SAFETY: `descriptors` has `count` entries, `timeout` is null or valid, and there is no signal mask.
        let ready = unsafe { libc::ppoll(self.descriptors.as_mut_ptr(), count, timeout, std::ptr::null()) };
        if ready < 0 {
            // The events after a failure are meaningless.
            self.descriptors.iter_mut().for_each(|d| d.revents = 0);
        }
    }

    /// Returns the tokens of the descriptors that the last wait found ready, and whether the descriptor is broken or
    /// its other end gone.
    pub fn ready(&self) -> impl Iterator<Item = (T, bool)> + '_ {
        const BROKEN: libc::c_short = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        let found = self.descriptors.iter().map(|d| d.revents).zip(&self.tokens);
        found.filter_map(|(found, token)| (found != 0).then_some((*token, found & BROKEN != 0)))
    }
}

/// Shortest time slice that the kernel's scheduler accepts, ns.
const SLICE_NS: u64 = 100_000;

/// Asks the kernel for punctual wake-ups: timers that are not delayed to save power, and short time slices, with which
/// the scheduler (EEVDF, Linux 6.12 and later) lets this thread run soon after it wakes up. Neither needs a privilege.
/// A kernel without slices is less punctual, which `health` reports.
pub fn be_punctual() {
    // SAFETY: all zeros is valid, and the sizes are right.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = std::mem::size_of_val(&attributes) as u32;
    // SAFETY: the calls take no pointers except to `attributes`, which is valid. One nanosecond is the minimum timer
    // slack; zero would mean the default of 50 microseconds.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, attributes.size, 0) == 0 {
            attributes.sched_runtime = SLICE_NS;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}

/// A descriptor that can be read when SIGTERM or SIGINT has arrived. These signals then no longer end the process.
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
        // SAFETY: the set is initialised by sigemptyset before use, every pointer is valid for its call, and the
        // descriptor was just returned by the kernel and is owned by nobody else.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { descriptor: OwnedFd::from_raw_fd(fd) })
        }
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Waits for a signal, for one more descriptor or until a time, whichever comes first.
#[derive(Debug)]
pub struct Stop {
    signals: Signals,
    waiter: Waiter<bool>,
    requested: bool,
}

impl Stop {
    /// Takes over the signals; see [`Signals::new`].
    ///
    /// # Errors
    /// Those of `signalfd`.
    pub fn on_signals() -> io::Result<Self> {
        Ok(Self { signals: Signals::new()?, waiter: Waiter::default(), requested: false })
    }

    /// Returns whether a signal has arrived, according to the last wait.
    pub fn is_requested(&self) -> bool {
        self.requested
    }

    /// Sleeps until a descriptor is readable, `timeout_ns` have passed (`None`: without limit) or a signal arrives;
    /// returns whether a signal has arrived.
    pub fn wait(&mut self, descriptors: impl IntoIterator<Item = RawFd>, timeout_ns: Option<u64>) -> bool {
        self.wait_for(descriptors.into_iter().map(|descriptor| (descriptor, Interest::READ)), timeout_ns)
    }

    /// Sleeps like [`Stop::wait`], until one of the events of a descriptor.
    pub fn wait_for(
        &mut self,
        descriptors: impl IntoIterator<Item = (RawFd, Interest)>,
        timeout_ns: Option<u64>,
    ) -> bool {
        self.waiter.clear();
        self.waiter.add(self.signals.as_raw_fd(), Interest::READ, true);
        for (descriptor, interest) in descriptors {
            self.waiter.add(descriptor, interest, false);
        }
        self.waiter.wait(timeout_ns);
        self.requested |= self.waiter.ready().any(|(signal, _)| signal);
        self.requested
    }

    /// Waits until about `deadline` of the monotonic clock: asleep, except for the last `spin_ns`, in which it polls
    /// the clock. Can end early, for example on a signal.
    pub fn wait_until(&mut self, deadline: u64, spin_ns: u64) {
        let left = deadline.saturating_sub(monotonic());
        if left > spin_ns && self.wait([], Some(left - spin_ns)) {
            return;
        }
        // An interrupted wait is not extended by spinning.
        while (1..=spin_ns).contains(&deadline.saturating_sub(monotonic())) {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    #[test]
    fn a_timeout_is_respected() {
        let start = Instant::now();
        Waiter::<()>::default().wait(Some(2_000_000));
        assert!(start.elapsed() >= Duration::from_millis(2));
    }

    #[test]
    fn a_ready_descriptor_is_reported() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (other, _kept) = UnixStream::pair().unwrap();
        let mut waiter = Waiter::default();
        waiter.add(other.as_raw_fd(), Interest::READ, 6);
        waiter.add(ours.as_raw_fd(), Interest::READ, 7);
        waiter.wait(Some(0));
        assert_eq!(waiter.ready().count(), 0);
        theirs.write_all(b"x").unwrap();
        waiter.wait(None);
        assert_eq!(waiter.ready().collect::<Vec<_>>(), [(7, false)]);
        drop(theirs);
        waiter.wait(None);
        assert_eq!(waiter.ready().collect::<Vec<_>>(), [(7, true)]);
    }
}
