//! The daemon: opens everything, then waits, passes frames and answers requests until it is told to stop.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::control::Control;
use crate::namespace::Namespace;
use crate::plane::{Dataplane, StartError};
use crate::ports::{self, WiringError};
use crate::requests::{refusal, Refusal, Service};
use crate::wakeup::Wakeup;
use netio::wait::{be_punctual, Interest, Signals, Waiter};
use qos_core::Duration;

/// Nanoseconds before a departure from which the daemon always waits actively, where nothing else is asked for.
pub const DEFAULT_SPIN_NS: u64 = 30_000;

/// While frames keep it busy, the control socket and signals are looked at this often.
const CONTROL_EVERY_NS: u64 = 1_000_000;

/// Who has something to do.
#[derive(Debug, Clone, Copy)]
enum Token {
    Ring,
    Kernel,
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
    let namespace = match &options.kernel_netns {
        None => Namespace::None,
        Some(path) => {
            let opened = File::open(path);
            let failed = |source| DaemonError::Namespace { path: path.display().to_string(), source };
            Namespace::Other(Arc::new(opened.map_err(failed)?))
        }
    };
    let plane = Dataplane::open(&wiring, options.ring_ns, options.budget_ns, namespace)?;
    let control = listen(&options.control)?;
    be_punctual();
    let now = plane.now();
    let service = Service::new(options.name.clone(), plane);
    Daemon { service, control, signals, waiter: Waiter::default(), wakeup: Wakeup::new(options.spin_ns, now) }.serve();
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
    wakeup: Wakeup,
}

impl Daemon {
    fn serve(mut self) {
        let mut looked = self.service.plane.now();
        while !self.service.stopping {
            let ahead = self.wakeup.at(self.service.plane.now());
            self.service.plane.round(Duration(ahead));
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
                    self.wakeup.learn(slept.saturating_sub(asked));
                }
            }
            self.attend();
        }
        self.service.plane.close();
    }

    /// How long to sleep: 0 to go on at once. Waits actively for a departure that is near.
    fn idle_for(&mut self) -> Option<u64> {
        let plane = &self.service.plane;
        if plane.ready() {
            return Some(0);
        }
        let deadline = plane.deadline()?;
        let from = plane.now();
        let left = deadline.since(from).0;
        let lead = self.wakeup.at(from);
        if left > lead {
            return Some(left - lead);
        }
        while plane.now() < deadline && !plane.ready() {
            std::hint::spin_loop();
        }
        self.wakeup.spent(plane.now().since(from).0);
        Some(0)
    }

    fn wait(&mut self, timeout_ns: Option<u64>) {
        let waiter = &mut self.waiter;
        waiter.clear();
        for descriptor in self.service.plane.descriptors() {
            waiter.add(descriptor, Interest::READ, Token::Ring);
        }
        if let Some(descriptor) = self.service.plane.kernel_descriptor() {
            waiter.add(descriptor, Interest::READ, Token::Kernel);
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
                // Done below, whether or not there is any news.
                Token::Kernel => {}
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
        // Before the frames, so that they go by what the kernel knew when they came.
        service.plane.follow_kernel();
        for number in over.into_iter().rev() {
            control.connections.remove(number);
        }
    }
}
