//! Periodic check for settings that affect the kernel's forwarding and are not reported by route netlink.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netlink_packet_core::ParseableParametrized;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE, NETLINK_XFRM};

use super::kernel::Link;
use super::netlink::{dump, Request, LINKS};
use crate::namespace::Namespace;

/// Interval of the check.
const EVERY: Duration = Duration::from_secs(1);

/// The tables of nftables: subsystem 10, `NFT_MSG_GETTABLE`.
const NFTABLES: Request = Request { kind: (10 << 8) | 1, family: 0, length: 4 };
/// The policies of IPsec, `XFRM_MSG_GETPOLICY`.
const IPSEC: Request = Request { kind: 0x15, family: 0, length: 0 };

/// Result of the check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Treatment of packets by the kernel other than forwarding.
    pub unknown: Option<String>,
    /// Maximum lengths of IPv6 packets, by interface.
    ipv6_mtu: Vec<(u32, Option<u32>)>,
}

#[derive(Debug, Default)]
struct Shared {
    found: Mutex<Option<Found>>,
    /// Number of changed results.
    version: AtomicU64,
    stopped: AtomicBool,
}

/// A thread in the router's namespace that checks the settings.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the thread.
    ///
    /// # Errors
    /// Those of entering the namespace.
    pub fn start(namespace: &Namespace) -> io::Result<Self> {
        // Here, so that the error is known at once.
        namespace.within(|| Ok(()))?;
        let (shared, namespace) = (Arc::new(Shared::default()), namespace.clone());
        let looking = Arc::clone(&shared);
        let thread = thread::Builder::new().name("kernel-watch".to_owned()).spawn(move || {
            let inside = namespace.enter();
            while !looking.stopped.load(Ordering::Acquire) {
                let found = match &inside {
                    Ok(()) => read_settings(),
                    Err(error) => Found { unknown: Some(unseen("the namespace", error)), ..Found::default() },
                };
                looking.put(found);
                thread::park_timeout(EVERY);
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the number that changes with the findings; 0 before the first.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// Returns the latest result.
    pub fn found(&self) -> Option<Found> {
        self.shared.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It ends with an error only after a panic, which has been reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn put(&self, found: Found) {
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != Some(&found) {
            *known = Some(found);
            self.version.fetch_add(1, Ordering::Release);
        }
    }
}

fn unseen(what: &str, error: &io::Error) -> String {
    format!("the state of {what} is unknown: {error}")
}

/// Reads the settings. Must be called in the router's namespace.
fn read_settings() -> Found {
    let mut found = Found::default();
    for (what, protocol, request) in [("nftables", NETLINK_NETFILTER, NFTABLES), ("IPsec", NETLINK_XFRM, IPSEC)] {
        let mut some = false;
        match dump(protocol, request, |_, _| some = true) {
            Ok(()) if some => found.unknown = Some(what.to_owned()),
            Ok(()) => {}
            // A kernel without it.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EOPNOTSUPP | libc::EINVAL)) => {}
            Err(error) => found.unknown = Some(unseen(what, &error)),
        }
    }
    for file in ["ip_tables_names", "ip6_tables_names"] {
        match fs::read_to_string(format!("/proc/thread-self/net/{file}")) {
            Ok(tables) if !tables.is_empty() => found.unknown = Some("iptables".to_owned()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => found.unknown = Some(unseen("iptables", &error)),
            _ => {}
        }
    }
    let links = dump(NETLINK_ROUTE, LINKS, |kind, body| {
        if let Ok(RouteNetlinkMessage::NewLink(link)) = RouteNetlinkMessage::parse_with_param(body, kind) {
            found.ipv6_mtu.push((link.header.index, Link::of(&link).ipv6_mtu()));
        }
    });
    if let Err(error) = links {
        found.unknown = Some(unseen("another interface", &error));
    }
    found
}
