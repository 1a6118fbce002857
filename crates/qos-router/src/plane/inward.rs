//! Path from the links inwards: to the engine, and from there to the kernel or to the ports of a switch.

use qos_core::frame::parse;
use qos_core::wire::tcp_options::lower_mss;
use qos_core::{Departure, Descriptor, Time};

use super::link_end::Sending;
use super::port::{Arrival, Held, Port, Wire};
use super::Dataplane;
use crate::bridge::retag;
use crate::forwarding::Inside;
use crate::frame::LONGEST;
use crate::in_transit::Transit;
use crate::ring::BATCH;

/// Maximum number of frames taken from one link per round, so that the others have their turn.
const TAKEN_PER_ROUND: usize = 256;

impl Dataplane {
    /// Passes waiting frames of the links to the engine. Returns the time up to which all arrivals have been taken.
    pub(super) fn receive_from_links(&mut self, now: Time) -> Time {
        let mut horizon = now;
        for port in &mut self.ports {
            let Wire::Interface(wire) = &mut port.wire else { continue };
            let mut last = now;
            for _ in 0..TAKEN_PER_ROUND {
                let taken = wire.ring.take(|stamp, bytes| {
                    last = self.clock.event(stamp, now);
                    wire.order.take(last);
                    let descriptor = parse(bytes, port.framing);
                    let held = Held::new(&mut self.pool, bytes, &descriptor);
                    self.engine.receive(last, port.id, descriptor, held);
                });
                match taken {
                    None => break,
                    Some(Ok(())) => self.counts.received += 1,
                    Some(Err(_)) => self.counts.malformed += 1,
                }
            }
            if wire.ring.is_ready() {
                horizon = horizon.min(last);
            }
        }
        horizon
    }

    /// Forwards frames from the links, or passes them to the kernel, in the order of their event times over all ports,
    /// and processes the frames that the kernel then sends.
    pub(super) fn pass_through_router(&mut self) {
        let mut inward = std::mem::take(&mut self.inward);
        inward.sort_by_key(|d| d.time);
        let mut rest = inward.drain(..).peekable();
        while rest.peek().is_some() {
            let now = self.clock.now();
            for departure in rest.by_ref().take(BATCH) {
                if self.bridge.switches(departure.port) {
                    self.switch(departure);
                    continue;
                }
                self.pass_inward(departure, now);
            }
            for inside in self.ports.iter_mut().flat_map(Port::insides_mut) {
                self.counts.unsent += inside.flush(&mut self.pool, |_| {});
            }
            // The kernel has forwarded them within the call: the resulting frames already wait in the rings.
            self.take_from_inside();
        }
        drop(rest);
        self.inward = inward;
        self.take_from_inside();
    }

    /// Forwards a frame from a link, or stores it for the kernel.
    fn pass_inward(&mut self, departure: Departure<Held>, now: Time) {
        let Departure { time, port, descriptor, mut payload, .. } = departure;
        let entered = &self.ports[usize::from(port.0)];
        let subinterface = entered.subinterface(descriptor.vlan);
        let adjust_mss = subinterface.map_or(entered.adjust_mss, |index| entered.subinterfaces[index].adjust_mss);
        if subinterface.is_some() && descriptor.tags > 0 {
            retag(self.pool.get(&payload.frame), None, &mut self.bytes);
            let untagged = self.pool.put(&self.bytes);
            self.pool.free(std::mem::replace(&mut payload.frame, untagged));
        }
        // Before the key is built from the kernel's frame.
        if let Some(most) = adjust_mss {
            lower_mss(self.pool.get_mut(&payload.frame), most);
        }
        let input = Inside { port: port.0, subinterface: subinterface.map(|index| index as u16) };
        let Some(frame) = self.forward(input, time, &descriptor, payload.frame) else { return };
        self.passed = self.passed.max(time);
        self.sla.arriving(self.pool.get(&frame), time);
        if let Some(key) = self.keys.key(self.pool.get(&frame)) {
            let Descriptor { qos_group, discard_class, label, .. } = descriptor;
            self.in_transit.insert(now.0, key, Transit { event: time, input: port, qos_group, discard_class, label });
        }
        let port = &mut self.ports[usize::from(port.0)];
        let inside = match subinterface {
            Some(index) => &mut port.subinterfaces[index].inside,
            None => port.inside.as_mut().expect("a line's frames do not come here"),
        };
        inside.sending.push(Sending { time, frame });
    }

    /// Passes a frame of a switched port to its output ports.
    pub(super) fn switch(&mut self, departure: Departure<Held>) {
        let Departure { time, port: input, descriptor, payload, .. } = departure;
        let mut copies = std::mem::take(&mut self.copies);
        let frame = self.pool.get(&payload.frame);
        self.bridge.forward(time, input, frame, |port, tag| copies.push((port, tag)));
        for (output, tag) in copies.drain(..) {
            retag(self.pool.get(&payload.frame), tag, &mut self.bytes);
            // One more tag can be too long for a frame that already had two.
            if self.bytes.len() > LONGEST {
                self.counts.malformed += 1;
                continue;
            }
            let port = &mut self.ports[usize::from(output.0)];
            let parsed = parse(&self.bytes, port.framing);
            let Descriptor { qos_group, discard_class, label, input_port, .. } = descriptor;
            let held = Held { frame: self.pool.put(&self.bytes), dscp: parsed.dscp, ecn: parsed.ecn, cos: parsed.cos };
            let descriptor = Descriptor { qos_group, discard_class, label, input_port, ..parsed };
            port.arrivals.push(Arrival { event: time, descriptor, held });
        }
        self.copies = copies;
        self.pool.free(payload.frame);
    }
}
