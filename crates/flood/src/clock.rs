//! The monotonic clock, and waiting for a moment of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

const SECOND: u64 = 1_000_000_000;
/// A signal that comes just before a wait does not end it, so no wait is longer than this.
pub const PATIENCE_NS: u64 = SECOND / 5;

/// Monotonic time in nanoseconds.
pub fn now() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Wall-clock time in nanoseconds since 1970, which the kernel stamps arrivals with too.
pub fn wall() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

fn read(clock: ClockId) -> u64 {
    nanoseconds(clock_gettime(clock).expect("Linux has this clock"))
}

/// A time as one number.
pub fn nanoseconds(time: TimeSpec) -> u64 {
    time.tv_sec() as u64 * SECOND + time.tv_nsec() as u64
}

/// Waits until about `deadline`: asleep, but for the last `spin_ns`, which are spent looking at the clock. May end early.
pub fn wait_until(deadline: u64, spin_ns: u64) {
    let now_ns = now();
    let wake = deadline.saturating_sub(spin_ns);
    if wake > now_ns {
        let wake = wake.min(now_ns + PATIENCE_NS);
        let time = TimeSpec::new((wake / SECOND) as i64, (wake % SECOND) as i64);
        match clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &time) {
            Ok(_) => {}
            Err(Errno::EINTR) => return,
            Err(errno) => unreachable!("clock_nanosleep refuses a valid time: {errno}"),
        }
    }
    if deadline.saturating_sub(now()) <= spin_ns {
        while now() < deadline {
            std::hint::spin_loop();
        }
    }
}

/// Becomes true with SIGINT or SIGTERM.
#[derive(Debug, Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over the two signals.
    pub fn on_signals() -> std::io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// Whether to end now.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
