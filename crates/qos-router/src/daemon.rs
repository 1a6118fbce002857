//! The daemon: opens all files and sockets, and starts a thread for each group of routers joined by links in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use netio::wait::Signals;
use qos_core::PortsConfig;

use crate::control::Control;
use crate::daemon_clock::Clock;
use crate::group::{Group, Links};
use crate::lab::{self, LabConfig};
use crate::member::Member;
use crate::namespace::Namespace;
use crate::plane::{Dataplane, Opening, StartError};
use crate::ports::{self, WiringError};
use crate::requests::Service;
use crate::rights;
use crate::ring_sizes::RingSizes;
use crate::serve::Server;
use crate::wakeup::Wakeup;

/// Default time before a departure from which the daemon waits actively, in nanoseconds.
pub const DEFAULT_SPIN_NS: u64 = 5_000;

/// Routers of a daemon.
#[derive(Debug, Clone)]
pub enum Routers {
    /// One router, in the network namespace of the process.
    One {
        /// Name.
        name: String,
        /// The wiring file.
        ports: PathBuf,
        /// Path of the control socket.
        control: PathBuf,
        /// Network namespace of its IP stack, for forwarding and IP SLA.
        kernel_netns: Option<PathBuf>,
    },
    /// The routers in a lab file.
    Lab(PathBuf),
}

/// Start options of the daemon.
#[derive(Debug, Clone)]
pub struct Options {
    /// The routers.
    pub routers: Routers,
    /// Lateness above which departures are counted separately, ns.
    pub budget_ns: u64,
    /// Capacity of the receive rings in time of shortest frames at the link's rate, ns.
    pub ring_ns: u64,
    /// Minimum time before a departure from which the daemon waits actively, ns.
    pub spin_ns: u64,
}

/// Reason why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The wiring file.
    #[error(transparent)]
    Wiring(#[from] WiringError),
    /// The ports.
    #[error("{router}: {source}")]
    Start {
        /// The router.
        router: String,
        /// The reason.
        source: StartError,
    },
    /// The control socket.
    #[error(
        "cannot listen on {path}: {source}; choose another path for the control socket, or stop the \
         program that listens there"
    )]
    Control {
        /// The path as given.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The namespace of the IP stack, or of the ports.
    #[error("cannot open the network namespace {path}: {source}; check the path")]
    Namespace {
        /// The path as given.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Capabilities of the process.
    #[error("cannot give up capabilities: {0}")]
    Rights(io::Error),
    /// Another error of the system.
    #[error("cannot wait for events: {0}")]
    Events(#[from] io::Error),
}

/// Runs until SIGTERM or SIGINT, or until each router had a `shutdown` request.
///
/// # Errors
/// If it cannot start. Later faults are no errors: they are counted and reported by `health`.
pub fn run(options: &Options) -> Result<(), DaemonError> {
    let signals = Signals::new()?;
    let clock = Clock::new();
    let groups = match &options.routers {
        Routers::One { name, ports, control, kernel_netns } => {
            let wiring = ports::load(ports)?;
            let rates_bps = wiring.ports.values().map(|port| port.link.rate_bps);
            let router = Router {
                name,
                wiring: &wiring,
                memory: BTreeSet::new(),
                control,
                outside: Namespace::None,
                kernel: namespace(kernel_netns.as_deref())?,
                ended: None,
                ring_sizes: RingSizes::new(options.ring_ns, rates_bps),
            };
            rights::know_all_namespaces().map_err(DaemonError::Rights)?;
            let links = vec![vec![None; router.wiring.ports.len()]];
            vec![Group::new(clock, vec![router.open(clock, options)?], links, true)]
        }
        Routers::Lab(path) => open_lab(&lab::load(path)?, clock, options)?,
    };
    let mut servers: Vec<_> = groups
        .into_iter()
        .map(|group| Server::new(group, &signals, Wakeup::new(options.spin_ns, clock.now())))
        .collect();
    thread::scope(|scope| -> io::Result<()> {
        let last = servers.pop();
        for server in servers {
            thread::Builder::new().name(server.name()).spawn_scoped(scope, move || server.serve())?;
        }
        last.into_iter().for_each(Server::serve);
        Ok(())
    })?;
    Ok(())
}

/// A router to open.
struct Router<'a> {
    name: &'a str,
    wiring: &'a PortsConfig,
    memory: BTreeSet<String>,
    control: &'a Path,
    outside: Namespace,
    kernel: Namespace,
    ended: Option<PathBuf>,
    ring_sizes: RingSizes,
}

impl Router<'_> {
    /// Opens the router. Moves this thread to the namespace of its ports.
    fn open(self, clock: Clock, options: &Options) -> Result<Member, DaemonError> {
        let Self { name, wiring, memory, control, outside, kernel, ended, ring_sizes } = self;
        let budget_ns = options.budget_ns;
        if let Some(ended) = &ended {
            // A leftover of an earlier process; without one there is nothing to do.
            let _ = std::fs::remove_file(ended);
        }
        let opening = Opening { wiring, memory: &memory, ring_sizes, budget_ns, outside, kernel, clock };
        let plane =
            Dataplane::open(opening).map_err(|source| DaemonError::Start { router: name.to_owned(), source })?;
        let control = Control::listen(control)
            .map_err(|source| DaemonError::Control { path: control.display().to_string(), source })?;
        Ok(Member::new(Service::new(name.to_owned(), plane), Some(control), ended))
    }
}

/// Opens the routers of a lab, each in its own thread, because the kernel delays each one by some milliseconds.
fn open_lab(lab: &LabConfig, clock: Clock, options: &Options) -> Result<Vec<Group>, DaemonError> {
    let places = lab.routers.iter().map(|(name, place)| {
        let outside = namespace(Some(&place.netns))?;
        Ok((name.as_str(), place, outside, namespace(place.kernel_netns.as_deref())?))
    });
    let places = places.collect::<Result<Vec<_>, DaemonError>>()?;
    rights::know_all_namespaces().map_err(DaemonError::Rights)?;
    let in_memory: &BTreeSet<_> = &lab.links.iter().flat_map(|link| &link.ends).collect();
    let rates_bps = lab.routers.iter().flat_map(|(router, place)| {
        let end = |port: &String| lab::MemoryLinkEnd { router: router.clone(), port: port.clone() };
        place.wiring.ports.iter().filter(move |(port, _)| !in_memory.contains(&end(port)))
    });
    let ring_sizes = RingSizes::new(options.ring_ns, rates_bps.map(|(_, port)| port.link.rate_bps));
    let mut members = thread::scope(|scope| {
        let open = |name, place: &lab::RouterPlace, outside, kernel| {
            let ends = lab.links.iter().flat_map(|link| &link.ends);
            let router = Router {
                name,
                wiring: &place.wiring,
                memory: ends.filter(|end| end.router == name).map(|end| end.port.clone()).collect(),
                control: &place.control,
                outside,
                kernel,
                ended: Some(place.control.with_extension("ended")),
                ring_sizes,
            };
            router.open(clock, options)
        };
        let opening = places
            .into_iter()
            .map(|(name, place, outside, kernel)| (name, scope.spawn(move || open(name, place, outside, kernel))));
        let opening: Vec<_> = opening.collect();
        let opened =
            opening.into_iter().map(|(name, member)| Ok((name, member.join().expect("opening does not panic")?)));
        opened.collect::<Result<BTreeMap<&str, Member>, DaemonError>>()
    })?;
    let groups = lab.parts().into_iter().map(|part| {
        let links = links(lab, &part);
        let members = part.iter().filter_map(|name| members.remove(name)).collect();
        Group::new(clock, members, links, false)
    });
    Ok(groups.collect())
}

/// Returns the links in memory between these routers. Ports are numbered in the order of their names.
fn links(lab: &LabConfig, part: &[&str]) -> Links {
    let ports = |router: &str| lab.routers[router].wiring.ports.keys();
    let place = |end: &lab::MemoryLinkEnd| {
        let router = part.iter().position(|name| *name == end.router)?;
        Some((router, ports(&end.router).position(|port| *port == end.port)?))
    };
    let mut links: Links = part.iter().map(|name| vec![None; ports(name).len()]).collect();
    for lab::MemoryLink { ends: [near, far] } in &lab.links {
        if let (Some(near), Some(far)) = (place(near), place(far)) {
            links[near.0][near.1] = Some(far);
            links[far.0][far.1] = Some(near);
        }
    }
    links
}

/// Returns the network namespace at a path.
fn namespace(path: Option<&Path>) -> Result<Namespace, DaemonError> {
    let Some(path) = path else { return Ok(Namespace::None) };
    let opened = File::open(path);
    let failed = |source| DaemonError::Namespace { path: path.display().to_string(), source };
    Ok(Namespace::Other(Arc::new(opened.map_err(failed)?)))
}
