//! UDP streams in the run: datagrams that are due, and datagrams that arrive.

use std::io::{self, Write};

use qos_core::wire::ip::ecn;
use qos_core::Time;

use super::world::World;
use super::Run;
use crate::event_queue::Event;
use crate::packet::{Content, Packet, Way, INITIAL_TTL};
use crate::traffic::udp::{Datagram, Step};
use crate::traffic::Kind;

impl<W: Write> Run<W> {
    /// A source has something to do.
    pub(super) fn datagram_due(&mut self, source: usize, now: Time) -> io::Result<()> {
        loop {
            match self.world.traffic.sources[source].step(now) {
                Step::Wait(due) => {
                    self.world.events.put(due, Event::Datagram(source as u32));
                    return Ok(());
                }
                Step::Done => {
                    self.world.traffic.sent_all(source);
                    return Ok(());
                }
                Step::Send(Datagram { stream, port, payload }) => {
                    let each = &mut self.world.traffic.streams[stream];
                    let Kind::Udp(udp) = &mut each.kind else { unreachable!("datagrams are of UDP") };
                    let content = Content::Udp { number: udp.sends(payload), sent: now, payload };
                    let packet = Packet {
                        stream: stream as u32,
                        way: Way::Forward,
                        source: each.to[0],
                        destination: each.to[1],
                        ipv6: each.addresses[0].is_ipv6(),
                        ttl: INITIAL_TTL,
                        dscp: each.dscp[0],
                        ecn: ecn::NOT_ECT,
                        tag: None,
                        source_port: each.local_port,
                        destination_port: port,
                        content,
                    };
                    self.send(now, packet)?;
                }
            }
        }
    }
}

impl World {
    /// A datagram has arrived at its host.
    pub(super) fn datagram_arrives(&mut self, now: Time, number: usize, sequence: u64, sent: Time, payload: u32) {
        let stream = &mut self.traffic.streams[number];
        let Kind::Udp(udp) = &mut stream.kind else { unreachable!("datagrams are of UDP") };
        let first = *self.traffic.flows[stream.flow].first_arrival.get_or_insert(now);
        udp.arrives(now, sequence, sent, payload);
        stream.arrivals.add(now.since(first), u64::from(payload));
    }
}
