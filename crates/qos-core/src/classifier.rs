//! The classifier: class-maps and access lists.

use std::net::{IpAddr, Ipv4Addr};

use crate::config::{AccessAction, AccessListEntry, AddressMatch, MatchMode, PortMatch, PortOperator, ProtocolName};
use crate::engine::PortId;
use crate::packet::{protocol, Descriptor, Network};

/// An access list in force, with its hits.
#[derive(Clone, Debug)]
pub(crate) struct AccessList {
    pub name: String,
    pub entries: Vec<AccessListEntry>,
    pub hits: Vec<u64>,
}

impl AccessList {
    pub fn new(name: &str, entries: &[AccessListEntry]) -> AccessList {
        AccessList { name: name.to_owned(), entries: entries.to_vec(), hits: vec![0; entries.len()] }
    }

    /// Whether the first entry that matches permits; counts its hit.
    fn permits(&mut self, descriptor: &Descriptor) -> bool {
        match self.entries.iter().position(|entry| entry_matches(entry, descriptor)) {
            Some(index) => {
                self.hits[index] += 1;
                self.entries[index].action == AccessAction::Permit
            }
            None => false,
        }
    }
}

fn address_matches(wanted: &AddressMatch, address: Ipv4Addr) -> bool {
    let wildcard = u32::from(wanted.wildcard);
    u32::from(wanted.address) | wildcard == u32::from(address) | wildcard
}

fn port_matches(wanted: &PortMatch, port: u16) -> bool {
    match wanted.op {
        PortOperator::Eq => wanted.ports.contains(&port),
        PortOperator::Neq => !wanted.ports.contains(&port),
        PortOperator::Gt => port > wanted.ports[0],
        PortOperator::Lt => port < wanted.ports[0],
        PortOperator::Range => (wanted.ports[0]..=wanted.ports[1]).contains(&port),
    }
}

fn entry_matches(entry: &AccessListEntry, descriptor: &Descriptor) -> bool {
    let (IpAddr::V4(source), IpAddr::V4(destination), Network::Ipv4) =
        (descriptor.source, descriptor.destination, descriptor.network)
    else {
        return false;
    };
    let network_layer = entry.protocol.is_none_or(|wanted| wanted == descriptor.protocol)
        && address_matches(&entry.source, source)
        && address_matches(&entry.destination, destination)
        && entry.dscp.is_none_or(|wanted| wanted == descriptor.dscp)
        && entry.precedence.is_none_or(|wanted| wanted == descriptor.precedence())
        && (!entry.fragments || descriptor.later_fragment);
    if !network_layer {
        return false;
    }
    let transport_layer = entry.source_port.is_some()
        || entry.destination_port.is_some()
        || entry.established
        || entry.icmp_type.is_some();
    if transport_layer && descriptor.later_fragment {
        // The ports are not in this fragment: a permit is decided by the network layer, a deny does not apply.
        return entry.action == AccessAction::Permit;
    }
    let port = |wanted: &Option<PortMatch>, port: Option<u16>| {
        wanted.as_ref().is_none_or(|wanted| port.is_some_and(|port| port_matches(wanted, port)))
    };
    port(&entry.source_port, descriptor.source_port)
        && port(&entry.destination_port, descriptor.destination_port)
        && (!entry.established || descriptor.established)
        && entry.icmp_type.is_none_or(|wanted| descriptor.icmp.is_some_and(|(kind, _)| kind == wanted))
        && entry.icmp_code.is_none_or(|wanted| descriptor.icmp.is_some_and(|(_, code)| code == wanted))
}

/// A class-map, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matcher {
    pub combine: MatchMode,
    pub criteria: Vec<Statement>,
}

/// One match statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub negate: bool,
    pub test: Test,
}

/// What a match statement tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Any,
    /// By the number of the access list.
    AccessGroup(usize),
    /// Bit n set: code point n.
    Dscp {
        values: u64,
        ip_only: bool,
    },
    /// Bit n set: precedence n.
    Precedence {
        values: u8,
        ip_only: bool,
    },
    /// Bit n set: class n.
    Cos {
        values: u8,
    },
    Protocol(ProtocolName),
    PacketLength {
        min: u32,
        max: u32,
    },
    InputInterface(PortId),
    QosGroup(u16),
    Nested(Matcher),
}

impl Matcher {
    /// The matcher of `class-default`.
    pub fn any() -> Matcher {
        Matcher { combine: MatchMode::Any, criteria: vec![Statement { negate: false, test: Test::Any }] }
    }

    /// Whether the packet is in the class; with `match-any` also which statement matched first.
    pub fn matches(&self, descriptor: &Descriptor, lists: &mut [AccessList]) -> Option<usize> {
        match self.combine {
            MatchMode::Any => self.criteria.iter().position(|statement| statement.matches(descriptor, lists)),
            MatchMode::All => {
                let all = !self.criteria.is_empty()
                    && self.criteria.iter().all(|statement| statement.matches(descriptor, lists));
                all.then_some(0)
            }
        }
    }
}

impl Statement {
    fn matches(&self, descriptor: &Descriptor, lists: &mut [AccessList]) -> bool {
        let ip = |ip_only: bool| if ip_only { descriptor.network == Network::Ipv4 } else { descriptor.is_ip() };
        let matches = match &self.test {
            Test::Any => true,
            Test::AccessGroup(list) => lists[*list].permits(descriptor),
            Test::Dscp { values, ip_only } => ip(*ip_only) && (values >> descriptor.dscp) & 1 == 1,
            Test::Precedence { values, ip_only } => ip(*ip_only) && (values >> descriptor.precedence()) & 1 == 1,
            Test::Cos { values } => (values >> (descriptor.cos & 7)) & 1 == 1,
            Test::Protocol(name) => protocol_matches(*name, descriptor),
            Test::PacketLength { min, max } => descriptor.is_ip() && (*min..=*max).contains(&descriptor.network_len),
            Test::InputInterface(port) => descriptor.input_port == Some(*port),
            Test::QosGroup(group) => descriptor.qos_group == *group,
            Test::Nested(matcher) => matcher.matches(descriptor, lists).is_some(),
        };
        matches != self.negate
    }
}

/// Protocols are told by IP protocol number or by a well-known port at either end.
fn protocol_matches(name: ProtocolName, descriptor: &Descriptor) -> bool {
    let is = |number: u8| descriptor.is_ip() && descriptor.protocol == number;
    let port = |number: u16| [descriptor.source_port, descriptor.destination_port].contains(&Some(number));
    match name {
        ProtocolName::Ip => descriptor.network == Network::Ipv4,
        ProtocolName::Icmp => is(protocol::ICMP),
        ProtocolName::Tcp => is(protocol::TCP),
        ProtocolName::Udp => is(protocol::UDP),
        ProtocolName::Ospf => is(protocol::OSPF),
        ProtocolName::Eigrp => is(protocol::EIGRP),
        ProtocolName::Bgp => is(protocol::TCP) && port(179),
        ProtocolName::Http => is(protocol::TCP) && port(80),
        ProtocolName::SecureHttp => is(protocol::TCP) && port(443),
        ProtocolName::Smtp => is(protocol::TCP) && port(25),
        ProtocolName::Rip => is(protocol::UDP) && port(520),
    }
}
