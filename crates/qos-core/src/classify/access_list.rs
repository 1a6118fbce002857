//! Access lists in force.

use std::net::{IpAddr, Ipv4Addr};

use crate::config::classification::{AccessAction, AccessListEntry, AddressMatch, PortMatch, PortOperator};
use crate::frame::descriptor::{Descriptor, Network};

/// An access list in force, with its hits.
#[derive(Clone, Debug)]
pub(crate) struct AccessList {
    pub name: String,
    pub entries: Vec<AccessListEntry>,
    pub hits: Vec<u64>,
    later_fragments: LaterFragments,
}

/// What an entry with ports, ICMP types or `established` says of a later fragment, which has none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaterFragments {
    /// A router lets the network layer decide a permit; a deny does not apply.
    ByNetworkLayer,
    /// A Catalyst 3750's hardware does not match it (software configuration guide, "Configuring QoS": fragments stay
    /// best effort).
    Unmatched,
}

impl AccessList {
    pub fn new(name: &str, entries: &[AccessListEntry], later_fragments: LaterFragments) -> AccessList {
        AccessList { name: name.to_owned(), entries: entries.to_vec(), hits: vec![0; entries.len()], later_fragments }
    }

    /// Whether the first entry that matches permits; counts its hit.
    pub fn permits(&mut self, descriptor: &Descriptor) -> bool {
        match self.entries.iter().position(|entry| entry_matches(entry, descriptor, self.later_fragments)) {
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

fn entry_matches(entry: &AccessListEntry, descriptor: &Descriptor, later_fragments: LaterFragments) -> bool {
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
