//! A question about one packet in the run: the packet arrives at the router at its time, and the run continues until it
//! has left.

use std::io::{self, Write};

use qos_core::config::defaults::DOT1Q_COS;
use qos_core::frame::HeaderRest;
use qos_core::{Descriptor, Output, PortId, Side, Time};

use super::Run;
use crate::event_queue::Event;
use crate::explain::{Asked, End, Explanation, InputPassage, InterfaceState, Marks, Next, OutputPassage, Port};
use crate::packet::{Content, Packet, PacketId, Way, INITIAL_TTL};

/// Input port that no router has: a packet from it is not the router's own, and matches no `match input-interface`.
const ELSEWHERE: PortId = PortId(u16::MAX);

/// A question under way.
#[derive(Debug)]
pub(super) struct Asking {
    asked: Asked,
    packet: PacketId,
    /// Station and port of its departure.
    output: Option<(usize, PortId)>,
    answer: Option<Explanation>,
}

impl<W: Write> Run<'_, W> {
    /// Runs until the packet of a question has left the router, or the run ends. `None`: the run ended before the
    /// packet arrived.
    pub fn explain(mut self, asked: Asked) -> io::Result<Option<Explanation>> {
        // As long as it is outstanding, the run does not end for lack of packets in transit.
        let packet = self.world.pool.put(Packet {
            stream: 0,
            way: Way::Forward,
            source: 0,
            destination: 0,
            ipv6: asked.descriptor.source.is_ipv6(),
            ttl: INITIAL_TTL,
            dscp: asked.descriptor.dscp,
            ecn: asked.descriptor.ecn,
            tag: None,
            source_port: 0,
            destination_port: 0,
            content: Content::Message { protocol: asked.descriptor.protocol, bytes: 0 },
        });
        self.traced = packet;
        self.world.events.put(asked.at, Event::Question);
        self.asking = Some(Box::new(Asking { asked, packet, output: None, answer: None }));
        self.advance_to()?;
        Ok(self.asking.and_then(|asking| asking.answer))
    }

    /// Sends the packet of the question to the router at its time.
    pub(super) fn ask(&mut self, now: Time) -> io::Result<()> {
        let Some(mut asking) = self.asking.take() else { return Ok(()) };
        let station = self.world.engines.of_node(asking.asked.node);
        // All other events of the router at this time have happened.
        self.settle(station, now)?;
        let mut descriptor = asking.asked.descriptor;
        let input = asking.asked.input.map(|port| self.input_passage(&asking.asked, port, now, &mut descriptor));
        let dropped = input.as_ref().is_some_and(|input| input.dropped.is_some());
        let (route, end, output) = match asking.asked.next {
            _ if dropped => (None, End::DroppedAtInput, None),
            Next::Here => (None, End::Received, None),
            Next::Nowhere => (None, End::NoRoute, None),
            Next::By(route, None) => (Some(route), End::NullRoute, None),
            Next::By(route, Some(port)) => {
                if input.is_none() {
                    descriptor.input_port = Some(ELSEWHERE);
                }
                let (place, output) = self.output_passage(port, now, descriptor, asking.packet);
                asking.output = Some(place);
                (Some(route), End::Waiting, Some(output))
            }
        };
        let at_ns = now.since(asking.asked.start).0;
        if output.is_none() {
            self.world.events.put(now, Event::End);
        }
        asking.answer = Some(Explanation { at_ns, input, route, end, output });
        self.asking = Some(asking);
        // Immediate drops come out now.
        self.settle(station, now)?;
        self.world.schedule(station);
        Ok(())
    }

    fn input_passage(&mut self, asked: &Asked, port: Port, now: Time, descriptor: &mut Descriptor) -> InputPassage {
        let at = &self.world.network.ends[port.end];
        let (station, id, framing) = (at.engine, at.port, at.framing);
        *descriptor = match port.vlan {
            Some(vlan) => descriptor.tagged(Some(vlan), asked.cos),
            None => descriptor.framed(framing),
        };
        descriptor.input_port = Some(id);
        let came = Marks::of(descriptor);
        let before = self.state(station, id, Side::Inside, now);
        let dropped = self.world.engines.admit(station, now, id, descriptor);
        InputPassage {
            came,
            went: Marks::of(descriptor),
            dropped: dropped.map(|reason| reason.name().to_owned()),
            before,
            after: self.state(station, id, Side::Inside, now),
        }
    }

    fn output_passage(
        &mut self,
        port: Port,
        now: Time,
        descriptor: Descriptor,
        packet: PacketId,
    ) -> ((usize, PortId), OutputPassage) {
        let at = &self.world.network.ends[port.end];
        let (station, id) = (at.engine, at.port);
        let descriptor = match port.vlan {
            Some(vlan) => descriptor.tagged(Some(vlan), DOT1Q_COS),
            None => Descriptor { cos: 0, vlan: 0, tags: 0, ..descriptor }.framed(at.framing),
        };
        self.world.engines.settle_outbound(station, now, id);
        let before = self.state(station, id, Side::Wire, now);
        self.world.engines.transmit(station, now, id, descriptor, packet);
        let passage = OutputPassage {
            came: Marks::of(&descriptor),
            left: None,
            dropped: None,
            time_ns: None,
            sent_ns: None,
            before,
            after: self.state(station, id, Side::Wire, now),
        };
        ((station, id), passage)
    }

    fn state(&mut self, station: usize, port: PortId, side: Side, now: Time) -> InterfaceState {
        let pool = &self.world.pool;
        let rest = |packet: &PacketId| HeaderRest { id: 0, ttl: pool.get(*packet).ttl };
        let counters = self.world.engines.interface_counters(station, now, port, &rest);
        let interface = counters.interfaces.into_values().next().expect("the port has counters");
        let buckets = self.world.engines.buckets(station, now, port, side);
        InterfaceState { interface, buckets, access_lists: counters.access_lists }
    }

    /// Records the output of an engine for the packet of the question.
    #[cold]
    pub(super) fn record_outcome(&mut self, now: Time, output: &Output<PacketId>) {
        let Some(mut asking) = self.asking.take() else { return };
        if let (Some((station, port)), Some(answer)) = (asking.output, &mut asking.answer) {
            let time = match output {
                Output::Departure(departure) => departure.time,
                Output::Dropped(dropped) => dropped.time,
            };
            let start = asking.asked.start;
            let delay = self.world.engines.delay_out(station, port);
            if let Some(passage) = &mut answer.output {
                passage.time_ns = Some(time.since(start).0);
                match output {
                    Output::Departure(departure) => {
                        passage.left = Some(Marks::of(&departure.descriptor));
                        passage.sent_ns = delay.map(|delay| (time - delay).since(start).0);
                        answer.end = End::Sent;
                    }
                    Output::Dropped(dropped) => {
                        passage.dropped = Some(dropped.reason.name().to_owned());
                        answer.end = End::DroppedAtOutput;
                    }
                }
            }
        }
        self.asking = Some(asking);
        self.world.events.put(now, Event::End);
    }
}
