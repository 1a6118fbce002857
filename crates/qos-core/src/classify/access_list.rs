//! Access lists in force.

use std::net::IpAddr;
use std::ops::BitOr;

use crate::config::classification::{AccessAction, AccessListEntry, PortMatch, PortOperator};
use crate::frame::descriptor::{Descriptor, Network};
use crate::wire::ip::protocol;

/// An active access list, with its hits.
#[derive(Clone, Debug)]
pub(crate) struct AccessList {
    pub name: String,
    pub entries: Vec<AccessListEntry>,
    pub hits: Vec<u64>,
    addresses: Addresses,
    later_fragments: LaterFragments,
}

/// The addresses of each entry. All are of one family, as checked by the compiler.
#[derive(Clone, Debug)]
enum Addresses {
    Ipv4(Vec<Ends<u32>>),
    Ipv6(Vec<Ends<u128>>),
}

/// The addresses of one entry.
#[derive(Clone, Copy, Debug)]
struct Ends<Bits> {
    source: Wanted<Bits>,
    destination: Wanted<Bits>,
}

/// An address and its wildcard: the ignored bits are set in both.
#[derive(Clone, Copy, Debug)]
struct Wanted<Bits> {
    bits: Bits,
    wildcard: Bits,
}

impl<Bits: Copy + Eq + BitOr<Output = Bits>> Wanted<Bits> {
    fn new(address: Bits, wildcard: Bits) -> Wanted<Bits> {
        Wanted { bits: address | wildcard, wildcard }
    }

    fn is(&self, address: Bits) -> bool {
        self.bits == address | self.wildcard
    }
}

impl Addresses {
    fn of(entries: &[AccessListEntry]) -> Addresses {
        if entries.first().is_some_and(|entry| entry.source.address.is_ipv6()) {
            return Addresses::Ipv6(entries.iter().map(|entry| ends(entry, bits)).collect());
        }
        // A wildcard and its address have the same IP version, so no bits of IPv4 are lost.
        Addresses::Ipv4(entries.iter().map(|entry| ends(entry, |address| bits(address) as u32)).collect())
    }
}

fn ends<Bits>(entry: &AccessListEntry, bits: impl Fn(IpAddr) -> Bits) -> Ends<Bits>
where
    Bits: Copy + Eq + BitOr<Output = Bits>,
{
    Ends {
        source: Wanted::new(bits(entry.source.address), bits(entry.source.wildcard)),
        destination: Wanted::new(bits(entry.destination.address), bits(entry.destination.wildcard)),
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// Decision of an entry with ports, ICMP types or `established` on a later fragment, which has none of these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaterFragments {
    /// On a router, the network layer decides a permit; a deny does not apply.
    ByNetworkLayer,
    /// A Catalyst 3750's hardware does not match it (software configuration guide, "Configuring QoS": fragments stay
    /// best effort).
    Unmatched,
}

impl AccessList {
    pub fn new(name: &str, entries: &[AccessListEntry], later_fragments: LaterFragments) -> AccessList {
        AccessList {
            name: name.to_owned(),
            entries: entries.to_vec(),
            hits: vec![0; entries.len()],
            addresses: Addresses::of(entries),
            later_fragments,
        }
    }

    /// Returns whether the first matching entry permits the packet; counts its hit.
    pub fn permits(&mut self, descriptor: &Descriptor) -> bool {
        match self.first(descriptor) {
            Some(index) => {
                self.hits[index] += 1;
                self.entries[index].action == AccessAction::Permit
            }
            None => false,
        }
    }

    /// Returns whether an interface with this list passes a packet; counts its hit. A list without entries passes all
    /// packets (Cisco, "ip access-group": a list that does not exist), and any list passes packets of the other family.
    pub fn is_permitted_by(&mut self, descriptor: &Descriptor) -> bool {
        let network = if self.is_ipv6() { Network::Ipv6 } else { Network::Ipv4 };
        if self.entries.is_empty() || descriptor.network != network {
            return true;
        }
        match self.first(descriptor) {
            Some(index) => {
                self.hits[index] += 1;
                self.entries[index].action == AccessAction::Permit
            }
            None => is_neighbour_discovery(descriptor),
        }
    }

    /// Returns whether the entries match IPv6.
    pub fn is_ipv6(&self) -> bool {
        matches!(self.addresses, Addresses::Ipv6(_))
    }

    /// Returns the first entry that matches; packets of the other family match none.
    fn first(&self, descriptor: &Descriptor) -> Option<usize> {
        match (&self.addresses, descriptor.network, descriptor.source, descriptor.destination) {
            (Addresses::Ipv4(wanted), Network::Ipv4, IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.position(wanted, u32::from(source), u32::from(destination), descriptor)
            }
            (Addresses::Ipv6(wanted), Network::Ipv6, IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.position(wanted, u128::from(source), u128::from(destination), descriptor)
            }
            _ => None,
        }
    }

    fn position<Bits>(
        &self,
        wanted: &[Ends<Bits>],
        source: Bits,
        destination: Bits,
        descriptor: &Descriptor,
    ) -> Option<usize>
    where
        Bits: Copy + Eq + BitOr<Output = Bits>,
    {
        self.entries.iter().zip(wanted).position(|(entry, ends)| {
            entry.protocol.is_none_or(|wanted| wanted == descriptor.protocol)
                && ends.source.is(source)
                && ends.destination.is(destination)
                && entry_matches(entry, descriptor, self.later_fragments)
        })
    }
}

/// Returns whether a packet is a neighbour solicitation or advertisement, which every IPv6 access list permits ahead of
/// its implicit deny (Cisco, "ipv6 access-list").
fn is_neighbour_discovery(descriptor: &Descriptor) -> bool {
    const SOLICITATION: u8 = 135;
    const ADVERTISEMENT: u8 = 136;
    descriptor.protocol == protocol::ICMPV6 && matches!(descriptor.icmp, Some((SOLICITATION | ADVERTISEMENT, _)))
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

/// Returns whether an entry of the packet's protocol and addresses also matches its other criteria.
fn entry_matches(entry: &AccessListEntry, descriptor: &Descriptor, later_fragments: LaterFragments) -> bool {
    let network_layer = entry.dscp.is_none_or(|wanted| wanted == descriptor.dscp)
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
        return later_fragments == LaterFragments::ByNetworkLayer && entry.action == AccessAction::Permit;
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
