//! Any packets at IP SLA's operations and responder: only permitted packets are answered, and the counts agree.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ip_sla::packet::{self, Control, CONTROL_PORT};
use ip_sla::responder::{LEAST_PORT, MOST_PORTS};
use ip_sla::{Channel, Config, Nanos, Prober, Responder, Send, MILLI, SECOND};

use crate::decisions::Input;

const START: Nanos = 1_700_000_000 * SECOND;
const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const TARGET_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const PERMANENT: u16 = 2000;
const CONFIG: &str = r#"{"operations": {
    "1": {"type": "icmp-echo", "target": "192.0.2.1", "frequency_s": 1, "timeout_ms": 900, "threshold_ms": 9,
        "schedule": {"life_s": null, "start": "now"}},
    "2": {"type": "icmp-jitter", "target": "192.0.2.1", "frequency_s": 2, "timeout_ms": 900, "threshold_ms": 9,
        "schedule": {"life_s": 60, "start": {"after": 1}, "ageout_s": 30}},
    "3": {"type": "udp-echo", "target": "192.0.2.1", "target_port": 7, "control": false, "frequency_s": 2,
        "timeout_ms": 900, "threshold_ms": 9, "schedule": {"life_s": null, "start": "now"}},
    "4": {"type": "udp-jitter", "target": "192.0.2.1", "target_port": 5000, "source_port": 6000, "frequency_s": 2,
        "timeout_ms": 900, "threshold_ms": 9, "schedule": {"life_s": null, "start": "now"}},
    "5": {"type": "icmp-echo", "target": "2001:db8::1", "frequency_s": 1, "timeout_ms": 900, "threshold_ms": 9,
        "schedule": {"life_s": null, "start": "now"}}}}"#;

static OPERATIONS: LazyLock<Config> = LazyLock::new(|| {
    let config: Config = serde_json::from_str(CONFIG).expect("the configuration is well-formed");
    config.check().expect("the configuration is in range");
    config
});

/// Limit of successive due actions: the packets of all runs in the longest pause, plus a margin.
const MOST_ROUNDS: u32 = 10_000;

/// Operations and a responder, and the packets recently sent by the operations.
struct Both {
    now: Nanos,
    prober: Prober,
    responder: Responder,
    sends: Vec<Send>,
}

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let mut both = Both { now: START, prober: Prober::new(7), responder: Responder::default(), sends: Vec::new() };
    both.prober.configure(&OPERATIONS, START);
    both.responder.configure(&[PERMANENT], &[]);
    let mut input = Input(bytes);
    while !input.is_empty() {
        match input.byte() % 6 {
            0 => both.pass(Nanos::from(input.word()) * MILLI),
            1 => both.poll(input.byte()),
            2 => both.deliver_answer(input.byte(), input.word()),
            3 => both.anything(&mut input),
            4 => both.deliver_control(&mut input),
            _ => both.deliver_probe(&mut input),
        }
        both.hold();
    }
}

impl Both {
    fn pass(&mut self, time: Nanos) {
        self.now += time;
        self.responder.poll(self.now);
    }

    /// Sends the due packets, or reports their failure.
    fn poll(&mut self, refused: u8) {
        self.sends.clear();
        let mut sends = Vec::new();
        for round in 0.. {
            self.prober.poll(self.now, &mut sends);
            for send in &sends {
                match send.sequence {
                    _ if refused % 8 == 1 => self.prober.record_unsent(send),
                    Some(sequence) => self.prober.record_sent(send.operation, sequence, self.now),
                    None => {}
                }
            }
            self.sends.append(&mut sends);
            if self.prober.deadline().is_none_or(|deadline| deadline > self.now) {
                break;
            }
            assert!(round < MOST_ROUNDS, "what is due does not end");
        }
    }

    /// Delivers the answer of another machine to a sent packet, correct or with one wrong byte.
    fn deliver_answer(&mut self, which: u8, wrong: u16) {
        let Some(send) = self.sends.get(usize::from(which) % self.sends.len().max(1)) else { return };
        let mut bytes = send.bytes.clone();
        match (send.channel, send.sequence) {
            (Channel::Icmp, _) => {
                bytes[0] = if bytes[0] == 128 { 129 } else { bytes[0].saturating_sub(8) + bytes[0] % 8 * 2 }
            }
            (Channel::Udp(_), None) => {
                let asked = Control::read(&bytes).expect("a control message");
                bytes = Control { reply: true, ..asked }.bytes();
            }
            (Channel::Udp(4), Some(_)) => packet::udp_jitter_answer(&mut bytes, self.now, self.now, wrong),
            (Channel::Udp(_), Some(_)) => {}
        }
        if let Some(byte) = bytes.get_mut(usize::from(wrong)) {
            *byte ^= 0x55;
        }
        let (channel, target) = (send.channel, send.target);
        self.prober.record_packet(channel, target, &bytes, self.now);
    }

    fn anything(&mut self, input: &mut Input<'_>) {
        let channel = match input.byte() % 6 {
            0 => Channel::Icmp,
            operation => Channel::Udp(u32::from(operation)),
        };
        let from = if input.byte() % 4 == 0 { TARGET_V6 } else { TARGET };
        let port = [0, 7, 5000, CONTROL_PORT][usize::from(input.byte() % 4)];
        let length = usize::from(input.byte());
        self.prober.record_packet(channel, (from, port), input.bytes(length), self.now);
    }

    /// Gives the responder a control message, well-formed or not.
    fn deliver_control(&mut self, input: &mut Input<'_>) {
        let from = (TARGET, input.word());
        let before = self.responder.counts;
        let bytes = if input.byte() % 2 == 0 {
            let (jitter, reply) = (input.byte() % 2 == 0, input.byte() % 8 == 0);
            let duration_ms = u32::from(input.word()) << (input.byte() % 16);
            Control { reply, jitter, port: input.word(), duration_ms, identifier: input.word() }.bytes()
        } else {
            let length = usize::from(input.byte());
            input.bytes(length).to_vec()
        };
        let answer = self.responder.control(from, &bytes, self.now);
        let after = self.responder.counts;
        match answer {
            Ok(answer) => {
                assert_eq!((after.control_messages, after.errors), (before.control_messages + 1, before.errors));
                let asked = Control::read(&bytes).expect("what is answered can be read");
                assert_eq!(Control::read(&answer), Some(Control { reply: true, ..asked }));
                assert_ne!(from.1, CONTROL_PORT);
                assert!(self.responder.ports().any(|port| port == asked.port));
            }
            Err(_) => assert_eq!((after.control_messages, after.errors), (before.control_messages, before.errors + 1)),
        }
    }

    /// Sends a packet to a port of the responder, and checks that the answer would not be answered again.
    fn deliver_probe(&mut self, input: &mut Input<'_>) {
        let port = if input.byte() % 2 == 0 { PERMANENT } else { input.word() };
        let from = (TARGET, input.word());
        let length = usize::from(input.byte());
        let mut bytes = input.bytes(length).to_vec();
        let before = bytes.len();
        if self.responder.answer(port, from, &mut bytes, self.now, self.now) {
            assert_eq!(bytes.len(), before);
            assert_ne!(from.1, CONTROL_PORT);
            assert!(self.responder.ports().any(|open| open == port));
            assert!(!self.responder.answer(port, from, &mut bytes, self.now, self.now), "an answer was answered");
        }
    }

    fn hold(&self) {
        let open: Vec<u16> = self.responder.ports().collect();
        assert!(open.len() <= MOST_PORTS + 1);
        assert!(open.iter().all(|port| *port == PERMANENT || *port >= LEAST_PORT));
        for report in self.prober.report(self.now, None, true).values() {
            for hour in &report.hours {
                let found = hour.statistics;
                assert_eq!(found.sent, found.rtt.count + found.losses.total + found.losses.late);
                assert_eq!(hour.failures, hour.timeouts + hour.busies + hour.no_connections);
            }
        }
    }
}
