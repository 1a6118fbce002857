//! Operations over the loopback interface, with the kernel's stamps.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ip_sla::config::{Schedule, Start};
use ip_sla::{Config, Kind, OperationConfig, OperationReport, ReturnCode};
use ip_sla_host::{responder::Sockets, Responder, Sender};
use netio::socket::{self, Family, Socket};

const TURN: Duration = Duration::from_millis(20);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

const BOTH: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

fn operation(target: IpAddr, target_port: u16) -> OperationConfig {
    OperationConfig {
        kind: Kind::UdpEcho,
        target,
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

/// Returns the operation's report after its first run; `serve` is called repeatedly until then.
fn measured_report(operation: OperationConfig, mut serve: impl FnMut()) -> OperationReport {
    let config = Config { operations: [(1, operation)].into(), ..Config::default() };
    config.check().unwrap();
    let mut sender = Sender::new(&config, now());
    let limit = now() + 10_000_000_000;
    loop {
        serve();
        sender.step(now);
        let report = sender.report(now()).remove(&1).unwrap();
        if report.latest.return_code != ReturnCode::Unknown {
            assert!(sender.errors.is_empty(), "{:?}", sender.errors);
            return report;
        }
        assert!(now() < limit, "no answer");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn round_trip_includes_processing_time_of_the_responder() {
    for address in BOTH {
        let other = UdpSocket::bind((address, 0)).unwrap();
        let port = other.local_addr().unwrap().port();
        let echo = thread::spawn(move || {
            let mut buffer = [0; 100];
            let (length, from) = other.recv_from(&mut buffer).unwrap();
            thread::sleep(TURN);
            other.send_to(&buffer[..length], from).unwrap();
        });
        let found = measured_report(operation(address, port), || {});
        echo.join().unwrap();
        assert_eq!(found.latest.return_code, ReturnCode::Ok);
        let sample = found.samples[0];
        assert!(sample.arrived_ns - sample.sent_ns >= TURN.as_nanos() as u64, "{sample:?}");
    }
}

#[test]
fn the_responder_answers_both_ip_versions_and_allowed_senders() {
    let open = |kind| Socket::open(kind, None, 0);
    let mut responder = Responder::new();
    let allowed = ["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
    // The control port may belong to another test for a while.
    let limit = now() + 10_000_000_000;
    let control = loop {
        match Responder::open_missing(&[], None, open) {
            Ok(sockets) => break sockets,
            Err(error) => assert!(error.kind() == ErrorKind::AddrInUse && now() < limit, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    };
    responder.configure(&[], &allowed, control);
    let serve = |responder: &mut Responder| {
        for port in responder.ports().collect::<Vec<_>>() {
            while let Some(received) = responder.receive(port) {
                let at = received.stamp;
                let _ = responder.serve(port.0, received, at, now, open);
            }
        }
    };
    // The port was free just before, so the listener is the responder, opened by the control message.
    let free = |address| UdpSocket::bind((address, 0)).unwrap().local_addr().unwrap().port();
    for address in BOTH {
        let jitter = OperationConfig {
            kind: Kind::UdpJitter,
            control: true,
            interval_ms: 4,
            tos: 0xb8,
            timeout_ms: 1000,
            ..operation(address, free(address))
        };
        let found = measured_report(jitter.clone(), || serve(&mut responder)).latest;
        assert_eq!((found.return_code, found.statistics.rtt.count), (ReturnCode::Ok, 10), "{address}");
        assert_eq!(found.statistics.losses.total, 0);
    }
    assert_eq!((responder.protocol().counts.control_messages, responder.protocol().counts.packets), (2, 20));
    // Another of the machine's addresses answers for itself: the kernel alone would answer from 127.0.0.1.
    let second = IpAddr::from([127, 0, 0, 2]);
    let found =
        measured_report(OperationConfig { control: true, ..operation(second, free(second)) }, || serve(&mut responder));
    assert_eq!(found.latest.return_code, ReturnCode::Ok);
    // A sender outside all prefixes of its family gets no answer.
    responder.configure(&[], &allowed[..1], Sockets::new());
    let stranger = OperationConfig { control: true, timeout_ms: 200, ..operation(BOTH[1], free(BOTH[1])) };
    assert_eq!(measured_report(stranger, || serve(&mut responder)).latest.return_code, ReturnCode::NoConnection);
}

#[test]
fn the_kernel_stamps_departing_packets() {
    for address in BOTH {
        let other = UdpSocket::bind((address, 0)).unwrap();
        let target = (address, other.local_addr().unwrap().port());
        let kind = socket::Kind::Udp { family: Family::of(address), port: 0 };
        let mut socket = Socket::open(kind, None, 0).unwrap();
        socket.stamp_departures().unwrap();
        let before = now();
        for _ in 0..3 {
            socket.send(b"x", target).unwrap();
        }
        let after = now();
        let left: Vec<_> = std::iter::from_fn(|| socket.next_departure()).collect();
        assert_eq!(left.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(left.iter().all(|(at, _)| (before..=after).contains(at)), "{before} {left:?} {after}");
        // The kernel restarts its count.
        socket.stamp_departures().unwrap();
        socket.send(b"x", target).unwrap();
        assert_eq!(socket.next_departure().map(|(_, number)| number), Some(0));
    }
}

#[test]
fn occupied_port_opens_no_socket() {
    let taken = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let open = |kind| Socket::open(kind, None, 0);
    let error = Responder::open_missing(&[port], None, open).unwrap_err().to_string();
    assert!(error.contains(&format!("UDP port {port}")) && error.contains("stop the program that uses it"), "{error}");
}
