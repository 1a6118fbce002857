//! Test whether a packet is in the class of a class-map.

use crate::classify::access_list::AccessList;
use crate::config::classification::{MatchMode, ProtocolName};
use crate::frame::descriptor::{Descriptor, Network};
use crate::plan::classes::{Matcher, Statement, Test};
use crate::wire::ip::protocol;

impl Matcher {
    /// Returns the matcher of `class-default`.
    pub fn any() -> Matcher {
        Matcher { combine: MatchMode::Any, criteria: vec![Statement { negate: false, test: Test::Any }] }
    }

    /// Returns whether the packet is in the class; with `match-any` also the first matching statement.
    pub fn matches(&self, descriptor: &Descriptor, lists: &mut [AccessList]) -> Option<usize> {
        let combine = match self.combine {
            MatchMode::Any if mistaken!(MatchAnyAll) => MatchMode::All,
            MatchMode::All if mistaken!(MatchAllAny) => MatchMode::Any,
            combine => combine,
        };
        match combine {
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
    /// Returns whether the packet matches the statement.
    pub fn matches(&self, descriptor: &Descriptor, lists: &mut [AccessList]) -> bool {
        let ip = |ip_only: bool| if ip_only { descriptor.network == Network::Ipv4 } else { descriptor.is_ip() };
        let matches = match &self.test {
            Test::Any => true,
            Test::AccessGroup(list) => lists[*list].permits(descriptor),
            Test::Dscp { values, ip_only } => ip(*ip_only) && (values >> descriptor.dscp) & 1 == 1,
            Test::Precedence { values, ip_only } => ip(*ip_only) && (values >> descriptor.precedence()) & 1 == 1,
            Test::Vlan { ranges } => {
                let within = |(first, last): &(u16, u16)| (*first..=*last).contains(&descriptor.vlan);
                ranges.iter().any(within)
            }
            Test::Cos { values } => (values >> (descriptor.cos & 7)) & 1 == 1,
            Test::Protocol(name) => protocol_matches(*name, descriptor),
            Test::PacketLength { min, max } => descriptor.is_ip() && (*min..=*max).contains(&descriptor.network_len),
            Test::InputInterface(port) => descriptor.input_port == Some(*port),
            Test::QosGroup(group) => descriptor.qos_group == *group,
            Test::DiscardClass(class) => descriptor.discard_class == *class,
            Test::Nested(matcher) => matcher.matches(descriptor, lists).is_some(),
        };
        matches != self.negate
    }
}

/// Returns whether a packet has the protocol: by IP protocol number, or by a well-known port at either end.
fn protocol_matches(name: ProtocolName, descriptor: &Descriptor) -> bool {
    let is = |number: u8| descriptor.is_ip() && descriptor.protocol == number;
    let port = |number: u16| [descriptor.source_port, descriptor.destination_port].contains(&Some(number));
    match name {
        ProtocolName::Ip => descriptor.network == Network::Ipv4,
        ProtocolName::Ipv6 => descriptor.network == Network::Ipv6,
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
