//! The program against itself over loopback: the sender's counts equal those of the receiver.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const FLOOD: &str = env!("CARGO_BIN_EXE_flood");

fn run(words: &str) -> Output {
    Command::new(FLOOD).args(words.split_whitespace()).output().expect("flood starts")
}

fn sent(words: &str) -> Value {
    let output = run(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// A receiver that is ready, its port free until now.
struct Receiver {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Receiver {
    fn start(words: &str) -> Self {
        let mut process = Command::new(FLOOD)
            .args(["receive", "--interval", "0.05"])
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .expect("flood starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        // Its first line reports that it waits.
        let line = lines.next().expect("a line").expect("text");
        assert!(line.starts_with(r#"{"waiting""#), "{line}");
        Self { process, lines }
    }

    /// Lines of the output, and the last line.
    fn stop(mut self) -> (Vec<Value>, Value) {
        let pid = nix::unistd::Pid::from_raw(self.process.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::SIGINT).expect("it runs");
        let mut lines: Vec<Value> =
            self.lines.by_ref().map(|line| serde_json::from_str(&line.expect("text")).expect("JSON")).collect();
        assert!(self.process.wait().expect("it ends").success());
        let last = lines.pop().expect("a last line");
        (lines, last["received"].clone())
    }
}

fn free_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port()
}

#[test]
fn frames_are_sent_in_bursts_and_short_datagrams_are_counted() {
    let port = free_port();
    let receiver = Receiver::start(&format!("--port {port} --id 7"));
    let words = "--delay 50 --size 228 --frames 500,12,100 --streams 2 --duration 0.3 --id 7";
    let sent = sent(&format!("send 127.0.0.1 --port {port} {words}"));
    let (_, received) = receiver.stop();
    // Six frames of each stream: two cycles.
    assert_eq!((sent["packets"].as_u64(), sent["payload_bytes"].as_u64()), (Some(20), Some(2448)));
    assert_eq!(received["packets"], sent["packets"]);
    assert_eq!(received["payload_bytes"], sent["payload_bytes"]);
    assert_eq!(received["sources"].as_array().map(Vec::len), Some(2));
    assert_eq!(received["sources"][0]["missing"], 0);
}

#[test]
fn sent_datagrams_are_received() {
    let port = free_port();
    let receiver = Receiver::start(&format!("--port {port}"));
    // Packets that are not from a flood are counted separately.
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"hello", ("127.0.0.1", port)).unwrap();
    let output = sent(&format!(
        "send 127.0.0.1 --port {port} --bandwidth 2000 --size 200 --streams 3 --duration 0.2 --catch-up 1000"
    ));
    std::thread::sleep(std::time::Duration::from_millis(120));
    let (lines, received) = receiver.stop();
    // 200 bytes at 2 Mb/s: one every 0.8 ms, three times.
    assert_eq!(output["packets"], 750);
    assert_eq!(output["bytes"], 750 * 200);
    assert_eq!(output["payload_bytes"], 750 * 172);
    assert_eq!(output["skipped"], 0);
    assert_eq!(output["send_errors"], serde_json::json!({}));
    for key in ["packets", "bytes", "payload_bytes"] {
        assert_eq!(received[key], output[key], "{key}");
    }
    assert_eq!(received["foreign"], 1);
    assert_eq!(received["ports"], 1);
    let by_port = |all: &Value| -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|each| (each["source_port"].as_u64().unwrap(), each["packets"].as_u64().unwrap()))
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(by_port(&output["streams"]), by_port(&received["sources"]));
    assert!(received["sources"].as_array().unwrap().iter().all(|source| source["missing"] == 0));
    let counted: u64 = lines.iter().filter_map(|line| line["interval"]["packets"].as_u64()).sum();
    assert_eq!(counted, 750);
}

#[test]
fn a_flood_in_batches_has_the_same_pace_and_whole_batches() {
    let port = free_port();
    let receiver = Receiver::start(&format!("--port {port}"));
    let output = sent(&format!(
        "send 127.0.0.1 --port {port} --bandwidth 2000 --size 200 --streams 2 --batch 8 --duration 0.2 --catch-up 1000"
    ));
    std::thread::sleep(std::time::Duration::from_millis(120));
    let (_, received) = receiver.stop();
    // A batch every 3.2 ms, from the two streams in turn: 63 in 0.2 s.
    assert_eq!(
        (&output["packets"], &output["batch"], &output["gap_ns"]),
        (&(63 * 8).into(), &8.into(), &400_000.0.into())
    );
    let packets: Vec<_> =
        output["streams"].as_array().unwrap().iter().map(|stream| stream["packets"].clone()).collect();
    assert_eq!(packets, [32 * 8, 31 * 8]);
    assert_eq!((&output["skipped"], &received["packets"]), (&0.into(), &(63 * 8).into()));
    assert!(received["sources"].as_array().unwrap().iter().all(|source| source["missing"] == 0));
}

#[test]
fn ipv6_is_sent_and_received_with_its_longer_header() {
    let port = free_port();
    let receiver = Receiver::start(&format!("--port {port} --ipv6"));
    let output = sent(&format!("send ::1 --port {port} --bandwidth 1600 --size 200 --duration 0.1 --catch-up 1000"));
    std::thread::sleep(std::time::Duration::from_millis(120));
    let (_, received) = receiver.stop();
    // One every millisecond, each with 48 bytes of headers.
    assert_eq!(output["packets"], 100);
    assert_eq!(output["destination"], "::1");
    for (key, each) in [("packets", 1), ("bytes", 200), ("payload_bytes", 152)] {
        assert_eq!((&output[key], &received[key]), (&Value::from(100 * each), &Value::from(100 * each)), "{key}");
    }
    assert_eq!(received["sources"][0]["address"], "::1");
}

#[test]
fn the_same_seed_sends_the_same_sizes() {
    let port = free_port();
    let words =
        |seed: u32| format!("send 127.0.0.1 --port {port} --delay 1 --duration 0.05 --catch-up 1000 --seed {seed}");
    let bytes = |seed: u32| sent(&words(seed))["payload_bytes"].as_u64().unwrap();
    let (one, again, other) = (bytes(1), bytes(1), bytes(2));
    assert_eq!(one, again);
    assert_ne!(one, other);
    // 50 payloads of 64 to 1023 bytes.
    assert!((50 * 64..=50 * 1023).contains(&one));
}

#[test]
fn the_dscp_of_ipv6_is_the_traffic_class() {
    let socket = std::net::UdpSocket::bind("[::1]:0").unwrap();
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::Ipv6RecvTClass, &true).unwrap();
    let port = socket.local_addr().unwrap().port();
    sent(&format!("send ::1 --port {port} --delay 1 --size 76 --dscp 46 --duration 0.002"));
    let mut buffer = [0; 100];
    let mut control = nix::cmsg_space!(i32);
    let mut into = [std::io::IoSliceMut::new(&mut buffer)];
    let message = nix::sys::socket::recvmsg::<nix::sys::socket::SockaddrIn6>(
        std::os::fd::AsRawFd::as_raw_fd(&socket),
        &mut into,
        Some(&mut control),
        nix::sys::socket::MsgFlags::empty(),
    )
    .unwrap();
    assert_eq!(message.bytes, 28);
    let class = message.cmsgs().unwrap().find_map(|output| match output {
        nix::sys::socket::ControlMessageOwned::Ipv6TClass(class) => Some(class),
        _ => None,
    });
    assert_eq!(class, Some(46 << 2));
}

#[test]
fn the_dscp_and_ports_are_those_requested() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::IpRecvTos, &true).unwrap();
    let port = socket.local_addr().unwrap().port();
    let source = free_port();
    sent(&format!(
        "send 127.0.0.1 --port {port} --source-port {source} --delay 1 --size 56 --dscp 46 --duration 0.002"
    ));
    let mut buffer = [0; 100];
    let mut control = nix::cmsg_space!(u8);
    let mut into = [std::io::IoSliceMut::new(&mut buffer)];
    let message = nix::sys::socket::recvmsg::<nix::sys::socket::SockaddrIn>(
        std::os::fd::AsRawFd::as_raw_fd(&socket),
        &mut into,
        Some(&mut control),
        nix::sys::socket::MsgFlags::empty(),
    )
    .unwrap();
    assert_eq!(message.address.unwrap().port(), source);
    assert_eq!(message.bytes, 28);
    let tos = message.cmsgs().unwrap().find_map(|output| match output {
        nix::sys::socket::ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
        _ => None,
    });
    assert_eq!(tos, Some(46 << 2));
}

#[test]
fn impossible_options_are_reported() {
    for (words, part) in [
        ("send 127.0.0.1 --delay 1 --source 192.0.2.1", "cannot use 192.0.2.1:0 as the local address"),
        ("send 255.255.255.255 --port 9 --delay 1 --duration 1", "255.255.255.255"),
        ("send 127.0.0.1 --bandwidth 0.001 --size 1500", "more than an hour"),
        ("send 127.0.0.1 --port 9 --delay 3600000 --batch 2", "found batches of 2"),
        ("send 127.0.0.1 --delay 1 --streams 3 --source-port 65534", "65534 for 3 streams"),
        ("send ::1 --delay 1 --size 60", "found a size of 60 bytes, expected at least 76 for IPv6"),
        ("send ::1 --delay 1 --source 127.0.0.1", "expected one of the same family"),
        ("receive --port 9999 --address 192.0.2.1", "cannot use 192.0.2.1:9999"),
    ] {
        let output = run(words);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(part), "{words}: {message}");
        assert!(output.stdout.is_empty(), "{words}");
    }
}

#[test]
fn pages_are_acknowledged_and_timed() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let common = format!("--port {port} --size 300000 --streams 3");
    let receiver = Command::new(FLOOD)
        .arg("receive-pages")
        .args(common.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flood starts");
    // Waits for the listener in the table of sockets: a connection would count as one of the three.
    let listening = format!(":{port:04X} 00000000:0000 0A");
    while !std::fs::read_to_string("/proc/net/tcp").expect("a table").contains(&listening) {
        std::thread::yield_now();
    }
    let sent =
        sent(&format!("send-pages 127.0.0.1 {common} --delay 100 --duration 0.5 --spread 0.2 --congestion reno"));
    let received: Value = serde_json::from_slice(&receiver.wait_with_output().expect("it ends").stdout).expect("JSON");
    let sums = |report: &Value| -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = report["streams"]
            .as_array()
            .expect("streams")
            .iter()
            .map(|stream| {
                let pages = &stream["pages"];
                let complete =
                    || pages.as_array().expect("pages").iter().filter(|page| !page["time_ms"].is_null()).count();
                (stream["bytes"].as_u64().expect("bytes"), pages.as_u64().unwrap_or_else(|| complete() as u64))
            })
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(sums(&sent), sums(&received));
    let streams = sums(&sent);
    assert_eq!(streams.len(), 3);
    // Three to five pages, depending on the start of the connection; a busy machine may start fewer.
    assert!(streams.iter().all(|(bytes, pages)| bytes / 300_000 == *pages && (1..=5).contains(pages)), "{streams:?}");
}

#[test]
fn a_port_without_a_receiver_of_pages_is_reported() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let output = run(&format!("send-pages 127.0.0.1 --port {port} --size 9 --delay 9 --duration 1"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(message, format!("flood: cannot connect to 127.0.0.1:{port}: Connection refused\n"));
}
