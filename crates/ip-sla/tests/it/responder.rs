//! Access of unauthorised senders to a responder.

use std::net::{IpAddr, Ipv4Addr};

use ip_sla::packet::{self, Control, CONTROL_PORT};
use ip_sla::responder::{Refusal, LONGEST_MS, MOST_PORTS};
use ip_sla::{Nanos, Responder, MILLI, SECOND};
use proptest::prelude::*;

const START: Nanos = 1_000 * SECOND;
const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

fn ask(port: u16, duration_ms: u32, jitter: bool) -> Vec<u8> {
    Control { identifier: 1, jitter, port, duration_ms, reply: false }.bytes()
}

/// A responder that listens on a port.
fn is_listening(port: u16, jitter: bool) -> Responder {
    let mut responder = Responder::default();
    responder.control((NEAR, 60_000), &ask(port, 60_000, jitter), START).unwrap();
    responder
}

#[test]
fn ten_thousand_control_messages_open_so_many_ports_for_so_long() {
    let mut responder = Responder::default();
    let mut refused = 0;
    for number in 0..10_000u16 {
        let asked = ask(20_000 + number, LONGEST_MS, false);
        match responder.control((NEAR, 60_000), &asked, START + u64::from(number)) {
            Ok(_) => assert!(usize::from(number) < MOST_PORTS),
            Err(refusal) => {
                assert_eq!(refusal, Refusal::TooMany(20_000 + number));
                refused += 1;
            }
        }
    }
    assert_eq!((responder.ports().count(), refused), (MOST_PORTS, 10_000 - MOST_PORTS as u64));
    assert_eq!((responder.counts.control_messages, responder.counts.errors), (MOST_PORTS as u64, refused));
    // The owner of a port may extend its time, each time counted from then.
    responder.control((NEAR, 60_000), &ask(20_000, LONGEST_MS, false), START + SECOND).unwrap();
    responder.poll(START + SECOND);
    assert_eq!(responder.ports().count(), MOST_PORTS);
    responder.poll(START + u64::from(LONGEST_MS) * MILLI + SECOND);
    assert_eq!(responder.ports().count(), 0);
}

#[test]
fn invalid_control_messages_are_refused() {
    let mut responder = Responder::default();
    responder.configure(&[7], &["10.0.0.0/30".parse().unwrap()]);
    let mut asked = |from, port, ms| responder.control(from, &ask(port, ms, false), START).map(drop);
    assert_eq!(asked((NEAR, 60_000), 5000, LONGEST_MS), Ok(()));
    assert_eq!(asked((NEAR, 60_000), 7, 1000), Ok(()), "it was configured");
    assert_eq!(asked((NEAR, 60_000), 5001, LONGEST_MS + 1), Err(Refusal::TooLong(LONGEST_MS + 1)));
    assert_eq!(asked((NEAR, 60_000), 1023, 1000), Err(Refusal::Privileged(1023)));
    let stranger = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 4));
    assert_eq!(asked((stranger, 60_000), 5000, 1000), Err(Refusal::Sender(stranger)));
    assert_eq!(asked((NEAR, CONTROL_PORT), 5000, 1000), Err(Refusal::Malformed));
    let other_family = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
    assert_eq!(asked((other_family, 60_000), 5000, 1000), Err(Refusal::Sender(other_family)));
    assert!(!responder.answer(7, (stranger, 60_000), &mut [1, 2, 3, 4], START, START));
    assert!(responder.answer(7, (NEAR, 60_000), &mut [1, 2, 3, 4], START, START));
}

/// Returns the number of packets exchanged by two responders after one forged packet between them.
fn bounced_packet(jitter: bool, ports: (u16, u16)) -> u32 {
    let (mut near, mut far) = (is_listening(ports.0, jitter), is_listening(ports.1, jitter));
    let mut bytes = if jitter { packet::udp_jitter(1, 1, START, 32) } else { packet::udp_echo(1, 16) };
    let mut at = START;
    for packets in 0..1000 {
        at += MILLI;
        let answered = match packets % 2 {
            0 => far.answer(ports.1, (NEAR, ports.0), &mut bytes, at, at),
            _ => near.answer(ports.0, (FAR, ports.1), &mut bytes, at, at),
        };
        if !answered {
            return packets;
        }
    }
    panic!("they go on for ever");
}

#[test]
fn two_responders_do_not_answer_each_other_for_ever() {
    for ports in [(5000, 5000), (5000, 6000)] {
        assert_eq!(bounced_packet(true, ports), 1);
        assert_eq!(bounced_packet(false, ports), 2);
    }
}

#[test]
fn the_same_echo_later_is_a_new_run() {
    let mut responder = is_listening(5000, false);
    let mut answered = |at| responder.answer(5000, (NEAR, 60_000), &mut packet::udp_echo(1, 16), at, at);
    assert_eq!([START, START + MILLI, START + 2 * SECOND].map(&mut answered), [true, false, true]);
}

proptest! {
    #[test]
    fn no_bytes_open_more_than_is_allowed(
        messages in prop::collection::vec((any::<u16>(), any::<u32>(), 0u64..10), 0..300)
    ) {
        let mut responder = Responder::default();
        let mut now = START;
        for (port, duration_ms, later) in messages {
            now += later * SECOND;
            responder.poll(now);
            let _ = responder.control((NEAR, 60_000), &ask(port, duration_ms, false), now);
            prop_assert!(responder.ports().count() <= MOST_PORTS);
            prop_assert!(responder.ports().all(|port| port >= 1024 && port != CONTROL_PORT));
        }
        responder.poll(now + u64::from(LONGEST_MS) * MILLI);
        prop_assert_eq!(responder.ports().count(), 0);
    }
}
