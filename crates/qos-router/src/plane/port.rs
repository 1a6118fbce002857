//! A port of the data plane: its two Linux interfaces, and the frames that wait at them.

use std::io;
use std::os::fd::AsRawFd;
use std::thread;

use qos_core::config::defaults::DOT1Q_COS;
use qos_core::config::{PortConfig, SubinterfaceConfig};
use qos_core::wire::ethernet::Tag;
use qos_core::wire::Framing;
use qos_core::{Descriptor, PortId, Time};

use super::link_end::{Memory, Sending};
use crate::forwarding::Inside;
use crate::frame_pool::{Frame, FramePool};
use crate::netdev;
use crate::ring::{self, Ring, BATCH};

/// Slots of the ring on the router's side. A batch of forwarded frames is removed immediately, so the ring only has to
/// hold the router's own frames; and a small ring stays in the processor's cache.
const INSIDE_SLOTS: usize = 256;

/// Accuracy of time stamps: frames received by two processors at the same time can be out of order by microseconds
/// without being late (25 of 85 000 packets of a switch, by at most 6.5 µs).
const STAMPS_APART_NS: u64 = 20_000;

/// Order in which the kernel delivers its stamped frames.
#[derive(Debug, Default)]
pub(super) struct StampOrder {
    latest: Time,
    /// Frames delivered after a later one, by more than the accuracy of stamps.
    pub late: u64,
}

impl StampOrder {
    /// Records the time stamp of a frame that is taken.
    pub fn take(&mut self, time: Time) {
        self.late += u64::from(self.latest.since(time).0 > STAMPS_APART_NS);
        self.latest = self.latest.max(time);
    }
}

/// A frame in the engine.
#[derive(Debug)]
pub(super) struct Held {
    pub frame: Frame,
    /// Markings in the frame's bytes.
    pub dscp: u8,
    pub ecn: u8,
    pub cos: u8,
}

impl Held {
    /// Stores a frame with this description.
    pub fn new(pool: &mut FramePool, bytes: &[u8], descriptor: &Descriptor) -> Self {
        Self { frame: pool.put(bytes), dscp: descriptor.dscp, ecn: descriptor.ecn, cos: descriptor.cos }
    }
}

/// A frame from the router's side.
#[derive(Debug)]
pub(super) struct Arrival {
    pub event: Time,
    pub descriptor: Descriptor,
    pub held: Held,
}

/// Linux interface of a port, inside or wire.
#[derive(Debug)]
pub(super) struct Interface {
    pub name: String,
    /// Number in the daemon's network namespace.
    pub index: u32,
    pub ring: Ring,
    pub sending: Vec<Sending>,
    pub order: StampOrder,
    /// The kernel's count of frames that it could not deliver, when the health was last cleared.
    pub unsent_before: u64,
}

/// The link's side of a port.
#[derive(Debug)]
pub(super) enum Wire {
    /// An interface.
    Interface(Interface),
    /// Another router of this process is at the other end.
    Memory(Memory),
}

impl Wire {
    /// Returns the interface, unless the link is in memory.
    pub fn interface(&self) -> Option<&Interface> {
        match self {
            Wire::Interface(interface) => Some(interface),
            Wire::Memory(_) => None,
        }
    }

    fn interface_mut(&mut self) -> Option<&mut Interface> {
        match self {
            Wire::Interface(interface) => Some(interface),
            Wire::Memory(_) => None,
        }
    }

    /// Returns the name of the Linux interface, which exists for either kind of link.
    pub fn name(&self) -> &str {
        match self {
            Wire::Interface(interface) => &interface.name,
            Wire::Memory(memory) => &memory.name,
        }
    }
}

/// The inside of an IEEE 802.1Q subinterface, with untagged frames.
#[derive(Debug)]
pub(super) struct Subinterface {
    pub vlan: u16,
    /// Whether frames of the subinterface are untagged on the link too.
    pub native: bool,
    /// Limit of the TCP maximum segment size in SYNs.
    pub adjust_mss: Option<u16>,
    pub inside: Interface,
}

impl Subinterface {
    /// Opens the interface; `place` is its place in the configuration.
    pub fn open(config: &SubinterfaceConfig, name: &str, place: &str) -> Result<Self, StartError> {
        let inside = Interface::open(name, place, INSIDE_SLOTS)?;
        Ok(Self { vlan: config.vlan, native: config.native, adjust_mss: config.tcp_adjust_mss, inside })
    }

    /// Returns the tag of its frames on the link.
    pub fn tag(&self) -> Option<Tag> {
        (!self.native).then_some(Tag { cos: DOT1Q_COS, vlan: self.vlan })
    }
}

/// A port and its interfaces.
#[derive(Debug)]
pub(super) struct Port {
    pub id: PortId,
    pub framing: Framing,
    /// The interface to the router's kernel; the end of a line has none.
    pub inside: Option<Interface>,
    /// For the end of a line: index of the other end, on whose link frames received here leave.
    pub peer: Option<usize>,
    pub wire: Wire,
    pub subinterfaces: Vec<Subinterface>,
    /// Limit of the TCP maximum segment size in SYNs.
    pub adjust_mss: Option<u16>,
    /// Frames from the router's side that have not been passed to the engine yet.
    pub arrivals: Vec<Arrival>,
}

/// Reason why the data plane cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An interface is missing.
    #[error(
        "interface {name:?} ({place}) does not exist in this network namespace (existing: {existing}); \
         create it or correct the ports file"
    )]
    Missing {
        /// Name of the interface.
        name: String,
        /// Place in the ports file.
        place: String,
        /// Existing interfaces.
        existing: String,
    },
    /// A socket cannot be opened.
    #[error("interface {name:?} ({place}): {source}")]
    Socket {
        /// Name of the interface.
        name: String,
        /// Place in the ports file.
        place: String,
        /// Reason given by the system, with the failed action.
        source: io::Error,
    },
    /// The namespace of the interfaces cannot be entered.
    #[error("cannot enter the network namespace of the ports: {0}; this needs CAP_SYS_ADMIN over it")]
    Namespace(io::Error),
    /// The interfaces cannot be watched.
    #[error("cannot subscribe to interface changes: {0}")]
    Follow(io::Error),
    /// The engine refuses the wiring.
    #[error("ports file: {0}")]
    Wiring(#[from] qos_core::ConfigError),
}

/// Returns the number of an interface of this namespace.
fn number(name: &str, place: &str) -> Result<u32, StartError> {
    netdev::index(name).ok_or_else(|| {
        let (name, place) = (name.to_owned(), place.to_owned());
        StartError::Missing { name, place, existing: netdev::names().join(", ") }
    })
}

impl Interface {
    fn open(name: &str, place: &str, slots: usize) -> Result<Self, StartError> {
        let index = number(name, place)?;
        let (name, place) = (name.to_owned(), place.to_owned());
        match Ring::open(index, slots) {
            Ok(ring) => {
                let (sending, order) = (Vec::new(), StampOrder::default());
                Ok(Self { name, index, ring, sending, order, unsent_before: 0 })
            }
            Err(source) => Err(StartError::Socket { name, place, source }),
        }
    }

    /// Sends the waiting frames; see [`send_all`].
    pub fn flush(&mut self, pool: &mut FramePool, batch: impl FnMut(&[Sending])) -> u64 {
        send_all(&self.ring, &mut self.sending, pool, batch)
    }
}

/// Sends the waiting frames by a packet socket, in order, and calls `batch` after each system call with the frames that
/// the kernel took. Returns the number of refused frames.
pub(super) fn send_all(
    socket: &impl AsRawFd,
    sending: &mut Vec<Sending>,
    pool: &mut FramePool,
    mut batch: impl FnMut(&[Sending]),
) -> u64 {
    let mut refused = 0;
    let mut rest = &sending[..];
    while !rest.is_empty() {
        let count = ring::send(socket, rest.iter().map(|s| pool.get(&s.frame)));
        batch(&rest[..count]);
        rest = &rest[count..];
        // The kernel stops at a frame that it refuses: continue after it, unless the whole batch was accepted.
        if count < BATCH && !rest.is_empty() {
            refused += 1;
            rest = &rest[1..];
        }
    }
    for sending in sending.drain(..) {
        pool.free(sending.frame);
    }
    refused
}

impl Port {
    /// Opens both interfaces of a port at the same time, because the kernel delays each one by some milliseconds. The
    /// end of a line whose other end is port `peer` has only one, and so does a port with a link in `memory`. `slots`
    /// is the number of slots of the ring on the link.
    pub fn open(
        id: PortId,
        framing: Framing,
        name: &str,
        config: &PortConfig,
        (peer, memory): (Option<usize>, bool),
        slots: usize,
    ) -> Result<Self, StartError> {
        let open_wire = || {
            let place = format!("ports.{name}.wire");
            if memory {
                return Ok(Wire::Memory(Memory::new(&config.wire, number(&config.wire, &place)?)));
            }
            Interface::open(&config.wire, &place, slots).map(Wire::Interface)
        };
        let (inside, wire) = thread::scope(|scope| {
            let open = || {
                let place = format!("ports.{name}.inside");
                peer.is_none().then(|| Interface::open(&config.inside, &place, INSIDE_SLOTS)).transpose()
            };
            let inside = scope.spawn(open);
            let wire = open_wire();
            (inside.join().expect("opening does not panic"), wire)
        });
        let (inside, wire) = (inside?, wire?);
        let (subinterfaces, arrivals) = (Vec::new(), Vec::new());
        Ok(Self { id, framing, inside, peer, wire, subinterfaces, adjust_mss: None, arrivals })
    }

    /// Returns a port without an inside and with a link in memory.
    #[cfg(test)]
    pub fn in_memory(id: PortId, framing: Framing, memory: Memory) -> Self {
        let (wire, subinterfaces, arrivals) = (Wire::Memory(memory), Vec::new(), Vec::new());
        Self { id, framing, inside: None, peer: None, wire, subinterfaces, adjust_mss: None, arrivals }
    }

    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.inside.iter().chain(self.wire.interface()).chain(self.subinterfaces.iter().map(|each| &each.inside))
    }

    pub fn interfaces_mut(&mut self) -> impl Iterator<Item = &mut Interface> {
        let subinterfaces = self.subinterfaces.iter_mut().map(|each| &mut each.inside);
        self.inside.iter_mut().chain(self.wire.interface_mut()).chain(subinterfaces)
    }

    /// Returns the interfaces to the router's kernel.
    pub fn insides_mut(&mut self) -> impl Iterator<Item = &mut Interface> {
        self.inside.iter_mut().chain(self.subinterfaces.iter_mut().map(|each| &mut each.inside))
    }

    /// Returns the index of the destination subinterface of a frame from the link.
    pub fn subinterface(&self, vlan: u16) -> Option<usize> {
        self.subinterfaces.iter().position(|each| each.vlan == vlan || (vlan == 0 && each.native))
    }

    /// Returns the interfaces to the router's kernel, with their numbers.
    pub fn insides(&self) -> impl Iterator<Item = (Inside, u32)> + '_ {
        let of = |subinterface, index| (Inside { port: self.id.0, subinterface }, index);
        let subinterfaces = (0..).zip(&self.subinterfaces).map(move |(at, each)| of(Some(at), each.inside.index));
        self.inside.iter().map(move |inside| of(None, inside.index)).chain(subinterfaces)
    }

    /// Returns its interfaces.
    pub fn into_interfaces(self) -> impl Iterator<Item = Interface> {
        let wire = match self.wire {
            Wire::Interface(interface) => Some(interface),
            Wire::Memory(_) => None,
        };
        self.inside.into_iter().chain(wire).chain(self.subinterfaces.into_iter().map(|each| each.inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_behind_a_later_one_is_late_beyond_the_stamp_distance() {
        let mut order = StampOrder::default();
        for (time, late) in [(100_000, 0), (80_000, 0), (79_999, 1), (101_000, 1), (80_999, 2), (101_000, 2)] {
            order.take(Time(time));
            assert_eq!(order.late, late, "at {time}");
        }
    }
}
