//! The end of a link to another router of this process: frames are handed over in memory, with their event time.
//!
//! The link still has a pair of interfaces. It shows whether the link is up, and the link can be captured there: while
//! a program listens at either end, copies of the frames are sent over it.

use std::io;
use std::os::fd::RawFd;

use qos_core::frame::parse;
use qos_core::{Departure, Time};

use super::faces::{self, Faces};
use super::link_end::{Crossing, Memory, Sending, WireState};
use super::port::{send_all, Held, Port, StartError, Wire};
use super::Dataplane;
use crate::ring;

impl Dataplane {
    /// Subscribes to notifications about the interfaces that stand for links, if any. Must be called in their
    /// namespace.
    pub(super) fn follow_link_state(&mut self) -> Result<(), StartError> {
        if self.ports.iter().any(|port| matches!(port.wire, Wire::Memory(_))) {
            self.faces = Some(Faces::open().map_err(StartError::Follow)?);
            self.check_link_state().map_err(StartError::Follow)?;
        }
        Ok(())
    }

    /// Returns the descriptor for the kernel's notifications about these interfaces.
    pub fn link_news_descriptor(&self) -> Option<RawFd> {
        self.faces.as_ref().map(Faces::descriptor)
    }

    /// Reads the kernel's messages about these interfaces. Returns whether anything has changed.
    pub fn process_link_news(&mut self) -> bool {
        let Some(mut faces) = self.faces.take() else { return false };
        let mut changed = false;
        let whole = faces.news(|index, state| changed |= set_state(&mut self.ports, index, state));
        self.faces = Some(faces);
        if whole {
            return changed;
        }
        if let Err(error) = self.outside.visit().and_then(|()| self.check_link_state()) {
            eprintln!("qos-router: cannot read the state of the ports' interfaces: {error}");
        }
        true
    }

    /// Requests the state of all these interfaces.
    fn check_link_state(&mut self) -> io::Result<()> {
        let ports = &mut self.ports;
        faces::read_states(|index, state| {
            set_state(ports, index, state);
        })
    }

    /// Returns the state of the interface of a port whose link is in memory.
    pub fn wire_state(&self, port: usize) -> WireState {
        match &self.ports[port].wire {
            Wire::Memory(memory) => memory.state,
            Wire::Interface(_) => WireState::default(),
        }
    }

    /// Starts or stops copying the frames that leave by such a port to its interface.
    pub fn set_tap(&mut self, port: usize, wanted: bool) {
        let Wire::Memory(memory) = &mut self.ports[port].wire else { return };
        if wanted == memory.tap.is_some() {
            return;
        }
        memory.tap = None;
        if wanted {
            match self.outside.visit().and_then(|()| ring::open_sender(memory.index)) {
                Ok(socket) => memory.tap = Some(socket),
                Err(error) => eprintln!("qos-router: cannot capture on interface {}: {error}", memory.name),
            }
        }
    }

    /// Stores a frame that leaves for another router.
    pub(super) fn leave(&mut self, port: usize, departure: Departure<Held>) {
        self.crossing.push(Crossing { port, time: departure.time, frame: departure.payload.frame });
    }

    /// Returns whether no frame has left for other routers.
    pub fn has_no_crossing_frames(&self) -> bool {
        self.crossing.is_empty()
    }

    /// Returns the frames for other routers; must be returned empty by [`Self::store_crossing_frame`].
    pub fn take_crossing_frames(&mut self) -> Vec<Crossing> {
        std::mem::take(&mut self.crossing)
    }

    /// Takes back the buffer of [`Self::take_crossing_frames`] for reuse.
    pub fn store_crossing_frame(&mut self, empty: Vec<Crossing>) {
        self.crossing = empty;
    }

    /// Returns the bytes of a frame that has left.
    pub fn crossing_bytes(&self, crossing: &Crossing) -> &[u8] {
        self.pool.get(&crossing.frame)
    }

    /// Counts a departed frame that has been delivered, or had no receiver.
    pub fn finish_crossing(&mut self, crossing: Crossing, delivered: bool) {
        let Crossing { port, time, frame } = crossing;
        if !delivered {
            self.counts.unsent += 1;
            return self.pool.free(frame);
        }
        self.counts.transmitted += 1;
        match &mut self.ports[port].wire {
            Wire::Memory(Memory { tap: Some(_), copies, .. }) => copies.push(Sending { time, frame }),
            _ => self.pool.free(frame),
        }
    }

    /// Accepts a frame over a link from another router: it was on the wire at `time`, not before the previous one, nor
    /// before the time that this data plane has reached.
    pub fn arrive(&mut self, port: usize, time: Time, bytes: &[u8]) {
        let Port { id, framing, .. } = self.ports[port];
        let descriptor = parse(bytes, framing);
        let held = Held::new(&mut self.pool, bytes, &descriptor);
        self.engine.receive(time, id, descriptor, held);
        self.counts.received += 1;
    }

    /// Sends copies of the frames that have left by a port to its captures, and records their lateness.
    pub(super) fn flush_copies(&mut self, port: usize) {
        let Wire::Memory(Memory { tap, copies, .. }) = &mut self.ports[port].wire else { return };
        let (clock, lateness) = (&self.clock, &mut self.lateness);
        match tap {
            // The capture loses a copy that is not read; its counters show it.
            Some(tap) => {
                send_all(tap, copies, &mut self.pool, |batch| {
                    let now = clock.now().0;
                    batch.iter().for_each(|copy| lateness.record_copy(copy.time.0, now));
                });
            }
            None => copies.drain(..).for_each(|copy| self.pool.free(copy.frame)),
        }
    }
}

#[cfg(test)]
impl Dataplane {
    /// Returns a data plane with all links in memory, which has reached `start`.
    pub fn in_memory(wiring: &qos_core::PortsConfig, start: Time, clock: crate::daemon_clock::Clock) -> Self {
        use crate::forwarding::Forwarding;
        use crate::namespace::Namespace;
        let engine = qos_core::Engine::new(wiring, start).unwrap();
        let port = |(id, _)| {
            let mut memory = Memory::new("", 0);
            memory.state.up = true;
            Port::in_memory(id, engine.framing(id), memory)
        };
        let ports = engine.ports().map(port).collect();
        let forwarding = Forwarding::open(&Namespace::None, Namespace::None);
        Self::assemble(clock, start, engine, ports, forwarding, 0, (Namespace::None, Namespace::None))
    }

    /// Returns a receiver that panics when a frame arrives.
    pub fn without_ports(mut self) -> Self {
        self.ports.clear();
        self
    }
}

fn set_state(ports: &mut [Port], index: u32, state: WireState) -> bool {
    let mut changed = false;
    for port in ports {
        if let Wire::Memory(memory) = &mut port.wire {
            if memory.index == index && memory.state != state {
                memory.state = state;
                changed = true;
            }
        }
    }
    changed
}
