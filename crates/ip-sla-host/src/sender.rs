//! The operations of a host, each with its socket.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use ip_sla::{Channel, Config, Nanos, OperationReport, Prober, Send};

use netio::socket::{Family, Kind, Socket};

/// Maximum number of packets with an outstanding departure stamp; older ones are considered unsent.
const WATCHED: usize = 1024;

/// Socket and the packets sent through it.
#[derive(Debug)]
struct Outlet {
    socket: Socket,
    /// Number of sent packets since the kernel began to count.
    sent: u32,
    /// Packets not yet known to have left: number and sequence number.
    watched: VecDeque<(u32, u16)>,
}

/// Runs the operations of a configuration with the kernel's stamps.
#[derive(Debug)]
pub struct Sender {
    prober: Prober,
    outlets: BTreeMap<u32, Outlet>,
    sends: Vec<Send>,
    /// Latest reason why packets could not be sent, by operation.
    pub errors: BTreeMap<u32, String>,
}

impl Sender {
    /// Activates a checked configuration.
    pub fn new(config: &Config, now: Nanos) -> Self {
        let mut prober = Prober::new(std::process::id() as u16);
        prober.configure(config, now);
        Self { prober, outlets: BTreeMap::new(), sends: Vec::new(), errors: BTreeMap::new() }
    }

    /// Returns the descriptors of the sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.outlets.values().map(|outlet| outlet.socket.as_raw_fd())
    }

    /// Returns the time at which [`step`](Self::step) next has work to do.
    pub fn deadline(&self) -> Option<Nanos> {
        self.prober.deadline()
    }

    /// Reads the sockets, starts and ends due operations, and sends.
    pub fn step(&mut self, now: impl Fn() -> Nanos) {
        self.receive();
        let mut sends = std::mem::take(&mut self.sends);
        self.prober.poll(now(), &mut sends);
        for send in sends.drain(..) {
            let at = now();
            match self.send(&send) {
                Ok(()) => {
                    if let Some(sequence) = send.sequence {
                        self.prober.record_sent(send.operation, sequence, at);
                    }
                }
                Err(error) => {
                    self.errors.insert(send.operation, format!("cannot send to {}: {error}", send.target.0));
                    self.prober.record_unsent(&send);
                }
            }
        }
        self.sends = sends;
    }

    fn send(&mut self, send: &Send) -> io::Result<()> {
        let outlet = match self.outlets.entry(send.operation) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let kind = match send.channel {
                    Channel::Icmp => Kind::Icmp { target: send.target.0 },
                    Channel::Udp(number) => {
                        let port = self.prober.source_port(number).unwrap_or(0);
                        Kind::Udp { family: Family::of(send.target.0), port }
                    }
                };
                let socket = Socket::open(kind, send.source, send.tos)?;
                socket.stamp_departures()?;
                entry.insert(Outlet { socket, sent: 0, watched: VecDeque::new() })
            }
        };
        if let Err(error) = outlet.socket.send(&send.bytes, send.target) {
            // It is unknown whether the kernel counted the packet, so both counts restart.
            outlet.socket.stamp_departures()?;
            outlet.sent = 0;
            outlet.watched.clear();
            return Err(error);
        }
        if let Some(sequence) = send.sequence {
            if outlet.watched.len() == WATCHED {
                outlet.watched.pop_front();
            }
            outlet.watched.push_back((outlet.sent, sequence));
        }
        outlet.sent = outlet.sent.wrapping_add(1);
        Ok(())
    }

    fn receive(&mut self) {
        for (operation, outlet) in &mut self.outlets {
            // Departures first: an answer is never earlier than the stamp of its packet.
            while let Some((at, number)) = outlet.socket.next_departure() {
                if let Some(place) = outlet.watched.iter().position(|(each, _)| *each == number) {
                    let (_, sequence) = outlet.watched.remove(place).expect("it was just found");
                    self.prober.record_sent(*operation, sequence, at);
                }
            }
            let channel = outlet.socket.udp_port().map_or(Channel::Icmp, |_| Channel::Udp(*operation));
            while let Some(received) = outlet.socket.receive() {
                self.prober.record_packet(channel, received.from, &received.bytes, received.stamp);
            }
        }
    }

    /// Returns the measurements, with the stamps of each packet.
    pub fn report(&self, now: Nanos) -> BTreeMap<u32, OperationReport> {
        self.prober.report(now, None, true)
    }
}
