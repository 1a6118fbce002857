//! IP SLA in the daemon: the operations and the responder of the `ip-sla` crate, with sockets in the network namespace
//! of the router's own IP stack.
//!
//! A probe is sent by a socket there, so the kernel routes it and it reaches the output queues like any other packet of
//! the router. T1 is the event time at which the frame reaches the engine: if the link is in memory, the due time of
//! the operation, regardless of the lateness of the daemon; otherwise the kernel's time stamp at the departure from the
//! IP stack, before policies and queues. T4 is the event time at which the last bit of the reply has arrived on the
//! wire side and has passed the input policy. A responder's T2 is taken like T4, and T3 just before the reply is handed
//! to the kernel. Packets that never cross a port (a probe to an address of the router itself, or a prober on a host,
//! which has no engine) have the kernel's receive stamps of the socket instead.
//!
//! If the configuration has a time per packet at process level ([`ProcessLevel`]), packets spend it between T1 and the
//! output queues, between arrival and T2, and between arrival and T4. The kernel itself answers ICMP requests: its
//! answer leaves after process level has handled the request, and a timestamp reply is stamped with that time.

mod stamps;

use std::collections::btree_map::{BTreeMap, Entry};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use ip_sla::packet::icmp::{ECHO, ECHO_REPLY, ECHO_REPLY_V6, ECHO_V6, TIMESTAMP, TIMESTAMP_REPLY};
use ip_sla::packet::CONTROL_PORT;
use ip_sla::process_level::LONGEST_PROCESS_NS;
use ip_sla::{Channel, Config, Prober, ProcessLevel, Report, Send};
use ip_sla_host::responder::{self, Responder};
use netio::socket::{Family, Kind, Received, Socket};
use qos_core::{ConfigError, Time};

use crate::config::DataPlaneConfig;
use crate::daemon_clock::Clock;
use crate::frame;
use crate::namespace::Namespace;
use stamps::{Key, Stamps};

/// Maximum number of packets taken from one socket at a time, so that the others have their turn.
const TAKEN: usize = 64;
/// Limit of overdue work that operations catch up with; after a longer stop they continue from the end of the stop.
const MADE_UP_NS: u64 = 1_000_000_000;

/// A frame of the router's own.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Time at which the packet reaches the output policy and queues.
    pub at: Time,
    /// Times of reception and transmission in a timestamp reply, in milliseconds since midnight UT; none if its own
    /// stamps are used.
    pub stamp: Option<u32>,
}

/// A configuration that can be activated, with its open sockets.
#[derive(Debug)]
pub struct Prepared {
    process_ns: Option<u64>,
    config: Config,
    sockets: responder::Sockets,
}

/// Runs the operations and the responder.
#[derive(Debug)]
pub struct Agent {
    namespace: Namespace,
    prober: Prober,
    responder: Option<Responder>,
    config: Config,
    /// Sockets of operations, opened when they first send.
    sockets: BTreeMap<u32, Socket>,
    /// Their local ports of UDP, of which each version of IP has its own.
    ports: BTreeMap<(u16, Family), u32>,
    stamps: Stamps,
    process: ProcessLevel,
    /// Arrivals of ICMP requests that the kernel may answer.
    requests: Stamps,
    /// Time at which process switching of the responder's answers is done.
    answers: Stamps,
    /// Times at which packets of operations were due.
    dues: Stamps,
    /// Operations have been carried out up to this time.
    polled: Time,
    /// A socket may have packets.
    pending: bool,
    sends: Vec<Send>,
}

impl Agent {
    /// Returns an agent without operations, whose sockets will be opened in `namespace`.
    pub fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            // The kernel's interface numbers cannot be used here: two routers may have the same ones.
            prober: Prober::new(std::process::id() as u16),
            responder: None,
            config: Config::default(),
            sockets: BTreeMap::new(),
            ports: BTreeMap::new(),
            stamps: Stamps::default(),
            process: ProcessLevel::default(),
            requests: Stamps::default(),
            answers: Stamps::default(),
            dues: Stamps::default(),
            polled: Time(0),
            pending: false,
            sends: Vec::new(),
        }
    }

    /// Checks a configuration and opens its listening sockets, without changing anything.
    ///
    /// # Errors
    /// The path and reason; a port that cannot be opened.
    pub fn prepare(&mut self, config: &DataPlaneConfig) -> Result<Prepared, ConfigError> {
        let process_ns = config.process_ns;
        if let Some(each) = process_ns.filter(|&each| each > LONGEST_PROCESS_NS) {
            let message = format!("found {each}, expected at most {LONGEST_PROCESS_NS} (one second)");
            return Err(ConfigError::new("process_ns", message));
        }
        let config = config.ip_sla.clone().unwrap_or_default();
        config.check().map_err(|(path, message)| ConfigError::new(format!("ip_sla.{path}"), message))?;
        if matches!(self.namespace, Namespace::None) && config != Config::default() {
            let message = "the daemon was started without --kernel-netns, so it cannot reach the router's IP stack; \
                           start it with that option";
            return Err(ConfigError::new("ip_sla", message));
        }
        let mut sockets = responder::Sockets::new();
        if config.responder {
            // The operation gives up the port chosen by the kernel if another one wants it, and gets a new port for its
            // next packet.
            for port in &config.responder_ports {
                for family in Family::ALL {
                    if let Some(number) = self.ports.remove(&(*port, family)) {
                        self.sockets.remove(&number);
                    }
                }
            }
            let open = |kind| self.namespace.open(kind, None, 0);
            sockets = Responder::open_missing(&config.responder_ports, self.responder.as_ref(), open)
                .map_err(|error| ConfigError::new("ip_sla.responder", error.to_string()))?;
        }
        Ok(Prepared { process_ns, config, sockets })
    }

    /// Puts a configuration in force.
    pub fn configure(&mut self, prepared: Prepared, now: Time) {
        let Prepared { process_ns, config, sockets } = prepared;
        self.process.set(process_ns);
        for (number, operation) in &self.config.operations {
            // A socket is bound to the operation's addresses, ports and type of service.
            let stays = config.operations.get(number).is_some_and(|new| {
                ip_sla::OperationConfig { schedule: operation.schedule.clone(), ..new.clone() } == *operation
            });
            if !stays {
                self.sockets.remove(number);
            }
        }
        self.prober.configure(&config, now.0);
        if config.responder {
            let responder = self.responder.get_or_insert_default();
            responder.configure(&config.responder_ports, &config.responder_allow, sockets);
        } else {
            self.responder = None;
        }
        self.config = config;
        self.note_ports();
    }

    fn note_ports(&mut self) {
        let port = |socket: &Socket| Some((socket.udp_port()?, socket.family()));
        self.ports = self.sockets.iter().filter_map(|(number, socket)| Some((port(socket)?, *number))).collect();
    }

    /// Returns the descriptors of the sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        let responder = self.responder.iter().flat_map(Responder::descriptors);
        self.sockets.values().map(AsRawFd::as_raw_fd).chain(responder)
    }

    fn listens_on(&self, port: u16) -> bool {
        self.responder.as_ref().is_some_and(|r| r.listens_on(port))
    }

    /// Returns whether no packet can be its own.
    pub fn is_idle(&self) -> bool {
        self.sockets.is_empty() && self.responder.is_none() && !self.process.is_modelled()
    }

    /// Records that a descriptor is readable.
    pub fn wake(&mut self) {
        self.pending = true;
    }

    /// Returns the time at which [`step`](Self::step) has something to do.
    pub fn deadline(&self) -> Option<Time> {
        let responder = self.responder.as_ref().and_then(Responder::deadline);
        [self.prober.deadline(), responder].into_iter().flatten().min().map(Time)
    }

    /// Handles a frame that left the router's IP stack at `at`. With `settled`, it continues in event time, and
    /// departures are settled up to that time: a packet of an operation that was due later leaves at its due time, so
    /// that its wait for the daemon is not visible.
    pub fn leaving(&mut self, bytes: &[u8], at: Time, settled: Option<Time>) -> Own {
        let straight = Own { at, stamp: None };
        if self.is_idle() {
            return straight;
        }
        match frame::probe(bytes) {
            Some(frame::Probe::Icmp {
                kind: kind @ (ECHO | TIMESTAMP | ECHO_V6),
                destination,
                identifier,
                sequence,
                ..
            }) => {
                let at = self.due(&Key::icmp(destination, kind, identifier, sequence), settled).unwrap_or(at);
                self.prober.record_sent_icmp(identifier, sequence, at.0);
                Own { at: Time(self.process.take_up(at.0)), stamp: None }
            }
            Some(frame::Probe::Icmp {
                kind: kind @ (ECHO_REPLY | TIMESTAMP_REPLY | ECHO_REPLY_V6),
                destination,
                identifier,
                sequence,
                ..
            }) => {
                let request = match kind {
                    ECHO_REPLY => ECHO,
                    ECHO_REPLY_V6 => ECHO_V6,
                    _ => TIMESTAMP,
                };
                let arrived = self.requests.take(&Key::icmp(destination, request, identifier, sequence));
                let Some(arrived) = arrived.filter(|_| self.process.is_modelled()) else { return straight };
                let done = self.process.take_up(arrived);
                Own { at: Time(done), stamp: (kind == TIMESTAMP_REPLY).then(|| ip_sla::since_midnight(done)) }
            }
            Some(frame::Probe::Udp { destination, source_port, destination_port, payload, .. }) => {
                if let Some(&number) = self.ports.get(&(source_port, Family::of(destination))) {
                    let key = Key::udp(destination, source_port, destination_port, payload);
                    let at = self.due(&key, settled).unwrap_or(at);
                    if destination_port != CONTROL_PORT {
                        self.prober.record_sent_udp(number, payload, at.0);
                    }
                    return Own { at: Time(self.process.take_up(at.0)), stamp: None };
                }
                let done = self.answers.take(&Key::udp(destination, source_port, destination_port, payload));
                Own { at: Time(at.0.max(done.unwrap_or(0))), stamp: None }
            }
            _ => straight,
        }
    }

    fn due(&mut self, packet: &Key, settled: Option<Time>) -> Option<Time> {
        let due = self.dues.take(packet).map(Time)?;
        (due > settled?).then_some(due)
    }

    /// Handles a frame from a link to the router's IP stack whose last bit arrived at `at`.
    pub fn arriving(&mut self, bytes: &[u8], at: Time) {
        if self.is_idle() {
            return;
        }
        let Some(probe) = frame::probe(bytes) else { return };
        let ours = match probe {
            frame::Probe::Icmp { kind: ECHO | TIMESTAMP | ECHO_V6, .. } => {
                if self.process.is_modelled() {
                    self.requests.replace(Key::of(&probe), at.0);
                }
                false
            }
            frame::Probe::Icmp { .. } => !self.sockets.is_empty(),
            frame::Probe::Udp { source, destination_port: port, .. } => {
                self.ports.contains_key(&(port, Family::of(source))) || self.listens_on(port)
            }
        };
        if ours {
            self.stamps.insert(Key::of(&probe), at.0);
            self.pending = true;
        }
    }

    /// Reads arrived packets, starts and ends due operations, and sends.
    pub fn step(&mut self, clock: &Clock) {
        if std::mem::take(&mut self.pending) {
            self.receive(clock);
        }
        let now = clock.now();
        let mut sends = std::mem::take(&mut self.sends);
        while let Some(due) = self.deadline().filter(|&at| at <= now) {
            // Packets are sent at their times, in turn: after a stall two packets of an operation are spaced as usual.
            let due = due.0.max(self.polled.0).max(now.0.saturating_sub(MADE_UP_NS));
            self.polled = Time(due);
            if let Some(responder) = &mut self.responder {
                responder.poll(due);
            }
            self.prober.poll(due, &mut sends);
            for send in sends.drain(..) {
                let at = clock.now();
                match self.send(&send, due) {
                    Err(_) => self.prober.record_unsent(&send),
                    Ok(()) => {
                        if let Some(sequence) = send.sequence {
                            self.prober.record_sent(send.operation, sequence, at.0);
                        }
                    }
                }
            }
        }
        self.sends = sends;
    }

    fn send(&mut self, send: &Send, due: u64) -> io::Result<()> {
        if let Entry::Vacant(missing) = self.sockets.entry(send.operation) {
            let kind = match send.channel {
                Channel::Icmp => Kind::Icmp { target: send.target.0 },
                Channel::Udp(number) => {
                    let port = self.prober.source_port(number).unwrap_or(0);
                    Kind::Udp { family: Family::of(send.target.0), port }
                }
            };
            missing.insert(self.namespace.open(kind, send.source, send.tos)?);
            self.note_ports();
        }
        let socket = &self.sockets[&send.operation];
        self.dues.replace(Key::of_sent(send, socket.udp_port()), due);
        socket.send(&send.bytes, send.target)
    }

    fn receive(&mut self, clock: &Clock) {
        let Self { prober, stamps, process, answers, namespace, pending, .. } = self;
        for (number, socket) in &mut self.sockets {
            let own = socket.udp_port();
            let channel = own.map_or(Channel::Icmp, |_| Channel::Udp(*number));
            for taken in 0.. {
                let now = clock.now();
                let Some(received) = socket.receive() else { break };
                let at = arrival(stamps, process, own, &received, clock, now);
                prober.record_packet(channel, received.from, &received.bytes, at);
                if taken == TAKEN {
                    *pending = true;
                    break;
                }
            }
        }
        let Some(responder) = &mut self.responder else { return };
        let ports: Vec<(u16, Family)> = responder.ports().collect();
        for (port, family) in ports {
            for taken in 0.. {
                let now = clock.now();
                let Some(received) = responder.receive((port, family)) else { break };
                let at = arrival(stamps, process, Some(port), &received, clock, now);
                let open = |kind| namespace.open(kind, None, 0);
                let (to, sending) = (received.from, clock.now().0.max(at));
                match responder.serve(port, received, at, || sending, open) {
                    // The answer leaves when process switching is finished, not when the daemon was.
                    Ok(Some(answer)) if process.is_modelled() => {
                        answers.replace(Key::udp(to.0, port, to.1, &answer), sending);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        if let Some(line) = responder.complaint(&error, now.0) {
                            eprintln!("qos-router: IP SLA responder: {line}");
                        }
                    }
                }
                if taken == TAKEN {
                    *pending = true;
                    break;
                }
            }
        }
    }

    /// Returns the results of one operation or of all.
    pub fn report(&self, now: Time, operation: Option<u32>, samples: bool) -> Report {
        let responder = self.responder.as_ref().map(Responder::protocol);
        Report::new(now.0, &self.prober, responder, operation, samples)
    }
}

/// Returns the time at which a process receives a packet: after process level, for a packet seen at a port, otherwise
/// the kernel's receive time. If several sockets receive the packet, only the first one gets the port's time stamp, so
/// process level handles the packet only once.
fn arrival(
    stamps: &mut Stamps,
    process: &mut ProcessLevel,
    own: Option<u16>,
    received: &Received,
    clock: &Clock,
    now: Time,
) -> u64 {
    match stamps.take(&Key::of_received(received, own)) {
        Some(arrived) => process.take_up(arrived),
        None => clock.event(received.stamp, now).0,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use proptest::prelude::*;

    const NEAR: [u8; 4] = [10, 0, 0, 1];
    const FAR: [u8; 4] = [10, 0, 0, 2];
    const EACH: u64 = 320_000;

    fn agent(each: Option<u64>) -> Agent {
        let mut agent = Agent::new(Namespace::None);
        let config = serde_json::json!({"format": 1, "router": "R", "generation": "classic", "process_ns": each});
        let config = DataPlaneConfig::from_json(&config.to_string()).unwrap();
        let prepared = agent.prepare(&config).unwrap();
        agent.configure(prepared, Time(0));
        agent
    }

    fn packet(source: [u8; 4], destination: [u8; 4], protocol: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((20 + body.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
        frame.extend(source);
        frame.extend(destination);
        frame.extend(body);
        frame
    }

    fn icmp(source: [u8; 4], destination: [u8; 4], kind: u8, sequence: u16) -> Vec<u8> {
        let mut body = vec![kind, 0, 0, 0, 0, 7];
        body.extend(sequence.to_be_bytes());
        body.resize(20, 0);
        packet(source, destination, 1, &body)
    }

    fn icmpv6(source: u8, destination: u8, kind: u8, sequence: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 58, 64]);
        for host in [source, destination] {
            frame.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        frame.extend([kind, 0, 0, 0, 0, 7]);
        frame.extend(sequence.to_be_bytes());
        frame
    }

    #[test]
    fn process_level_takes_up_ipv6_like_ipv4() {
        let mut agent = agent(Some(EACH));
        assert_eq!(agent.leaving(&icmpv6(1, 2, ECHO_V6, 1), Time(1_000_000), None).at, Time(1_000_000 + EACH));
        agent.arriving(&icmpv6(2, 1, ECHO_V6, 5), Time(9_000_000));
        // The kernel answered at once, but later than that: the answer leaves when process switching is finished.
        let own = agent.leaving(&icmpv6(1, 2, ECHO_REPLY_V6, 5), Time(9_000_100), None);
        assert_eq!((own.at, own.stamp), (Time(9_000_000 + EACH), None));
        // Neighbour discovery takes no time.
        assert_eq!(agent.leaving(&icmpv6(1, 2, 135, 1), Time(10_000_000), None).at, Time(10_000_000));
    }

    #[test]
    fn a_request_leaves_after_its_process_switching() {
        let mut agent = agent(Some(EACH));
        for kind in [ECHO, TIMESTAMP] {
            let at = Time(1_000_000_000 * u64::from(kind));
            let own = agent.leaving(&icmp(NEAR, FAR, kind, 1), at, None);
            assert_eq!((own.at, own.stamp), (Time(at.0 + EACH), None));
        }
        // Packets that are not process-switched pass at once, here a flood that the router only forwards.
        let own = agent.leaving(&packet(NEAR, FAR, 17, &[0; 20]), Time(5), None);
        assert_eq!((own.at, own.stamp), (Time(5), None));
    }

    #[test]
    fn a_probe_leaves_when_due_with_its_event_time() {
        let send = |channel, bytes| Send {
            operation: 1,
            sequence: Some(1),
            channel,
            target: (FAR.into(), 5_000),
            source: None,
            tos: 0,
            bytes,
        };
        let frame = icmp(NEAR, FAR, TIMESTAMP, 1);
        let probe = send(Channel::Icmp, frame[34..].to_vec());
        // It is too late where the router has settled what left later, as where the link has a time of its own.
        let (due, seen) = (1_000_000, 3_300_000);
        for (settled, at) in [(Some(Time(due - 1)), due), (Some(Time(due)), seen), (None, seen)] {
            let mut agent = agent(Some(EACH));
            agent.dues.replace(Key::of_sent(&probe, None), due);
            assert_eq!(agent.leaving(&frame, Time(seen), settled).at, Time(at + EACH));
        }
        let mut agent = agent(Some(EACH));
        // Sent again before it was due: at the time at which it was seen.
        assert_eq!(agent.leaving(&frame, Time(9_000_000), Some(Time(0))).at, Time(9_000_000 + EACH));

        agent.ports.insert((2_000, Family::V4), 1);
        let mut body = vec![0x07, 0xd0, 0x13, 0x88, 0, 0, 0, 0];
        body.extend(b"probe");
        agent.dues.replace(Key::of_sent(&send(Channel::Udp(1), b"probe".to_vec()), Some(2_000)), 20_000_000);
        let own = agent.leaving(&packet(NEAR, FAR, 17, &body), Time(21_000_000), Some(Time(0)));
        assert_eq!(own.at, Time(20_000_000 + EACH));
    }

    #[test]
    fn kernel_answers_without_process_level() {
        let mut agent = agent(None);
        agent.arriving(&icmp(FAR, NEAR, TIMESTAMP, 1), Time(1_000));
        let own = agent.leaving(&icmp(NEAR, FAR, TIMESTAMP_REPLY, 1), Time(1_500), None);
        assert_eq!((own.at, own.stamp), (Time(1_500), None));
    }

    #[test]
    fn an_answer_of_the_responder_waits_for_process_level() {
        let mut agent = agent(Some(EACH));
        let to = (IpAddr::from(FAR), 2_000);
        let frame = |payload: &[u8]| {
            let mut body = vec![0x13, 0x88, 0x07, 0xd0, 0, 0, 0, 0];
            body.extend(payload);
            packet(NEAR, FAR, 17, &body)
        };
        for answer in [&b"answer"[..], b"late"] {
            agent.answers.replace(Key::udp(to.0, 5_000, to.1, answer), 9_000);
        }
        assert_eq!(agent.leaving(&frame(b"answer"), Time(8_000), None).at, Time(9_000));
        assert_eq!(agent.leaving(&frame(b"late"), Time(10_000), None).at, Time(10_000));
        assert_eq!(agent.leaving(&frame(b"answer"), Time(8_000), None).at, Time(8_000));
    }

    #[test]
    fn process_time_above_a_second_is_refused() {
        let config = r#"{"format": 1, "router": "R", "generation": "hqf", "process_ns": 1000000001}"#;
        let error = agent(None).prepare(&DataPlaneConfig::from_json(config).unwrap()).unwrap_err().to_string();
        assert!(error.contains("process_ns") && error.contains("1000000001"), "{error}");
    }

    proptest! {
        /// An answer's time is that of the request, however late the daemon and the kernel were.
        #[test]
        fn answers_are_timed_by_their_requests(
            gaps in prop::collection::vec(1u64..3_000_000, 1..40), late in prop::collection::vec(0u64..100_000_000, 40)
        ) {
            let mut agent = agent(Some(EACH));
            let (mut at, mut free) = (86_400_000_000_000, 0);
            for (sequence, (gap, late)) in gaps.into_iter().zip(late).enumerate() {
                at += gap;
                free = at.max(free) + EACH;
                agent.arriving(&icmp(FAR, NEAR, TIMESTAMP, sequence as u16), Time(at));
                let own = agent.leaving(&icmp(NEAR, FAR, TIMESTAMP_REPLY, sequence as u16), Time(at + late), None);
                prop_assert_eq!(own.at, Time(free));
                prop_assert_eq!(own.stamp, Some(ip_sla::since_midnight(free)));
            }
        }
    }
}
