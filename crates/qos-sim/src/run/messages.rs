//! IP SLA messages in the run, from departure to arrival.
//!
//! Times are measured at the same points as in `qos-router`: T1 when the request leaves the IP stack (of a host, its
//! interface's queue), ahead of process level and the output policy; T2 and T4 after process level has taken up what
//! arrived. An answer leaves when process level is done with its request. ICMP errors are not simulated: an operation
//! that nobody answers ends by its timeout.

use std::io::{self, Write};
use std::net::IpAddr;

use ip_sla::packet::{self, CONTROL_PORT};
use ip_sla::{Channel, Send};
use qos_core::wire::protocol;
use qos_core::{Side, Time};

use super::agents::Agent;
use super::routes::Next;
use super::world::World;
use super::Run;
use crate::event_queue::Event;
use crate::packet::{describe_message, Content, Packet, PacketId, Way, INITIAL_TTL};
use crate::scenario::NodeKind;

/// Next step of a message after process level.
#[derive(Clone, Copy)]
enum Message {
    Leaves(PacketId),
    IsTaken(PacketId),
}

impl<W: Write> Run<'_, W> {
    /// Runs the due operations and the responder of a node, unless the traffic has ended.
    pub(super) fn agent_due(&mut self, node: usize, now: Time) -> io::Result<()> {
        if self.draining || !self.world.agents.of(node).is_due(now) {
            return Ok(());
        }
        for send in self.world.agents.of(node).poll(now) {
            let Some(packet) = self.world.request(node, &send) else {
                self.world.agents.of(node).prober.record_unsent(&send);
                continue;
            };
            let agent = self.world.agents.of(node);
            if let Some(sequence) = send.sequence {
                agent.prober.record_sent(send.operation, sequence, now.0);
            }
            let done = Time(agent.process.take_up(now.0));
            let packet = self.world.emit(packet, send.bytes);
            self.at(now, done, Message::Leaves(packet))?;
        }
        self.world.agents.schedule(node, now, &mut self.world.events);
        Ok(())
    }

    /// Schedules the next step of a message that process level completes at `done`.
    fn at(&mut self, now: Time, done: Time, message: Message) -> io::Result<()> {
        if done > now {
            let event = match message {
                Message::Leaves(packet) => Event::Leave(packet),
                Message::IsTaken(packet) => Event::Taken(packet),
            };
            self.world.events.put(done, event);
            return Ok(());
        }
        match message {
            Message::Leaves(packet) => self.leave(done, packet),
            Message::IsTaken(packet) => self.taken(done, packet),
        }
    }

    /// Sends a message from its node.
    pub(super) fn leave(&mut self, now: Time, id: PacketId) -> io::Result<()> {
        let world = &mut self.world;
        let packet = *world.pool.get(id);
        let node = world.routes.owner(packet.source).expect("who sends has the address");
        let end = match world.routes.next(node, packet.destination) {
            Next::By(end) => end,
            Next::Here => return self.reaches(node, now, now, id),
            Next::Nowhere => {
                world.tally.count_expired();
                world.pool.release(id);
                return Ok(());
            }
        };
        let at = &world.network.ends[end];
        let [source, destination] = [packet.source, packet.destination].map(|each| world.address(each));
        let descriptor = describe_message(&packet, world.pool.message(id), source, destination, at.framing);
        let (engine, port) = (at.engine, at.port);
        if world.network.nodes[node].kind == NodeKind::Router {
            world.transmit(end, now, &descriptor, id);
            world.schedule(engine);
            return Ok(());
        }
        let Some(taken) = world.hosts.send(node, end, now, &descriptor) else {
            world.pool.release(id);
            return Ok(());
        };
        world.agents.of(node).record_departure(&packet, world.pool.message(id), taken.leaves);
        world.engines.receive(engine, taken.entered, port, descriptor, id);
        world.schedule(engine);
        self.capture(end, Side::Wire, now, taken.starts, id)
    }

    /// Handles a packet to the node itself that arrived at `at`.
    pub(super) fn reaches(&mut self, node: usize, now: Time, at: Time, id: PacketId) -> io::Result<()> {
        let packet = *self.world.pool.get(id);
        let agent = self.world.agents.of(node);
        let done = if agent.accepts(&packet) { agent.process.take_up(at.0) } else { at.0 };
        self.at(now, Time(done), Message::IsTaken(id))
    }

    /// Handles an arrived message after process level.
    pub(super) fn taken(&mut self, at: Time, id: PacketId) -> io::Result<()> {
        let world = &mut self.world;
        world.tally.count_delivered();
        let mut message = world.pool.message(id).to_vec();
        let packet = *world.pool.get(id);
        world.pool.release(id);
        let Some(node) = world.routes.owner(packet.destination) else { return Ok(()) };
        let from = (world.address(packet.source), packet.source_port);
        let answer = world.agents.of(node).receive(&packet, from, &mut message, at);
        if let Some((answer, type_of_service)) = answer {
            let back = Packet {
                source: packet.destination,
                destination: packet.source,
                source_port: packet.destination_port,
                destination_port: packet.source_port,
                ..packet
            };
            if world.routes.next(node, back.destination) != Next::Nowhere {
                let packet = world.emit(message_packet(back, type_of_service, answer.len()), answer);
                self.leave(at, packet)?;
            }
        }
        if !self.draining {
            self.world.agents.schedule(node, at, &mut self.world.events);
        }
        Ok(())
    }

    /// Begins a probe.
    pub(super) fn probe_begins(&mut self, number: usize, now: Time) {
        let node = self.world.agents.begin_probe(number, now);
        self.world.agents.schedule(node, now, &mut self.world.events);
    }
}

impl Agent {
    /// Returns whether process level handles a packet: requests that the IP stack answers, and packets for its own
    /// operations and responder.
    fn accepts(&self, packet: &Packet) -> bool {
        match packet.protocol() {
            protocol::UDP => {
                let port = packet.destination_port;
                self.operation_at(port).is_some() || self.listens_on(port)
            }
            _ => true,
        }
    }

    /// Handles a message that arrived at `at`. Returns its answer, and the answer's type-of-service byte.
    fn receive(&mut self, packet: &Packet, from: (IpAddr, u16), message: &mut [u8], at: Time) -> Option<(Vec<u8>, u8)> {
        if packet.protocol() != protocol::UDP {
            let stamp = ip_sla::since_midnight(at.0);
            if let Some(answer) = packet::icmp_answer(message, packet.ipv6, stamp) {
                return Some((answer, (packet.dscp << 2) | packet.ecn));
            }
            self.prober.record_packet(Channel::Icmp, from, message, at.0);
            return None;
        }
        let port = packet.destination_port;
        if let Some(operation) = self.operation_at(port) {
            self.prober.record_packet(Channel::Udp(operation), from, message, at.0);
            return None;
        }
        let responder = self.responder.as_mut()?;
        let answer = if port == CONTROL_PORT {
            responder.control(from, message, at.0).ok()
        } else {
            responder.answer(port, from, message, at.0, at.0).then(|| message.to_vec())
        };
        answer.map(|answer| (answer, 0))
    }

    /// Handles a message that has left a host's queue.
    fn record_departure(&mut self, packet: &Packet, message: &[u8], at: Time) {
        if packet.protocol() == protocol::UDP {
            if let (Some(operation), false) =
                (self.operation_at(packet.source_port), packet.destination_port == CONTROL_PORT)
            {
                self.prober.record_sent_udp(operation, message, at.0);
            }
        } else if let [_, _, _, _, high, low, first, second, ..] = message {
            let [identifier, sequence] = [[*high, *low], [*first, *second]].map(u16::from_be_bytes);
            self.prober.record_sent_icmp(identifier, sequence, at.0);
        }
    }
}

impl World {
    /// Returns the address with a number.
    pub(super) fn address(&self, number: u32) -> IpAddr {
        self.traffic.addresses[number as usize]
    }

    /// Returns the packet of a message that an operation sends. `None` if there is no path to its target.
    fn request(&mut self, node: usize, send: &Send) -> Option<Packet> {
        let destination = self.traffic.number_of(send.target.0)?;
        let ipv6 = send.target.0.is_ipv6();
        let of_end = |end: usize| {
            let own = self.network.ends[end].addresses.iter().map(ipnet::IpNet::addr);
            own.into_iter().find(|address| address.is_ipv6() == ipv6)
        };
        let nearest = match self.routes.next(node, destination) {
            Next::By(end) => of_end(end)?,
            Next::Here => send.target.0,
            Next::Nowhere => return None,
        };
        let source = self.traffic.number_of(send.source.unwrap_or(nearest))?;
        if self.routes.owner(source) != Some(node) {
            return None;
        }
        let (number, source_port) = match send.channel {
            Channel::Udp(operation) => (protocol::UDP, self.agents.of(node).port_of(operation)?),
            Channel::Icmp if ipv6 => (protocol::ICMPV6, 0),
            Channel::Icmp => (protocol::ICMP, 0),
        };
        let packet = Packet {
            stream: u32::MAX,
            way: Way::Forward,
            source,
            destination,
            ipv6,
            ttl: INITIAL_TTL,
            dscp: 0,
            ecn: 0,
            tag: None,
            source_port,
            destination_port: send.target.1,
            content: Content::Message { protocol: number, bytes: 0 },
        };
        Some(message_packet(packet, send.tos, send.bytes.len()))
    }

    /// Adds a packet of a node's IP stack to the network.
    fn emit(&mut self, packet: Packet, mut message: Vec<u8>) -> PacketId {
        if packet.protocol() == protocol::ICMPV6 {
            complete_icmpv6(&mut message, [packet.source, packet.destination].map(|each| self.address(each)));
        }
        self.tally.count_offered();
        self.pool.put_message(packet, message)
    }
}

/// Returns the packet with a message, as created by its sender.
fn message_packet(packet: Packet, type_of_service: u8, bytes: usize) -> Packet {
    Packet {
        ttl: INITIAL_TTL,
        dscp: type_of_service >> 2,
        ecn: type_of_service & 3,
        tag: None,
        content: Content::Message { protocol: packet.protocol(), bytes: bytes as u32 },
        ..packet
    }
}

/// Fills in the checksum of an ICMPv6 message, which covers the addresses too (RFC 4443).
fn complete_icmpv6(message: &mut [u8], addresses: [IpAddr; 2]) {
    let [IpAddr::V6(source), IpAddr::V6(destination)] = addresses else { return };
    let mut summed = [source.octets(), destination.octets()].concat();
    summed.extend((message.len() as u32).to_be_bytes());
    summed.extend([0, 0, 0, protocol::ICMPV6]);
    message[2..4].fill(0);
    summed.extend_from_slice(message);
    let checksum = packet::checksum(&summed);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
}
