//! The system's clocks in nanoseconds.

/// Returns the monotonic time.
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the wall-clock time since 1970, with which the kernel stamps packets too.
pub fn wall() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; both clocks always exist on Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
