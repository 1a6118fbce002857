//! Operations over the loopback interface, with the kernel's stamps.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ip_sla::config::{Schedule, Start};
use ip_sla::{Config, Kind, OperationConfig, ReturnCode};
use ip_sla_host::{Responder, Sender};
use netio::socket::{self, Socket};

const TURN: Duration = Duration::from_millis(20);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn operation(target_port: u16) -> OperationConfig {
    OperationConfig {
        kind: Kind::UdpEcho,
        target: Ipv4Addr::LOCALHOST,
        target_port: Some(target_port),
        source: None,
        source_port: None,
        control: false,
        packets: 10,
        interval_ms: 20,
        frequency_s: 60,
        timeout_ms: 5000,
        threshold_ms: 5000,
        request_data_size: None,
        tos: 0,
        hours: 2,
        buckets: 1,
        bucket_ms: 20,
        schedule: Some(Schedule { life_s: None, start: Start::Now, ageout_s: 0, recurring: false }),
    }
}

#[test]
fn the_time_that_the_other_end_takes_is_in_the_round_trip() {
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    let echo = thread::spawn(move || {
        let mut buffer = [0; 100];
        let (length, from) = other.recv_from(&mut buffer).unwrap();
        thread::sleep(TURN);
        other.send_to(&buffer[..length], from).unwrap();
    });
    let config = Config { operations: [(1, operation(port))].into(), ..Config::default() };
    let mut sender = Sender::new(&config, now());
    let limit = now() + 10_000_000_000;
    let found = loop {
        sender.step(now);
        let report = sender.report(now()).remove(&1).unwrap();
        if report.latest.return_code != ReturnCode::Unknown {
            break report;
        }
        assert!(now() < limit, "no answer");
        thread::sleep(Duration::from_millis(1));
    };
    echo.join().unwrap();
    assert_eq!(found.latest.return_code, ReturnCode::Ok);
    let sample = found.samples[0];
    assert!(sample.arrived_ns - sample.sent_ns >= TURN.as_nanos() as u64, "{sample:?}");
    assert!(sender.errors.is_empty());
}

#[test]
fn the_kernel_stamps_what_leaves() {
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = (Ipv4Addr::LOCALHOST, other.local_addr().unwrap().port());
    let mut socket = Socket::open(socket::Kind::Udp { port: 0 }, None, 0).unwrap();
    socket.stamp_departures().unwrap();
    let before = now();
    for _ in 0..3 {
        socket.send(b"x", target).unwrap();
    }
    let after = now();
    let left: Vec<_> = std::iter::from_fn(|| socket.left()).collect();
    assert_eq!(left.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(left.iter().all(|(at, _)| (before..=after).contains(at)), "{before} {left:?} {after}");
    // The kernel counts anew.
    socket.stamp_departures().unwrap();
    socket.send(b"x", target).unwrap();
    assert_eq!(socket.left().map(|(_, number)| number), Some(0));
}

#[test]
fn a_port_that_is_taken_opens_nothing() {
    let taken = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let open = |port| Socket::open(socket::Kind::Udp { port }, None, 0);
    let error = Responder::open_missing(&[port], None, open).unwrap_err().to_string();
    assert!(error.contains(&format!("UDP port {port}")) && error.contains("end what uses it"), "{error}");
}
