//! Path from the kernel and the engine outwards: onto the links.

use qos_core::frame::{parse, rewrite_cos, rewrite_dscp, rewrite_ecn};
use qos_core::wire::tcp_options::lower_mss;
use qos_core::{Departure, DropReason, Dropped, Output, PortId, Side, Time};

use super::link_end::Sending;
use super::port::{Arrival, Held, Interface, Wire};
use super::Dataplane;
use crate::bridge::retag;
use crate::frame::{stamp_reply, TransitKeys};
use crate::in_transit::{InTransit, Transit};
use crate::ring::BATCH;

/// Maximum number of the router's own frames that wait for the engine to reach their time; further ones wait in the
/// ring.
const WAITING: usize = 4096;
impl Dataplane {
    /// Sorts the outputs of the engine. Frames for a link are sent when a batch is full or the round ends.
    pub(super) fn dispatch(&mut self) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Dropped(dropped) => {
                    let Dropped { time, port, towards, reason, payload } = dropped;
                    if towards == Side::Inside && reason != DropReason::Lost {
                        self.capture_frame(port, time, &payload);
                    }
                    self.pool.free(payload.frame);
                }
                Output::Departure(departure) => {
                    let Departure { time, port, side, .. } = departure;
                    match side {
                        Side::Inside => {
                            self.capture_frame(port, time, &departure.payload);
                            self.mark(&departure);
                            match self.ports[usize::from(port.0)].peer {
                                None => self.inward.push(departure),
                                Some(peer) => self.transmit_frame(peer, departure),
                            }
                        }
                        Side::Wire => {
                            self.mark(&departure);
                            self.capture_frame(port, time, &departure.payload);
                            self.transmit_frame(usize::from(port.0), departure);
                        }
                    }
                }
            }
        }
        self.outputs = outputs;
    }

    /// Gives a frame that passes a port to the captures there.
    fn capture_frame(&mut self, port: PortId, time: Time, held: &Held) {
        if !self.captures.is_empty() {
            self.captures.record(port, self.reached, time, self.pool.get(&held.frame));
        }
    }

    pub(super) fn transmit_frame(&mut self, port: usize, departure: Departure<Held>) {
        let Wire::Interface(Interface { sending, .. }) = &mut self.ports[port].wire else {
            return self.leave(port, departure);
        };
        sending.push(Sending { time: departure.time, frame: departure.payload.frame });
        if sending.len() == BATCH {
            self.flush_wire(port);
        }
    }

    /// Writes the engine's markings into the frame.
    pub(super) fn mark(&mut self, departure: &Departure<Held>) {
        let (held, descriptor) = (&departure.payload, &departure.descriptor);
        if descriptor.dscp != held.dscp {
            rewrite_dscp(self.pool.get_mut(&held.frame), descriptor.dscp);
        }
        if descriptor.ecn != held.ecn {
            rewrite_ecn(self.pool.get_mut(&held.frame), descriptor.ecn);
        }
        if descriptor.cos != held.cos {
            rewrite_cos(self.pool.get_mut(&held.frame), descriptor.cos);
        }
    }

    /// Takes the packets sent by the router's own IP stack, with their event times.
    pub(super) fn take_from_inside(&mut self) {
        for number in 0..self.ports.len() {
            self.take_from_kernel(number, None);
            for subinterface in 0..self.ports[number].subinterfaces.len() {
                self.take_from_kernel(number, Some(subinterface));
            }
        }
    }

    /// Takes the frames that the kernel has sent by a port, or by a subinterface of it.
    fn take_from_kernel(&mut self, number: usize, subinterface: Option<usize>) {
        let port = &mut self.ports[number];
        let adjust_mss = port.adjust_mss;
        let settled = matches!(port.wire, Wire::Memory(_)).then_some(self.settled);
        let (inside, tag, adjust_mss) =
            match (subinterface.map(|index| &mut port.subinterfaces[index]), &mut port.inside) {
                (Some(subinterface), _) => {
                    let (tag, adjust_mss) = (subinterface.tag(), subinterface.adjust_mss);
                    (&mut subinterface.inside, tag, adjust_mss)
                }
                (None, Some(inside)) => (inside, None, adjust_mss),
                (None, None) => return,
            };
        if !inside.ring.is_ready() {
            return;
        }
        let now = self.clock.now();
        while port.arrivals.len() < WAITING {
            let taken = inside.ring.take(|stamp, bytes| {
                let bytes = match tag {
                    None => bytes,
                    Some(_) => {
                        retag(bytes, tag, &mut self.bytes);
                        &self.bytes
                    }
                };
                // The kernel's interfaces send packets of at most 1500 bytes, so a tag has room.
                let mut descriptor = parse(bytes, port.framing);
                let transit = in_transit(&self.keys, (&mut self.in_transit, &mut self.fragmented), now, bytes);
                let frame = self.pool.put(bytes);
                if let Some(most) = adjust_mss {
                    lower_mss(self.pool.get_mut(&frame), most);
                }
                let event = match transit {
                    Some(transit) => {
                        transit.restore(&mut descriptor);
                        transit.event
                    }
                    None => {
                        // It may be the answer to a frame that the kernel received before its time.
                        let sent = if self.passed > now { self.passed } else { self.clock.event(stamp, now) };
                        let own = self.sla.leaving(bytes, sent, settled);
                        if let Some(stamp) = own.stamp {
                            stamp_reply(self.pool.get_mut(&frame), stamp, stamp);
                        }
                        own.at
                    }
                };
                let held = Held { frame, dscp: descriptor.dscp, ecn: descriptor.ecn, cos: descriptor.cos };
                Arrival { event, descriptor, held }
            });
            match taken {
                None => break,
                Some(Err(_)) => self.counts.malformed += 1,
                Some(Ok(arrival)) => port.arrivals.push(arrival),
            }
        }
    }

    /// Passes frames from the router's side up to the reached time to the engine, in the order of event time over all
    /// ports, because a switch's ports share their memory.
    pub(super) fn process_arrivals(&mut self) {
        for port in &mut self.ports {
            port.arrivals.sort_by_key(|a| a.event);
            let due = port.arrivals.partition_point(|a| a.event <= self.reached);
            self.due.extend(port.arrivals.drain(..due).map(|arrival| (port.id, arrival)));
        }
        self.due.sort_by_key(|(_, arrival)| arrival.event);
        for (port, Arrival { event, descriptor, held }) in self.due.drain(..) {
            self.engine.transmit(event, port, descriptor, held);
        }
    }

    /// Sends the due frames of a link, and records their lateness.
    pub(super) fn flush_wire(&mut self, port: usize) {
        let Wire::Interface(wire) = &mut self.ports[port].wire else { return self.flush_copies(port) };
        if wire.sending.is_empty() {
            return;
        }
        let (clock, lateness, counts) = (&self.clock, &mut self.lateness, &mut self.counts);
        let mut before = clock.now();
        counts.unsent += wire.flush(&mut self.pool, |batch| {
            // The frames of a batch leave one by one while the call lasts: take them as evenly spaced.
            let after = clock.now();
            let each = after.since(before).0 / batch.len().max(1) as u64;
            for (number, sending) in (1..).zip(batch) {
                let left = Time(before.0 + each * number);
                lateness.record(port, sending.time.0, left.0);
            }
            counts.transmitted += batch.len() as u64;
            before = after;
        });
    }
}

/// Looks up the stored values of a frame from the kernel, in the ledgers of packets and of fragmented packets: a
/// fragment that the kernel has made inherits the values of the first fragment before it.
fn in_transit(
    keys: &TransitKeys,
    (packets, fragmented): (&mut InTransit, &mut InTransit),
    now: Time,
    bytes: &[u8],
) -> Option<Transit> {
    let transit = keys.key(bytes).and_then(|key| packets.take(now.0, key));
    let Some(fragment) = keys.fragment(bytes) else { return transit };
    let transit = transit.or_else(|| fragmented.take(now.0, fragment.packet));
    if let Some(transit) = transit.filter(|_| fragment.more) {
        fragmented.insert(now.0, fragment.packet, transit);
    }
    transit
}
