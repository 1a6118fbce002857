//! The daemon: opens everything, then waits, passes frames and answers requests until it is told to stop.

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::control::{Control, Interest};
use crate::dataplane::{Dataplane, StartError};
use crate::events::{Poller, Signals};
use crate::ports::{self, WiringError};
use crate::requests::{refusal, Refusal, Service};

/// How long before a departure the daemon stops sleeping and waits actively: about as long as the kernel takes to wake it up.
pub const DEFAULT_SPIN_NS: u64 = 30_000;

/// While frames keep it busy, the control socket and signals are looked at this often.
const CONTROL_EVERY_NS: u64 = 1_000_000;

/// Tokens of the poller; connections follow.
const TOKEN_RINGS: u64 = 0;
const TOKEN_SIGNALS: u64 = 1;
const TOKEN_LISTENER: u64 = 2;
const TOKEN_CONNECTIONS: u64 = 3;

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
    /// Time before a departure from which the daemon waits actively, ns.
    pub spin_ns: u64,
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
    let plane = Dataplane::open(&wiring, options.ring_ns, options.budget_ns)?;
    let control = listen(&options.control)?;
    let poller = Poller::new()?;
    for descriptor in plane.descriptors() {
        poller.add(descriptor, TOKEN_RINGS)?;
    }
    poller.add(signals.as_raw_fd(), TOKEN_SIGNALS)?;
    poller.add(control.as_raw_fd(), TOKEN_LISTENER)?;
    let service = Service::new(options.name.clone(), plane);
    Daemon { service, control, poller, spin_ns: options.spin_ns, _signals: signals }.serve();
    Ok(())
}

fn listen(path: &Path) -> Result<Control, DaemonError> {
    Control::listen(path).map_err(|source| DaemonError::Control { path: path.display().to_string(), source })
}

struct Daemon {
    service: Service,
    control: Control,
    poller: Poller,
    spin_ns: u64,
    _signals: Signals,
}

impl Daemon {
    fn serve(mut self) {
        let mut tokens = Vec::new();
        let mut looked = self.service.plane.now();
        while !self.service.stopping {
            self.service.plane.round();
            let timeout = self.idle_for();
            let now = self.service.plane.now();
            if timeout == Some(0) && now.since(looked).0 < CONTROL_EVERY_NS {
                continue;
            }
            looked = now;
            self.poller.wait(timeout, &mut tokens);
            for &token in &tokens {
                match token {
                    TOKEN_RINGS => self.service.plane.take_errors(),
                    TOKEN_SIGNALS => self.service.stopping = true,
                    TOKEN_LISTENER => self.accept(),
                    connection => self.talk((connection - TOKEN_CONNECTIONS) as usize),
                }
            }
        }
    }

    /// How long to sleep: 0 to go on at once. Waits actively for a departure that is near.
    fn idle_for(&self) -> Option<u64> {
        let plane = &self.service.plane;
        if plane.ready() {
            return Some(0);
        }
        let deadline = plane.deadline()?;
        let left = deadline.since(plane.now()).0;
        if left > self.spin_ns {
            return Some(left - self.spin_ns);
        }
        while plane.now() < deadline && !plane.ready() {
            std::hint::spin_loop();
        }
        Some(0)
    }

    fn accept(&mut self) {
        let Some(number) = self.control.accept() else { return };
        let Some(connection) = &self.control.connections[number] else { return };
        if self.poller.add(connection.as_raw_fd(), TOKEN_CONNECTIONS + number as u64).is_err() {
            self.control.connections[number] = None;
        }
        self.listen_while_there_is_room();
    }

    fn talk(&mut self, number: usize) {
        let Some(Some(connection)) = self.control.connections.get_mut(number) else { return };
        let service = &mut self.service;
        let interest = connection.serve(|line| service.answer(line), || refusal(&Refusal::too_long()));
        let kept = interest.is_some_and(|Interest { read, write }| {
            self.poller.change(connection.as_raw_fd(), TOKEN_CONNECTIONS + number as u64, read, write).is_ok()
        });
        if !kept {
            // Closing the descriptor takes it out of the poller.
            self.control.connections[number] = None;
            self.listen_while_there_is_room();
        }
    }

    /// A listener whose connections are not accepted must not wake the daemon up again and again.
    fn listen_while_there_is_room(&self) {
        let room = !self.control.is_full();
        // Failing would only mean that further clients wait.
        let _ = self.poller.change(self.control.as_raw_fd(), TOKEN_LISTENER, room, false);
    }
}
