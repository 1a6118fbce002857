//! The daemon: opens everything, then waits, passes frames and answers requests until it is told to stop.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::control::Control;
use crate::dataplane::{Dataplane, StartError};
use crate::ports::{self, WiringError};
use crate::requests::{refusal, Refusal, Service};
use crate::sla::Place;
use waiting::{be_punctual, Interest, Signals, Waiter};

/// How long before a departure the daemon stops sleeping and waits actively, at least; it learns how long the kernel takes to wake it up.
pub const DEFAULT_SPIN_NS: u64 = 30_000;

/// How many times the least time the daemon may come to wait actively.
const MOST_SPIN: u64 = 5;

/// By how much the learnt time changes after a sleep.
const STEP_NS: u64 = 2_000;

/// Time before a departure from which the daemon waits actively: the 75th percentile of how late the kernel has woken it up, and the
/// least time on top. A processor that was idle takes longer to wake up than one that was not, and machines differ. An outlier, as on a busy
/// machine, counts as one that is too long and no more.
#[derive(Debug)]
struct Spin {
    least_ns: u64,
    ns: u64,
}

impl Spin {
    /// Starts with the least time; zero stays zero.
    fn new(least_ns: u64) -> Self {
        Self { least_ns, ns: least_ns }
    }

    /// A sleep ended so late.
    fn learn(&mut self, late_ns: u64) {
        let typical = self.ns - self.least_ns;
        let typical = if late_ns > typical { typical + 3 * STEP_NS } else { typical.saturating_sub(STEP_NS) };
        self.ns = self.least_ns + typical.min((MOST_SPIN - 1) * self.least_ns);
    }
}

/// While frames keep it busy, the control socket and signals are looked at this often.
const CONTROL_EVERY_NS: u64 = 1_000_000;

/// Who has something to do.
#[derive(Debug, Clone, Copy)]
enum Token {
    Ring,
    Sla,
    Signal,
    Listener,
    Connection(usize),
}

/// What the daemon is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The router's name.
    pub name: String,
    /// The wiring file.
    pub ports: PathBuf,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Lateness beyond which departures are counted apart, ns.
    pub budget_ns: u64,
    /// Time of shortest frames at the link's rate for which the receive rings have room, ns.
    pub ring_ns: u64,
    /// Least time before a departure from which the daemon waits actively, ns.
    pub spin_ns: u64,
    /// Network namespace of the router's IP stack, for IP SLA.
    pub kernel_netns: Option<PathBuf>,
}

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The wiring file.
    #[error(transparent)]
    Wiring(#[from] WiringError),
    /// The ports.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The control socket.
    #[error("cannot listen at {path}: {source}; choose another path with --control, or stop what listens there")]
    Control {
        /// The path as given.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The namespace of the IP stack.
    #[error("cannot open the network namespace {path}: {source}; give the path of one with --kernel-netns")]
    Namespace {
        /// The path as given.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Anything else of the system.
    #[error("cannot wait for events: {0}")]
    Events(#[from] io::Error),
}

/// Runs until SIGTERM, SIGINT or a `shutdown` request.
///
/// # Errors
/// When it cannot start. Afterwards nothing is an error: what goes wrong is counted and reported by `health`.
pub fn run(options: &Options) -> Result<(), DaemonError> {
    let signals = Signals::new()?;
    let wiring = ports::load(&options.ports)?;
    let place = match &options.kernel_netns {
        None => Place::Nowhere,
        Some(path) => Place::Namespace(
            File::open(path).map_err(|source| DaemonError::Namespace { path: path.display().to_string(), source })?,
        ),
    };
    let plane = Dataplane::open(&wiring, options.ring_ns, options.budget_ns, place)?;
    let control = listen(&options.control)?;
    be_punctual();
    let service = Service::new(options.name.clone(), plane);
    Daemon { service, control, signals, waiter: Waiter::default(), spin: Spin::new(options.spin_ns) }.serve();
    Ok(())
}

fn listen(path: &Path) -> Result<Control, DaemonError> {
    Control::listen(path).map_err(|source| DaemonError::Control { path: path.display().to_string(), source })
}

struct Daemon {
    service: Service,
    control: Control,
    signals: Signals,
    waiter: Waiter<Token>,
    spin: Spin,
}

impl Daemon {
    fn serve(mut self) {
        let mut looked = self.service.plane.now();
        while !self.service.stopping {
            self.service.plane.round();
            let timeout = self.idle_for();
            let now = self.service.plane.now();
            if timeout == Some(0) && now.since(looked).0 < CONTROL_EVERY_NS {
                continue;
            }
            looked = now;
            self.wait(timeout);
            if let Some(asked) = timeout.filter(|&ns| ns > 0) {
                if self.waiter.ready().next().is_none() {
                    let slept = self.service.plane.now().since(now).0;
                    self.spin.learn(slept.saturating_sub(asked));
                }
            }
            self.attend();
        }
        self.service.plane.close();
    }

    /// How long to sleep: 0 to go on at once. Waits actively for a departure that is near.
    fn idle_for(&self) -> Option<u64> {
        let plane = &self.service.plane;
        if plane.ready() {
            return Some(0);
        }
        let deadline = plane.deadline()?;
        let left = deadline.since(plane.now()).0;
        if left > self.spin.ns {
            return Some(left - self.spin.ns);
        }
        while plane.now() < deadline && !plane.ready() {
            std::hint::spin_loop();
        }
        Some(0)
    }

    fn wait(&mut self, timeout_ns: Option<u64>) {
        let waiter = &mut self.waiter;
        waiter.clear();
        for descriptor in self.service.plane.descriptors() {
            waiter.add(descriptor, Interest::READ, Token::Ring);
        }
        for descriptor in self.service.plane.sla_descriptors() {
            waiter.add(descriptor, Interest::READ, Token::Sla);
        }
        waiter.add(self.signals.as_raw_fd(), Interest::READ, Token::Signal);
        if self.control.has_room() {
            waiter.add(self.control.as_raw_fd(), Interest::READ, Token::Listener);
        }
        for (number, connection) in self.control.connections.iter().enumerate() {
            waiter.add(connection.as_raw_fd(), connection.interest(), Token::Connection(number));
        }
        waiter.wait(timeout_ns);
    }

    /// Does what the wait has found to do, except for frames, which the next round takes.
    fn attend(&mut self) {
        let mut over = Vec::new();
        let (service, control) = (&mut self.service, &mut self.control);
        for (token, broken) in self.waiter.ready() {
            match token {
                Token::Ring if broken => service.plane.take_errors(),
                // The next round takes the frames.
                Token::Ring => {}
                // An error on such a socket is taken when it is read.
                Token::Sla => service.plane.wake_sla(),
                Token::Signal => service.stopping = true,
                Token::Listener => control.accept(),
                Token::Connection(number) => {
                    let connection = &mut control.connections[number];
                    if !connection.serve(|line| service.answer(line), || refusal(&Refusal::too_long())) {
                        over.push(number);
                    }
                }
            }
        }
        for number in over.into_iter().rev() {
            control.connections.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_starts_as_early_as_the_kernel_usually_is_late() {
        let mut spin = Spin::new(30_000);
        for number in 0..1000 {
            // One in a hundred is an outlier.
            spin.learn(if number % 100 == 0 { 20_000_000 } else { 60_000 });
        }
        assert!((84_000..=100_000).contains(&spin.ns), "{}", spin.ns);
        for _ in 0..1000 {
            spin.learn(0);
        }
        assert_eq!(spin.ns, 30_000);
    }

    #[test]
    fn it_has_bounds() {
        let (mut never, mut long) = (Spin::new(0), Spin::new(30_000));
        for _ in 0..1000 {
            never.learn(1_000_000);
            long.learn(1_000_000);
        }
        assert_eq!((never.ns, long.ns), (0, 150_000));
    }
}
