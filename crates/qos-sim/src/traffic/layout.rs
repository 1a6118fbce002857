//! The checked flows of a scenario, divided into streams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use flood::pace::Gap;
use flood::starts::starts;
use ipnet::IpNet;
use qos_core::wire::protocol;
use qos_core::ConfigError;
use qos_core::{Duration, Time};

use super::delay::Delays;
use super::tcp::{self, Transfer};
use super::udp::{self, Source, UdpStream};
use super::{Arrivals, Course, Direction, Kind, Stream, Traffic};
use crate::network::{Network, LONGEST_NS};
use crate::packet::descriptor;
use crate::scenario::{Flow, NodeKind, Protocol, Scenario};
use crate::seed::Seed;
use crate::tcp::{Settings, Ticks};

/// First source port of streams without a configured one: Linux' `ip_local_port_range`.
const FIRST_PORT: u16 = 32_768;
/// Maximum number of intervals of a flow in a scenario.
const MOST_INTERVALS: u64 = 1_000_000;
/// Maximum uptime of a host's clock at the start of the run, in ticks: any position in the longest slots used by TCP
/// timers.
const MOST_TICKS_RUN: u64 = 512;
/// Maximum number of streams of a flow.
const MOST_STREAMS: u32 = 10_000;

fn wrong<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new(path, message))
}

/// Checks the flows and divides them into streams.
pub(crate) fn lay_out(scenario: &Scenario, network: &Network, start: Time) -> Result<Traffic, ConfigError> {
    let mut names = BTreeSet::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        check(flow, &format!("flows[{number}]"))?;
        if !names.insert(&flow.name) {
            return wrong(format!("flows[{number}].name"), format!("found {:?} a second time", flow.name));
        }
    }
    let starts: Vec<Time> = scenario
        .flows
        .iter()
        .map(|flow| {
            let mut random = Seed::new(scenario.seed).with("start").with(&flow.name).random();
            start + Duration(flow.start_ns) + Duration(random.up_to(scenario.start_jitter_ns))
        })
        .collect();
    let ends =
        scenario.flows.iter().zip(&starts).filter_map(|(flow, start)| Some(*start + Duration(flow.duration_ns?)));
    let probes = scenario.probes.iter().map(|probe| start + Duration(probe.end_ns));
    let end = match ends.chain(probes).max() {
        Some(end) => end,
        None if scenario.flows.is_empty() => start,
        None => {
            let message =
                "found no flow with a duration, expected at least one: the other flows last as long as that one";
            return wrong("flows", message);
        }
    };
    let mut traffic = Traffic {
        flows: Vec::new(),
        streams: Vec::new(),
        datagrams: Vec::new(),
        transfers: Vec::new(),
        sources: Vec::new(),
        end,
        addresses: Vec::new(),
        open: 0,
    };
    let own = network.ends.iter().flat_map(|end| end.addresses.iter().map(IpNet::addr));
    let asked = scenario.nodes.values().flat_map(|node| node.ip_sla.iter().flat_map(|sla| sla.operations.values()));
    for address in own.chain(asked.map(|operation| operation.target)) {
        traffic.number(address);
    }
    let streams = scenario.flows.iter().flat_map(|flow| (0..flow.streams).map(move |stream| (flow, stream)));
    let reserved = streams.filter_map(|(flow, stream)| client_port(flow, stream, "").ok().flatten()).collect();
    let mut ports = Ports { reserved, ..Ports::default() };
    for (index, (flow, start)) in scenario.flows.iter().zip(starts).enumerate() {
        traffic.add(scenario, network, &mut ports, index, flow, start)?;
    }
    traffic.open = traffic.streams.iter().filter(|stream| !stream.complete).count();
    Ok(traffic)
}

/// Checks one flow, without regard to others.
fn check(flow: &Flow, path: &str) -> Result<(), ConfigError> {
    let wrong = |field: &str, message: String| wrong(format!("{path}.{field}"), message);
    if flow.streams == 0 || flow.streams > MOST_STREAMS {
        return wrong("streams", format!("found {}, expected 1 to {MOST_STREAMS}", flow.streams));
    }
    if flow.dscp > 63 {
        return wrong("dscp", format!("found {}, expected 0 to 63", flow.dscp));
    }
    for (field, value) in [("start_ns", Some(flow.start_ns)), ("duration_ns", flow.duration_ns)] {
        if value.is_some_and(|value| value > LONGEST_NS) {
            return wrong(field, format!("found more than {LONGEST_NS} ns, the longest time"));
        }
    }
    if flow.spread_ns > 0 && flow.duration_ns.is_none_or(|duration| flow.spread_ns >= duration) {
        return wrong("spread_ns", format!("found {}, expected less than duration_ns", flow.spread_ns));
    }
    if flow.spread_ns > 0 && flow.take_turns {
        return wrong("spread_ns", "found both spread_ns and take_turns, expected only one of them".to_owned());
    }
    if flow.duration_ns == Some(0) {
        return wrong("duration_ns", "found 0, expected at least 1".to_owned());
    }
    if flow.interval_ns == 0 || flow.duration_ns.is_some_and(|duration| duration / flow.interval_ns > MOST_INTERVALS) {
        return wrong(
            "interval_ns",
            format!("found {}, expected at most {MOST_INTERVALS} intervals", flow.interval_ns),
        );
    }
    if flow.port == Some(0) {
        return wrong("port", "found 0, expected 1 to 65535".to_owned());
    }
    Ok(())
}

/// Source ports in use, by host, protocol and address.
#[derive(Debug, Default)]
struct Ports {
    next: BTreeMap<usize, u16>,
    taken: BTreeSet<(usize, u8, u16)>,
    listening: BTreeMap<(usize, u8, u16), String>,
    /// Source ports that flows ask for: no other stream gets them.
    reserved: BTreeSet<u16>,
}

impl Ports {
    fn take(&mut self, host: usize, protocol: u8, wanted: Option<u16>, path: &str) -> Result<u16, ConfigError> {
        if let Some(port) = wanted {
            if port == 0 || !self.taken.insert((host, protocol, port)) {
                let message = format!("source port {port} is 0 or used by another stream of the host");
                return wrong(format!("{path}.client_port"), message);
            }
            return Ok(port);
        }
        let next = self.next.entry(host).or_insert(FIRST_PORT);
        loop {
            let port = *next;
            let Some(following) = next.checked_add(1) else {
                return wrong(format!("{path}.streams"), "the host has no source ports left for so many streams");
            };
            *next = following;
            if !self.reserved.contains(&port) && self.taken.insert((host, protocol, port)) {
                return Ok(port);
            }
        }
    }

    fn listen(&mut self, host: usize, protocol: u8, flow: &Flow, path: &str) -> Result<(), ConfigError> {
        let Some(port) = flow.port else { return Ok(()) };
        match self.listening.insert((host, protocol, port), flow.name.clone()) {
            None => Ok(()),
            Some(other) => {
                let message = format!("found {port}, already used by {} for flow {other:?}", flow.destination);
                wrong(format!("{path}.port"), message)
            }
        }
    }
}

impl Traffic {
    fn add(
        &mut self,
        scenario: &Scenario,
        network: &Network,
        ports: &mut Ports,
        index: usize,
        flow: &Flow,
        start: Time,
    ) -> Result<(), ConfigError> {
        let path = format!("flows[{index}]");
        let ends = ends(network, flow, &path)?;
        let (hosts, ipv6) = (ends.hosts, ends.addresses[0].is_ipv6());
        let (number, gap) = match flow.protocol {
            Protocol::Udp => (protocol::UDP, Some(udp::gap(flow, ipv6, &path)?)),
            Protocol::Tcp => (protocol::TCP, None),
        };
        ports.listen(hosts[1], number, flow, &path)?;
        let background = flow.duration_ns.is_none();
        let duration_ns = flow.duration_ns.unwrap_or(self.end.since(start).0);
        let (first, first_source) = (self.streams.len(), self.datagrams.len());
        let numbers = ends.addresses.map(|address| self.number(address));
        let seed = flow.seed.unwrap_or_else(|| Seed::new(scenario.seed).with("flow").with(&flow.name).number());
        let offsets = starts(seed, flow.streams as usize, flow.spread_ns);
        for (stream, offset) in (0..flow.streams).zip(offsets) {
            let local_port = ports.take(hosts[0], number, client_port(flow, stream, &path)?, &path)?;
            let ports = [local_port, flow.port.unwrap_or(0)];
            let settings = || settings(scenario, network, hosts, (flow, ipv6));
            let kind = self.kind(flow, settings, &path)?;
            self.streams.push(Stream {
                flow: index,
                number: stream + 1,
                local_port,
                offset: Duration(offset),
                // Only the client requests a code point.
                ways: ends.ways(network, numbers, number, ports, [flow.dscp, 0]),
                kind,
                complete: background,
                arrivals: Arrivals { interval_ns: flow.interval_ns, bytes: Vec::new() },
                delays: Delays::default(),
            });
        }
        if let Some(gap) = gap {
            self.add_sources(flow, seed, gap, first_source, start, duration_ns);
        }
        self.flows.push(Course {
            name: flow.name.clone(),
            start,
            duration_ns,
            background,
            cut_off_ns: flow.cut_off_ns,
            interval_ns: flow.interval_ns,
            first,
            streams: flow.streams as usize,
            first_arrival: None,
        });
        Ok(())
    }

    /// Returns the kind of the next stream; only TCP uses the hosts' settings.
    fn kind(
        &mut self,
        flow: &Flow,
        settings: impl FnOnce() -> Result<[Settings; 2], ConfigError>,
        path: &str,
    ) -> Result<Kind, ConfigError> {
        let stream = self.streams.len();
        Ok(match flow.protocol {
            Protocol::Udp => {
                self.datagrams.push(UdpStream::new(stream));
                Kind::Udp(self.datagrams.len() - 1)
            }
            Protocol::Tcp => {
                self.transfers.push(Transfer::new(stream, flow, settings()?, path)?);
                Kind::Tcp(self.transfers.len() - 1)
            }
        })
    }

    fn add_sources(&mut self, flow: &Flow, seed: u64, gap: Gap, first: usize, start: Time, duration_ns: u64) {
        let all = first..first + flow.streams as usize;
        if flow.take_turns {
            self.sources.push(Source::new(flow, gap, all, seed, start, duration_ns));
        } else {
            for (number, stream) in all.enumerate() {
                let seed = seed.wrapping_add(number as u64);
                let offset = self.streams[self.datagrams[stream].stream].offset;
                let (start, duration_ns) = (start + offset, duration_ns - offset.0);
                self.sources.push(Source::new(flow, gap, stream..stream + 1, seed, start, duration_ns));
            }
        }
    }

    fn number(&mut self, address: IpAddr) -> u32 {
        self.number_of(address).unwrap_or_else(|| {
            self.addresses.push(address);
            self.addresses.len() as u32 - 1
        })
    }

    /// Returns the number of an address, if it belongs to the network or an operation.
    pub fn number_of(&self, address: IpAddr) -> Option<u32> {
        self.addresses.iter().position(|known| *known == address).map(|number| number as u32)
    }
}

/// The two hosts of a flow, source first, with their addresses and the ends of links by which packets leave them.
struct Ends {
    hosts: [usize; 2],
    addresses: [IpAddr; 2],
    leaves: [usize; 2],
}

impl Ends {
    /// Returns a stream's two directions, from its client first; `numbers` are those of the addresses.
    fn ways(
        &self,
        network: &Network,
        numbers: [u32; 2],
        protocol: u8,
        ports: [u16; 2],
        dscp: [u8; 2],
    ) -> [Direction; 2] {
        let Self { hosts, addresses, leaves } = self;
        [0, 1].map(|from| {
            let to = 1 - from;
            Direction {
                host: hosts[from],
                end: leaves[from],
                framing: network.ends[leaves[from]].framing,
                source: numbers[from],
                destination: numbers[to],
                source_port: ports[from],
                destination_port: ports[to],
                dscp: dscp[from],
                descriptor: descriptor(protocol, (addresses[from], ports[from]), (addresses[to], ports[to])),
            }
        })
    }
}

fn ends(network: &Network, flow: &Flow, path: &str) -> Result<Ends, ConfigError> {
    let source = host(network, &flow.source, &format!("{path}.source"))?;
    let destination = host(network, &flow.destination, &format!("{path}.destination"))?;
    if source == destination {
        return wrong(format!("{path}.destination"), format!("found {:?}, also the source", flow.source));
    }
    let addresses = [
        address(network, source, flow.source_address, &format!("{path}.source_address"))?,
        address(network, destination, flow.destination_address, &format!("{path}.destination_address"))?,
    ];
    if addresses[0].is_ipv6() != addresses[1].is_ipv6() {
        return wrong(path, format!("found {} and {}, of different address families", addresses[0], addresses[1]));
    }
    let leaves = |host: usize, to: IpAddr| network.check_path(host, to).or_else(|message| wrong(path, message));
    let leaves = [leaves(source, addresses[1])?, leaves(destination, addresses[0])?];
    Ok(Ends { hosts: [source, destination], addresses, leaves })
}

/// Returns the configured source port of one of the flow's streams.
fn client_port(flow: &Flow, stream: u32, path: &str) -> Result<Option<u16>, ConfigError> {
    let Some(first) = flow.client_port else { return Ok(None) };
    match u16::try_from(u32::from(first) + stream) {
        Ok(port) => Ok(Some(port)),
        Err(_) => {
            let message =
                format!("found {first} as the first of {} ports, expected all of them up to 65535", flow.streams);
            wrong(format!("{path}.client_port"), message)
        }
    }
}

/// Returns the settings of the two hosts' TCP for a flow.
fn settings(
    scenario: &Scenario,
    network: &Network,
    hosts: [usize; 2],
    (flow, ipv6): (&Flow, bool),
) -> Result<[Settings; 2], ConfigError> {
    let settings = |host: usize| {
        let name = &network.nodes[host].name;
        let mut profile = scenario.nodes[name].tcp.clone().unwrap_or_default();
        if let Some(other) = flow.congestion_control {
            profile.congestion_control = other;
        }
        let most = MOST_TICKS_RUN.saturating_mul(scenario.tick_ns);
        let ran = Seed::new(scenario.seed).with("clock").with(name).random().up_to(most);
        let settings = tcp::settings(&profile, flow, ipv6, &format!("nodes.{name}.tcp"))?;
        Ok(Settings { ticks: Ticks::new(scenario.tick_ns, Time(scenario.epoch_ns), ran), ..settings })
    };
    Ok([settings(hosts[0])?, settings(hosts[1])?])
}

fn host(network: &Network, name: &str, path: &str) -> Result<usize, ConfigError> {
    let node = network.node(name, path)?;
    if network.nodes[node].kind != NodeKind::Host {
        return wrong(path, format!("found the router {name:?}, expected a host"));
    }
    Ok(node)
}

/// Returns an address of the host: the configured one, or the only one.
fn address(network: &Network, host: usize, wanted: Option<IpAddr>, path: &str) -> Result<IpAddr, ConfigError> {
    let ends = network.nodes[host].ends.iter().flat_map(|end| &network.ends[*end].addresses);
    let own: Vec<IpAddr> = ends.map(IpNet::addr).collect();
    let listed = || own.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let name = &network.nodes[host].name;
    match (wanted, own.as_slice()) {
        (Some(wanted), own) if own.contains(&wanted) => Ok(wanted),
        (Some(wanted), _) => wrong(path, format!("found {wanted}, expected an address of {name}: {}", listed())),
        (None, [only]) => Ok(*only),
        (None, _) => wrong(path, format!("found none, expected one of the addresses of {name}: {}", listed())),
    }
}
