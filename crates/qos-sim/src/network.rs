//! Network: connections of nodes to ports of engines, and the next hop of each packet. Pure functions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use qos_core::config::{LinkConfig, PortConfig};
use qos_core::wire::Framing;
use qos_core::ConfigError;
use qos_core::{Engine, PortId, PortsConfig, Time};

use crate::scenario::{Link, LinkEnd, LinkVlan, NodeConfig, NodeKind, Route, Scenario};
use crate::seed::Seed;

/// Maximum duration in a scenario, so that all sums of times fit 64 bits: more than eleven days.
pub const LONGEST_NS: u64 = 1_000_000_000_000_000;

/// One end of a link, or of a VLAN on it. Ends are numbered: those of link n are 2n and 2n + 1, and the VLANs follow
/// in the same way.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub node: usize,
    pub interface: String,
    pub addresses: Vec<IpNet>,
    /// For a VLAN: the end of its link, and the tag of the frames, if they have one.
    pub over: Option<(usize, Option<u16>)>,
    pub framing: Framing,
    pub rate_bps: u64,
    /// Limit of the TCP maximum segment size in SYNs over IPv4 through this end.
    pub adjust_mss: Option<u16>,
    /// Engine and port that take the frames sent by this end: those of a router (`transmit`), or, for a host, those at
    /// the other end of its cable (`receive`).
    pub engine: usize,
    pub port: PortId,
}

impl End {
    /// Returns whether the end has an address.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.addr() == address)
    }
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub name: String,
    pub kind: NodeKind,
    /// The ends of links at this node.
    pub ends: Vec<usize>,
}

/// Owner of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// A router, by its node.
    Router(usize),
    /// A link between two hosts: frames received by one port go to the other host.
    Line,
}

/// A wired network.
#[derive(Debug)]
pub(crate) struct Network {
    pub nodes: Vec<Node>,
    pub ends: Vec<End>,
    pub runs: Vec<Runs>,
    /// End of the link by engine and port; for a line, the end that receives its frames.
    pub ports: Vec<Vec<usize>>,
    numbers: BTreeMap<String, usize>,
    routes: Vec<Vec<StaticRoute>>,
}

#[derive(Clone, Copy, Debug)]
struct StaticRoute {
    prefix: IpNet,
    end: usize,
}

fn wrong<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new(path, message))
}

/// Returns the end at the other side of the link.
pub(crate) fn peer(end: usize) -> usize {
    end ^ 1
}

impl Network {
    /// Wires the nodes and creates their configured engines.
    pub fn new<P>(scenario: &Scenario, start: Time) -> Result<(Network, Vec<Engine<P>>), ConfigError> {
        let numbers: BTreeMap<String, usize> =
            scenario.nodes.keys().enumerate().map(|(number, name)| (name.clone(), number)).collect();
        let nodes = scenario
            .nodes
            .iter()
            .map(|(name, config)| Node { name: name.clone(), kind: config.kind, ends: Vec::new() })
            .collect();
        let mut network =
            Network { nodes, ends: Vec::new(), runs: Vec::new(), ports: Vec::new(), numbers, routes: Vec::new() };
        for (name, config) in &scenario.nodes {
            check_node(name, config)?;
        }
        network.join(scenario)?;
        let engines = network.make_engines(scenario, start)?;
        for (number, (name, config)) in scenario.nodes.iter().enumerate() {
            let routes = config.routes.iter().enumerate().map(|(index, route)| {
                let path = format!("nodes.{name}.routes[{index}]");
                network.resolve(number, route, &path)
            });
            let routes = routes.collect::<Result<_, _>>()?;
            network.routes.push(routes);
        }
        Ok((network, engines))
    }

    /// Returns the number of a node.
    pub fn node(&self, name: &str, path: &str) -> Result<usize, ConfigError> {
        let Some(&number) = self.numbers.get(name) else {
            let known: Vec<_> = self.numbers.keys().map(String::as_str).collect();
            return wrong(path, format!("found {name:?}, not a node: there are {}", known.join(", ")));
        };
        Ok(number)
    }

    /// Returns the physical end of an end.
    pub fn physical(&self, end: usize) -> usize {
        self.ends[end].over.map_or(end, |(physical, _)| physical)
    }

    /// Returns the end that receives a frame with a VLAN (0: without a tag) at an end of a link.
    pub fn entered(&self, physical: usize, vlan: u16) -> usize {
        let at =
            |end: &&usize| self.ends[**end].over.is_some_and(|(on, tag)| on == physical && tag.unwrap_or(0) == vlan);
        self.nodes[self.ends[physical].node].ends.iter().find(at).copied().unwrap_or(physical)
    }

    /// Returns the end at an interface of a node.
    pub fn interface(&self, node: usize, interface: &str) -> Option<usize> {
        self.nodes[node].ends.iter().copied().find(|end| self.ends[*end].interface == interface)
    }

    fn join(&mut self, scenario: &Scenario) -> Result<(), ConfigError> {
        let mut names = BTreeMap::new();
        for (number, link) in scenario.links.iter().enumerate() {
            let path = format!("links[{number}]");
            if let Some(other) = names.insert(&link.name, number) {
                return wrong(format!("{path}.name"), format!("found {:?}, already used by links[{other}]", link.name));
            }
            let [near, far] = link.ends.as_slice() else {
                return wrong(format!("{path}.ends"), format!("found {}, expected two", link.ends.len()));
            };
            let addressed = link.ends.iter().any(|end| end.addresses().next().is_some());
            if addressed || link.vlans.is_empty() {
                check_networks(near, far, &format!("{path}.ends"))?;
            }
            if link.delay_ns > LONGEST_NS {
                let message = format!("found {} ns, expected at most {LONGEST_NS}", link.delay_ns);
                return wrong(format!("{path}.delay_ns"), message);
            }
            for (side, end) in link.ends.iter().enumerate() {
                self.add_end(scenario, link, end, &format!("{path}.ends[{side}]"))?;
            }
        }
        for (number, link) in scenario.links.iter().enumerate() {
            for (index, vlan) in link.vlans.iter().enumerate() {
                self.add_vlan(scenario, number, vlan, &format!("links[{number}].vlans[{index}]"))?;
            }
        }
        for node in &self.nodes {
            if node.ends.is_empty() {
                return wrong(format!("nodes.{}", node.name), "no link ends at this node: remove it, or add a link");
            }
        }
        Ok(())
    }

    /// Adds an end of a link to its node.
    fn add_end(&mut self, scenario: &Scenario, link: &Link, end: &LinkEnd, path: &str) -> Result<(), ConfigError> {
        let node = self.node(&end.node, &format!("{path}.node"))?;
        if self.nodes[node].kind == NodeKind::Host && link.framing != Framing::Ethernet {
            let message = "found a host on a serial link, expected Ethernet framing: put a router there";
            return wrong(format!("{path}.node"), message);
        }
        if self.interface(node, &end.interface).is_some() {
            let message = format!("found {:?}, already used by another link of {}", end.interface, end.node);
            return wrong(format!("{path}.interface"), message);
        }
        for (field, address) in end.addresses() {
            self.check_address(node, address, format!("{path}.{field}"))?;
        }
        let config = scenario.nodes[&end.node].configuration.as_ref();
        let configured = config.and_then(|config| config.interfaces.get(&end.interface));
        self.nodes[node].ends.push(self.ends.len());
        self.ends.push(End {
            node,
            interface: end.interface.clone(),
            adjust_mss: configured.and_then(|port| port.tcp_adjust_mss),
            addresses: end.addresses().map(|(_, address)| address).collect(),
            over: None,
            framing: link.framing,
            rate_bps: link.rate_bps,
            // Known when the engines are made.
            engine: usize::MAX,
            port: PortId(0),
        });
        Ok(())
    }

    /// Adds the ends of a VLAN after those of the links.
    fn add_vlan(&mut self, scenario: &Scenario, link: usize, vlan: &LinkVlan, path: &str) -> Result<(), ConfigError> {
        let [near, far] = vlan.ends.as_slice() else {
            return wrong(format!("{path}.ends"), format!("found {}, expected two", vlan.ends.len()));
        };
        if near.address.trunc() != far.address.trunc() {
            let message = format!("found {} and {}, not in the same network", near.address, far.address);
            return wrong(format!("{path}.ends"), message);
        }
        for (side, end) in vlan.ends.iter().enumerate() {
            let physical = 2 * link + side;
            let End { node, framing, rate_bps, engine, port, .. } = self.ends[physical].clone();
            let config = scenario.nodes[&self.nodes[node].name].configuration.as_ref();
            let configured = config.and_then(|config| config.interfaces.get(&self.ends[physical].interface));
            let found = configured.and_then(|port| port.subinterfaces.get(&end.interface));
            if found.is_none_or(|found| (found.vlan, found.native) != (vlan.vlan, vlan.native)) {
                let message = format!(
                    "found {:?}, not a subinterface of {} with VLAN {} in its configuration",
                    end.interface, self.nodes[node].name, vlan.vlan
                );
                return wrong(format!("{path}.ends[{side}].interface"), message);
            }
            let address = IpNet::V4(end.address);
            self.check_address(node, address, format!("{path}.ends[{side}].address"))?;
            self.nodes[node].ends.push(self.ends.len());
            let over = Some((physical, (!vlan.native).then_some(vlan.vlan)));
            let (interface, addresses) = (end.interface.clone(), vec![address]);
            let adjust_mss = found.and_then(|found| found.tcp_adjust_mss);
            self.ends.push(End { node, interface, addresses, over, framing, rate_bps, adjust_mss, engine, port });
        }
        Ok(())
    }

    /// Refuses an address whose network has no room for a peer, or that conflicts with another end of the node.
    fn check_address(&self, node: usize, address: IpNet, path: String) -> Result<(), ConfigError> {
        if address.prefix_len() >= address.max_prefix_len() {
            return wrong(path, format!("found {address}, expected a network with at least two addresses"));
        }
        if let Some(other) = self.ends.iter().position(|other| other.has(address.addr())) {
            return wrong(path, format!("found {address}, already used by {}", self.place(other)));
        }
        for &end in &self.nodes[node].ends {
            let overlaps = |other: &&IpNet| other.contains(&address.network()) || address.contains(&other.network());
            if let Some(other) = self.ends[end].addresses.iter().find(overlaps) {
                let interface = &self.ends[end].interface;
                let message = format!(
                    "found {address}, in a network that overlaps that of {interface} ({other}) on the same node"
                );
                return wrong(path, message);
            }
        }
        Ok(())
    }

    /// Returns the place of an end in the scenario.
    fn place(&self, end: usize) -> String {
        match self.ends[end].over {
            None => format!("links[{}].ends[{}]", end / 2, end % 2),
            Some((physical, _)) => format!("{} of links[{}]", self.ends[end].interface, physical / 2),
        }
    }

    /// Returns the physical ends at the node.
    fn physical_ends(&self, node: usize) -> Vec<usize> {
        let ends = self.nodes[node].ends.iter().copied();
        ends.filter(|end| self.ends[*end].over.is_none()).collect()
    }

    fn make_engines<P>(&mut self, scenario: &Scenario, start: Time) -> Result<Vec<Engine<P>>, ConfigError> {
        let mut engines = Vec::new();
        for (number, (name, config)) in scenario.nodes.iter().enumerate() {
            if config.kind != NodeKind::Router {
                continue;
            }
            let mut ports = PortsConfig { ports: BTreeMap::new(), seed: scenario.seed };
            for end in self.physical_ends(number) {
                let paced = self.nodes[self.ends[peer(end)].node].kind == NodeKind::Router;
                let port = port_config(scenario, end, paced);
                ports.ports.insert(self.ends[end].interface.clone(), port);
            }
            let located = |error: ConfigError| self.locate(number, error);
            let mut engine = Engine::new(&ports, start).map_err(located)?;
            if let Some(config) = &config.configuration {
                engine.configure(start, config).map_err(|error| {
                    ConfigError::new(join_path(&format!("nodes.{name}.configuration"), &error.path), error.message)
                })?;
            }
            let index = engines.len();
            self.runs.push(Runs::Router(number));
            self.ports.push(vec![usize::MAX; ports.ports.len()]);
            for end in self.physical_ends(number) {
                let Some(port) = engine.port(&self.ends[end].interface) else { continue };
                self.attach(end, index, port);
                // A host's frames enter at the router's port.
                if self.nodes[self.ends[peer(end)].node].kind == NodeKind::Host {
                    (self.ends[peer(end)].engine, self.ends[peer(end)].port) = (index, port);
                }
            }
            engines.push(engine);
        }
        for end in 0..self.ends.len() {
            let physical = self.physical(end);
            (self.ends[end].engine, self.ends[end].port) = (self.ends[physical].engine, self.ends[physical].port);
        }
        // A link between two hosts is a separate engine, like the separate `qos-router` of the virtual lab.
        for near in (0..2 * scenario.links.len()).step_by(2) {
            if [near, peer(near)].iter().any(|end| self.nodes[self.ends[*end].node].kind == NodeKind::Router) {
                continue;
            }
            let ports = [("0", near), ("1", peer(near))]
                .map(|(name, end)| (name.to_owned(), port_config(scenario, end, false)));
            let ports = PortsConfig { ports: ports.into(), seed: scenario.seed };
            let engine = Engine::new(&ports, start).map_err(|error| {
                let field = error.path.rsplit_once(".link.").map_or(error.path.as_str(), |(_, field)| field);
                ConfigError::new(format!("links[{}].{field}", near / 2), error.message.clone())
            })?;
            let index = engines.len();
            self.runs.push(Runs::Line);
            self.ports.push(vec![usize::MAX; 2]);
            self.attach(near, index, PortId(0));
            self.attach(peer(near), index, PortId(1));
            engines.push(engine);
        }
        Ok(engines)
    }

    fn attach(&mut self, end: usize, engine: usize, port: PortId) {
        (self.ends[end].engine, self.ends[end].port) = (engine, port);
        self.ports[engine][usize::from(port.0)] = end;
    }

    /// Converts an error in the wiring of a router's port to one in the scenario's link.
    fn locate(&self, node: usize, error: ConfigError) -> ConfigError {
        let rest = error.path.strip_prefix("ports.");
        let found = rest.and_then(|rest| {
            let ends = self.nodes[node].ends.iter();
            ends.filter_map(|end| {
                Some((end / 2, rest.strip_prefix(&self.ends[*end].interface)?.strip_prefix(".link")?))
            })
            .next()
        });
        match found {
            Some((link, field)) => ConfigError::new(format!("links[{link}]{field}"), error.message),
            None => ConfigError::new(format!("nodes.{}: {}", self.nodes[node].name, error.path), error.message),
        }
    }

    fn resolve(&self, node: usize, route: &Route, path: &str) -> Result<StaticRoute, ConfigError> {
        let name = &self.nodes[node].name;
        let ends = &self.nodes[node].ends;
        let by_interface = match &route.interface {
            None => None,
            Some(interface) => match self.interface(node, interface) {
                Some(end) => Some(end),
                None => {
                    let message = format!("found {interface:?}, not an interface with a link on {name}");
                    return wrong(format!("{path}.interface"), message);
                }
            },
        };
        let by_next_hop = match route.via {
            None => None,
            Some(via) if via.is_ipv4() != route.prefix.addr().is_ipv4() => {
                let message = format!("found {via}, expected an address of the same family as {}", route.prefix);
                return wrong(format!("{path}.via"), message);
            }
            Some(via) => {
                let end = ends.iter().copied().find(|end| self.ends[peer(*end)].has(via));
                let Some(end) = end else {
                    let message = format!("found {via}, expected the address of the other end of a link of {name}");
                    return wrong(format!("{path}.via"), message);
                };
                Some(end)
            }
        };
        let end = match (by_interface, by_next_hop) {
            (None, None) => {
                return wrong(path, "found neither a next hop nor an interface: set via, interface or both")
            }
            (Some(one), Some(other)) if one != other => {
                let message =
                    format!("found {}, an interface that does not lead to the next hop", self.ends[one].interface);
                return wrong(format!("{path}.interface"), message);
            }
            (Some(end), _) | (None, Some(end)) => end,
        };
        Ok(StaticRoute { prefix: route.prefix.trunc(), end })
    }

    /// Returns the end by which a node sends packets for an address: the longest prefix, with connected networks before
    /// routes. `Ok(None)`: no route.
    ///
    /// # Errors
    /// When the address would have to be on a link and is not.
    pub fn next_hop(&self, node: usize, destination: IpAddr) -> Result<Option<usize>, String> {
        let connected = self.nodes[node].ends.iter().flat_map(|&end| {
            self.ends[end].addresses.iter().map(move |address| StaticRoute { prefix: address.trunc(), end })
        });
        let mut best: Option<(StaticRoute, bool)> = None;
        let all = connected.map(|route| (route, true)).chain(self.routes[node].iter().map(|route| (*route, false)));
        for (route, connected) in all.filter(|(route, _)| route.prefix.contains(&destination)) {
            if best.is_none_or(|(best, _)| route.prefix.prefix_len() > best.prefix.prefix_len()) {
                best = Some((route, connected));
            }
        }
        match best {
            Some((route, true)) if !self.ends[peer(route.end)].has(destination) => {
                let interface = &self.ends[route.end].interface;
                Err(format!("{destination} should be behind interface {interface}, but no node there has that address"))
            }
            found => Ok(found.map(|(route, _)| route.end)),
        }
    }

    /// Checks that packets from a host reach an address; returns the end by which they leave the host.
    ///
    /// # Errors
    /// Where they would not: no route, a loop.
    pub fn check_path(&self, source: usize, destination: IpAddr) -> Result<usize, String> {
        let mut node = source;
        let mut first = None;
        let mut passed: Vec<&str> = Vec::new();
        loop {
            passed.push(&self.nodes[node].name);
            let here = passed.join(" → ");
            let end = match self.next_hop(node, destination) {
                Ok(Some(end)) => end,
                Ok(None) => return Err(format!("no route to {destination} at {}: {here}", self.nodes[node].name)),
                Err(message) => return Err(format!("{message}: {here}")),
            };
            let first = *first.get_or_insert(end);
            node = self.ends[peer(end)].node;
            if self.nodes[node].ends.iter().any(|end| self.ends[*end].has(destination)) {
                return Ok(first);
            }
            if self.nodes[node].kind == NodeKind::Host {
                return Err(format!("{} is a host and does not forward: {here}", self.nodes[node].name));
            }
            if passed.contains(&self.nodes[node].name.as_str()) {
                return Err(format!("a loop on the way to {destination}: {here} → {}", self.nodes[node].name));
            }
        }
    }
}

/// Refuses ends that are not in the same networks, for each address family of either end.
fn check_networks(near: &LinkEnd, far: &LinkEnd, path: &str) -> Result<(), ConfigError> {
    let networks = |end: &LinkEnd| end.addresses().map(|(_, address)| address.trunc()).collect::<Vec<_>>();
    if networks(near).is_empty() {
        return wrong(
            path,
            format!("found no address of {}, expected an IPv4 address, an IPv6 address or both", near.node),
        );
    }
    if networks(near) == networks(far) {
        return Ok(());
    }
    let listed = |end: &LinkEnd| {
        let own: Vec<_> = end.addresses().map(|(_, address)| address.to_string()).collect();
        if own.is_empty() {
            "no address".to_owned()
        } else {
            own.join(" ")
        }
    };
    wrong(path, format!("found {} and {}, not in the same network", listed(near), listed(far)))
}

fn join_path(path: &str, rest: &str) -> String {
    match rest {
        "" => path.to_owned(),
        rest => format!("{path}.{rest}"),
    }
}

fn check_node(name: &str, config: &NodeConfig) -> Result<(), ConfigError> {
    match config.kind {
        NodeKind::Host if config.configuration.is_some() => {
            wrong(format!("nodes.{name}.configuration"), "found this key on a host, expected it on routers only")
        }
        NodeKind::Router if config.tcp.is_some() => {
            wrong(format!("nodes.{name}.tcp"), "found this key on a router, expected it on hosts only")
        }
        _ => Ok(()),
    }
}

fn port_config(scenario: &Scenario, end: usize, paced_by_peer: bool) -> PortConfig {
    let link: &Link = &scenario.links[end / 2];
    let config = &link.ends[end % 2];
    let derived = || Seed::new(scenario.seed).with("link").with(&link.name).with(&config.node).number();
    PortConfig {
        // Names of Linux interfaces, which do not exist here.
        inside: String::new(),
        wire: String::new(),
        link: LinkConfig {
            rate_bps: link.rate_bps,
            framing: link.framing,
            delay_ns: link.delay_ns,
            jitter: link.jitter,
            loss: link.loss,
            seed: config.seed.unwrap_or_else(derived),
        },
        paced_by_peer,
    }
}
