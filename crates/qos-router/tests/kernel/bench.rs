//! A router's namespace with four interfaces, whose other ends are the test's.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use proptest::prelude::*;
use qos_router::forwarding::mirror::Mirror;
use qos_router::namespace::Namespace;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Interfaces p0, p1, … of the router, whose other ends are t0, t1, …
pub const PORTS: usize = 4;
/// Hosts of each network that the router knows the hardware addresses of, from .2 on.
const HOSTS: u8 = 4;
const INSIDE: &str = "QOS_ROUTER_TEST_INSIDE";
/// Place of the test's mark in a packet: the first bytes after the header.
const ETHERNET: usize = 14;

/// Runs the test of this name again as root of new namespaces; true there.
pub fn inside(name: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = ["--user", "--map-root-user", "--net", "--mount"];
    let allowed = Command::new("unshare").args(unshare).arg("true").stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("{name}: this machine has no user namespaces");
        return false;
    }
    let this = env::current_exe().unwrap();
    let mut again = Command::new("unshare");
    again.args(unshare).arg(this).args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    assert!(again.status().unwrap().success(), "it failed inside: see above");
    false
}

/// A route as `ip route` reads it.
#[derive(Clone, Debug)]
pub struct RouteSpec {
    pub prefix: String,
    pub way: String,
    pub more: String,
}

impl RouteSpec {
    pub fn words(&self, verb: &str) -> String {
        format!("route {verb} {} {} {}", self.prefix, self.way, self.more).trim_end().to_owned()
    }
}

/// Prefixes within each other, some of them those of the ports.
pub fn routes() -> impl Strategy<Value = Vec<RouteSpec>> {
    let length = prop::sample::select(vec![0u32, 8, 10, 12, 14, 16, 24, 25, 31, 32]);
    let kinds = prop::sample::select(vec!["via", "via", "via", "via", "dev", "blackhole", "unreachable", "two"]);
    let more = prop::sample::select(vec!["", "", "", "metric 5", "metric 7", "mtu 600", "mtu 9000", "tos 8"]);
    let route = (any::<bool>(), 0u32..16, 0u32..4, length, kinds, (0..PORTS, 2..=HOSTS + 3), more);
    let made = route.prop_map(|(six, a, b, length, kind, (port, host), more)| {
        let prefix = match six {
            false => {
                let bits = (10 << 24) | (a << 20) | (b << 6) | b;
                format!("{}/{length}", Ipv4Addr::from(bits & u32::MAX.checked_shl(32 - length).unwrap_or(0)))
            }
            true => {
                let bits = (0x2001_0db8 << 96) | (u128::from(a) << 84) | (u128::from(b) << 32) | u128::from(b);
                let mask = u128::MAX.checked_shl(128 - length * 4).unwrap_or(0);
                format!("{}/{}", Ipv6Addr::from(bits & mask), length * 4)
            }
        };
        let gateway = |port: usize| match six {
            false => format!("via 10.0.{port}.{host} dev p{port}"),
            true => format!("via 2001:db8:0:{port}::{host} dev p{port}"),
        };
        let way = match kind {
            "via" => gateway(port),
            "dev" => format!("dev p{port}"),
            "two" => format!("nexthop {} nexthop {}", gateway(port), gateway((port + 1) % PORTS)),
            other => other.to_owned(),
        };
        // The kernel has no IPv6 routes by type of service.
        let more = if six && more.starts_with("tos") { "" } else { more };
        match way.as_str() {
            "blackhole" | "unreachable" => {
                let more = if more.starts_with("mtu") { "" } else { more };
                RouteSpec { prefix: format!("{way} {prefix}"), way: String::new(), more: more.into() }
            }
            _ => RouteSpec { prefix, way, more: more.into() },
        }
    });
    prop::collection::vec(made, 1..12)
}

/// A packet that comes to the router.
#[derive(Clone, Debug)]
pub struct PacketSpec {
    pub input: usize,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub ttl: u8,
    pub tos: u8,
    /// Bytes behind the header.
    pub payload: usize,
    pub padding: usize,
    pub odd: Odd,
}

/// Unusual property of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    Nothing,
    Checksum,
    Options,
    OtherMac,
    Length,
    Fragment,
}

fn address(six: bool) -> impl Strategy<Value = IpAddr> {
    let kind = prop::sample::select(vec![0u8, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4, 5]);
    (kind, 0..PORTS as u8, 1..=HOSTS + 3, 0u32..16, 0u32..4).prop_map(move |(kind, port, host, a, b)| match six {
        false => match kind {
            0 => [10, 0, port, host].into(),
            1 => Ipv4Addr::from((10 << 24) | (a << 20) | (b << 6) | b).into(),
            2 => Ipv4Addr::from((a << 28) | b).into(),
            3 => [10, 0, port, 255].into(),
            4 => [10, 0, port, 1].into(),
            _ => [[224, 0, 0, 5], [127, 0, 0, 1], [255; 4], [0, 0, 0, 7], [169, 254, 1, 1]][port as usize].into(),
        },
        true => match kind {
            0 => Ipv6Addr::new(0x2001, 0xdb8, 0, port.into(), 0, 0, 0, host.into()).into(),
            1 => Ipv6Addr::from((0x2001_0db8 << 96) | (u128::from(a) << 84) | (u128::from(b) << 32) | u128::from(b))
                .into(),
            2 => Ipv6Addr::from((u128::from(a) << 124) | u128::from(b)).into(),
            3 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host.into()).into(),
            4 => Ipv6Addr::new(0x2001, 0xdb8, 0, port.into(), 0, 0, 0, 1).into(),
            _ => ["ff02::1", "::1", "::ffff:10.0.1.2", "::"][port as usize].parse::<Ipv6Addr>().unwrap().into(),
        },
    })
}

pub fn packets() -> impl Strategy<Value = PacketSpec> {
    let odd = prop_oneof![
        15 => Just(Odd::Nothing),
        5 => prop::sample::select(vec![Odd::Checksum, Odd::Options, Odd::OtherMac, Odd::Length, Odd::Fragment]),
    ];
    let ttl = prop::sample::select(vec![0u8, 1, 2, 64, 64, 64, 64, 64, 64, 255]);
    let payload = prop::sample::select(vec![16usize, 20, 100, 559, 560, 579, 580, 581, 1239, 1300, 1460, 1480]);
    any::<bool>().prop_flat_map(move |six| {
        let (odd, ttl, payload) = (odd.clone(), ttl.clone(), payload.clone());
        (0..PORTS, address(six), address(six), ttl, any::<u8>(), payload, 0usize..20, odd).prop_map(
            move |(input, source, destination, ttl, tos, payload, padding, odd)| {
                let payload = if six { payload.min(1460) } else { payload };
                // Only short packets need padding, and a long frame with it would not get through.
                let padding = if payload < 1000 { padding } else { 0 };
                PacketSpec { input, source, destination, ttl, tos, payload, padding, odd }
            },
        )
    })
}

pub struct Bench {
    pub namespace: Namespace,
    /// Numbers and hardware addresses of p0, p1, …
    pub links: [u32; PORTS],
    pub macs: [[u8; 6]; PORTS],
    path: String,
    sockets: Vec<Socket>,
}

/// The port of the interface with this hardware address; the test's ends count from 0x80.
fn mac(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, port as u8]
}

fn words(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn run(command: &mut Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&done.stderr).into_owned()
}

impl Bench {
    pub fn new() -> Self {
        let other = thread::spawn(|| {
            // SAFETY: no pointers; this thread ends with its changes.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        let file = Arc::new(other.join().unwrap());
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let namespace = Namespace::Other(file);
        let mut bench = Self { namespace, links: [0; PORTS], macs: [[0; 6]; PORTS], path, sockets: Vec::new() };
        for setting in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
            bench.set(setting, "1");
        }
        bench.set("net/ipv4/conf/all/send_redirects", "0");
        for port in 0..PORTS {
            bench.connect(port);
        }
        bench
    }

    fn connect(&mut self, port: usize) {
        let pair = format!("link add t{port} address {} type veth peer name p{port}", words(mac(port + 0x80)));
        let moved = format!("link set p{port} address {} netns {}", words(mac(port)), self.path);
        let errors = run(Command::new("ip").args(["-batch", "-"]), &format!("{pair}\n{moved}\nlink set t{port} up\n"));
        assert_eq!(errors, "");
        fs::write(format!("/proc/sys/net/ipv6/conf/t{port}/disable_ipv6"), "1").unwrap();
        // Only the packets of the test are sent.
        self.set(&format!("net/ipv6/conf/p{port}/accept_dad"), "0");
        self.set(&format!("net/ipv6/conf/p{port}/router_solicitations"), "0");
        // The last one is a point-to-point line, which needs no address resolution.
        let arp = if port == PORTS - 1 { "off" } else { "on" };
        let mut lines = vec![
            format!("link set p{port} arp {arp} up"),
            format!("address add 10.0.{port}.1/24 dev p{port}"),
            format!("address add 2001:db8:0:{port}::1/64 dev p{port} nodad"),
        ];
        for host in 2..2 + HOSTS {
            for address in [format!("10.0.{port}.{host}"), format!("2001:db8:0:{port}::{host}")] {
                let hardware = words([2, 0xbb, 0, 0, port as u8, host]);
                lines.push(format!("neigh add {address} lladdr {hardware} nud permanent dev p{port}"));
            }
        }
        self.ip(&lines);
        let read = |file: &str| {
            let output = self.command("cat").arg(format!("/proc/net/{file}")).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        // The line of if_inet6 that has the port's address names the interface's number.
        let line = format!("20010db80000{port:04x}0000000000000001");
        let table = read("if_inet6");
        let found = table.lines().find(|each| each.starts_with(&line)).expect("the address is there");
        self.links[port] = u32::from_str_radix(found.split_whitespace().nth(1).unwrap(), 16).unwrap();
        self.macs[port] = mac(port);
        self.sockets.push(open(&format!("t{port}")));
    }

    /// A command in the router's namespace.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path)).arg(program);
        command
    }

    /// Commands of `ip` there, all of which have to succeed.
    pub fn ip<S: AsRef<str>>(&self, lines: &[S]) {
        let text: String = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
        assert_eq!(run(self.command("ip").args(["-batch", "-"]), &text), "", "{text}");
    }

    /// A command there, which has to succeed.
    pub fn run(&self, words: &str) {
        let (program, rest) = words.split_once(' ').expect("there are words behind the program");
        assert_eq!(run(self.command(program).args(rest.split(' ')), ""), "", "{words}");
    }

    pub fn set(&self, setting: &str, value: &str) {
        let script = format!("echo {value} > /proc/sys/{setting}");
        assert_eq!(run(self.command("sh").args(["-c", &script]), ""), "", "{setting}");
    }

    /// A mirror that has caught up.
    pub fn mirror(&self) -> Mirror {
        let mut mirror = Mirror::open(&self.namespace).unwrap();
        while mirror.kernel().is_none() {
            mirror.follow();
        }
        mirror
    }

    /// Changes routes as far as the kernel accepts that.
    pub fn change_routes(&self, verb: &str, routes: &[RouteSpec]) {
        let text: String = routes.iter().map(|route| route.words(verb) + "\n").collect();
        run(self.command("ip").args(["-force", "-batch", "-"]), &text);
    }

    /// Replaces the routes in addition to those of the addresses.
    pub fn replace_routes(&self, routes: &[RouteSpec]) {
        let flush =
            ["boot", "static"].map(|by| format!("route flush proto {by}\n-6 route flush proto {by}\n")).concat();
        run(self.command("ip").args(["-force", "-batch", "-"]), &flush);
        self.change_routes("add", routes);
    }

    /// Sources and destinations.
    pub fn pairs(&self, input: usize) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        let four = (0..64u32).map(move |n| {
            let to = Ipv4Addr::from((10 << 24) | ((n / 4) << 20) | ((n % 4) << 6) | (n % 4));
            (IpAddr::from([10, 0, input as u8, 2]), to.into())
        });
        let six = (0..64u128).map(move |n| {
            let to = Ipv6Addr::from((0x2001_0db8 << 96) | ((n / 4) << 84) | ((n % 4) << 32) | (n % 4));
            (Ipv6Addr::new(0x2001, 0xdb8, 0, input as u16, 0, 0, 0, 2).into(), to.into())
        });
        four.chain(six)
    }

    /// The frame of a packet, with a mark by which it is recognised.
    pub fn frame(&self, spec: &PacketSpec, mark: u32) -> Vec<u8> {
        let to = if spec.odd == Odd::OtherMac { [2, 9, 9, 9, 9, 9] } else { self.macs[spec.input] };
        let mut frame = [to, mac(spec.input + 0x80)].concat();
        match (spec.source, spec.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let options = if spec.odd == Odd::Options { 4 } else { 0 };
                let mut total = 20 + options + spec.payload;
                total += if spec.odd == Odd::Length { 2000 } else { 0 };
                frame.extend([8, 0, 0x45 + (options / 4) as u8, spec.tos]);
                frame.extend((total as u16).to_be_bytes());
                let more = if spec.odd == Odd::Fragment { 0x20 } else { 0 };
                frame.extend([mark as u8, 1, more, 0, spec.ttl, 253, 0, 0]);
                frame.extend([source.octets(), destination.octets()].concat());
                frame.extend(std::iter::repeat_n(1, options));
                let header = &frame[ETHERNET..];
                let sum: u32 = header.chunks(2).map(|p| u32::from(u16::from_be_bytes([p[0], p[1]]))).sum();
                let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
                let sum = if spec.odd == Odd::Checksum { sum ^ 0x10 } else { sum };
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let next = if spec.odd == Odd::Options { 0 } else { 253 };
                let length = spec.payload + if spec.odd == Odd::Length { 2000 } else { 0 };
                frame.extend([0x86, 0xdd, 0x60 | (spec.tos >> 4), spec.tos << 4, 0, 0]);
                frame.extend((length as u16).to_be_bytes());
                frame.extend([next, spec.ttl]);
                frame.extend([source.octets(), destination.octets()].concat());
            }
            _ => unreachable!("both are of one version"),
        }
        // As hop-by-hop options: a header of 8 bytes with 6 of padding.
        frame.extend([253, 0, 1, 4, 0, 0, 0, 0]);
        frame.extend(mark.to_be_bytes());
        frame.extend(std::iter::repeat_n(0xa5, spec.payload - 12));
        frame.extend(std::iter::repeat_n(0, spec.padding));
        frame
    }

    /// Sends frames to the kernel, and returns for each the port by which it leaves, and its bytes there. Waits for
    /// this many frames.
    pub fn through_kernel(
        &self,
        specs: &[PacketSpec],
        frames: &[Vec<u8>],
        expected: usize,
    ) -> Vec<Vec<(usize, Vec<u8>)>> {
        for (spec, frame) in specs.iter().zip(frames) {
            // A frame that the interface refuses is not delivered.
            let _ = self.sockets[spec.input].send(frame);
        }
        let marks: HashMap<u32, usize> = (0..).zip(0..frames.len()).collect();
        let mut found = vec![Vec::new(); frames.len()];
        let end = Instant::now() + Duration::from_secs(2);
        loop {
            for (port, mut socket) in self.sockets.iter().enumerate() {
                let mut bytes = [0; 2048];
                while let Ok(length) = socket.read(&mut bytes) {
                    let frame = &bytes[..length];
                    let header = if frame[12] == 8 { 20 } else { 40 };
                    let ours = frame.get(ETHERNET + header..).filter(|rest| rest.starts_with(&[253, 0, 1, 4]));
                    let mark = ours.and_then(|rest| rest.get(8..)?.first_chunk()).map(|mark| u32::from_be_bytes(*mark));
                    if let Some(number) = mark.and_then(|mark| marks.get(&mark)) {
                        found[*number].push((port, frame.to_vec()));
                    }
                }
            }
            if found.iter().flatten().count() >= expected || Instant::now() > end {
                return found;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A packet socket on an interface of this namespace.
fn open(name: &str) -> Socket {
    let all = libc::ETH_P_ALL as u16;
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(i32::from(all.to_be())))).unwrap();
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: the name ends with a zero and outlives the call; the storage is large enough for a sockaddr_ll, of which
    // all zeros is a valid value.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = libc::AF_PACKET as u16;
            (*address).sll_protocol = all.to_be();
            (*address).sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            *length = std::mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
        .unwrap()
    };
    socket.bind(&address).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}
