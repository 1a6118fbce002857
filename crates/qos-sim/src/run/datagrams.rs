//! UDP streams in the run: datagrams that are due, and datagrams that arrive.

use std::io::{self, Write};

use qos_core::wire::ip::ecn;
use qos_core::Time;

use super::world::World;
use super::Run;
use crate::event_queue::Event;
use crate::packet::{Content, Way};
use crate::traffic::udp::{Datagram, Step};

impl<W: Write> Run<'_, W> {
    /// Sends the due datagrams of a source.
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
                    let udp = &mut self.world.traffic.datagrams[stream];
                    let content =
                        Content::Udp { stream: stream as u32, number: udp.record_sent(payload), sent: now, payload };
                    let number = udp.stream;
                    let way = &self.world.traffic.streams[number].ways[Way::Forward as usize];
                    let mut packet = way.packet(number, Way::Forward, ecn::NOT_ECT, content);
                    packet.destination_port = port;
                    self.send(now, packet)?;
                }
            }
        }
    }
}

impl World {
    /// Handles a datagram that has arrived at its host.
    pub(super) fn datagram_arrives(&mut self, now: Time, number: usize, sequence: u64, sent: Time, payload: u32) {
        let udp = &mut self.traffic.datagrams[number];
        udp.arrives(now, sequence, sent, payload);
        let stream = &mut self.traffic.streams[udp.stream];
        stream.delays.record(now.since(sent).0);
        let first = *self.traffic.flows[stream.flow].first_arrival.get_or_insert(now);
        stream.arrivals.add(now.since(first), u64::from(payload));
    }
}
