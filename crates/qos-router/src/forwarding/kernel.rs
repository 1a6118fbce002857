//! State of the router's kernel, according to its messages, and its treatment of a packet.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use netlink_packet_core::{parse_i32, DecodeError, NlasIterator, ParseableParametrized, NLM_F_REPLACE};
use netlink_packet_route::link::{AfSpecInet6, AfSpecUnspec, LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::link::{LinkXdp, XdpAttached};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteType};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use qos_core::wire::ethernet::ADDRESSES;

use super::fib::{Change, Found, Hop, Route, Routes, Table, Target};
use super::packet::{Mac, Packet};

/// Numbers of routing tables.
const TABLE_MAIN: u32 = 254;
const TABLE_LOCAL: u32 = 255;
/// Settings of an interface (`linux/netconf.h`), which the library does not know.
const RTM_NEWNETCONF: u16 = 80;
const RTM_DELNETCONF: u16 = 81;
const NETCONF_HEADER: usize = 4;
const NETCONFA_IFINDEX: u16 = 1;
const NETCONFA_FORWARDING: u16 = 2;
const NETCONFA_RP_FILTER: u16 = 3;
const NETCONFA_PROXY_NEIGH: u16 = 5;
/// Number that stands for all interfaces.
const ALL: i32 = -1;

/// Effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// The treatment of packets may have changed.
    Changed,
    /// The message does not show all changes: everything must be requested again.
    Unclear,
}

/// An interface of the router's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Name of the interface.
    pub name: String,
    /// Number of the other end of a pair, in its namespace.
    pub peer: u32,
    address: Mac,
    up: bool,
    /// Whether the interface needs no ARP: its neighbours have its own hardware address.
    without_arp: bool,
    mtu: u32,
    /// Maximum IPv6 packet length; none without IPv6.
    ipv6_mtu: Option<u32>,
    /// Other functions that take part in forwarding there.
    foreign: Option<&'static str>,
}

/// Settings of an interface, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Settings {
    forwarding: bool,
    /// 0 no, 1 strict, 2 loose source validation (RFC 3704).
    rp_filter: i32,
    proxy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbour {
    address: Mac,
    /// Stale entry: the kernel confirms it after the next packet that it forwards to it.
    stale: bool,
    /// Whether the kernel has used the route.
    used: bool,
}

/// Fate of a packet that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Number of the interface by which it leaves.
    pub link: u32,
    /// Addresses of the Ethernet header.
    pub header: [u8; ADDRESSES],
    /// Longest packet that may leave there.
    pub mtu: usize,
}

/// The kernel's links, routes, neighbours and settings.
#[derive(Debug, Default)]
pub struct Kernel {
    links: HashMap<u32, Link>,
    /// Interfaces with an address of IPv6.
    with_ipv6: HashSet<u32>,
    routes: Routes,
    neighbours: HashMap<(u32, IpAddr), Neighbour>,
    settings: HashMap<(bool, i32), Settings>,
    /// Whether there are non-default rules; traffic control, by interface.
    rules: bool,
    disciplines: HashMap<u32, String>,
}

impl Kernel {
    /// Applies a message; if `dumping`, it is part of a dump, which lists the present state instead of a change.
    ///
    /// # Errors
    /// When it cannot be read: something is in use that is not known here.
    pub fn take(&mut self, kind: u16, flags: u16, body: &[u8], dumping: bool) -> Result<Effect, DecodeError> {
        if matches!(kind, RTM_NEWNETCONF | RTM_DELNETCONF) {
            return self.setting(kind == RTM_NEWNETCONF, body, dumping);
        }
        let replace = flags & NLM_F_REPLACE != 0;
        Ok(match RouteNetlinkMessage::parse_with_param(body, kind)? {
            RouteNetlinkMessage::NewLink(link) => self.link(&link, dumping),
            RouteNetlinkMessage::NewRoute(route) => match Self::route(&route) {
                Some(route) => effect(self.routes.add(&route, replace)),
                None => Effect::None,
            },
            RouteNetlinkMessage::DelRoute(route) => match Self::route(&route) {
                Some(route) => effect(self.routes.remove(&route)),
                None => Effect::None,
            },
            RouteNetlinkMessage::NewNeighbour(neighbour) => self.neighbour(&neighbour, true),
            RouteNetlinkMessage::DelNeighbour(neighbour) => self.neighbour(&neighbour, false),
            RouteNetlinkMessage::NewAddress(address) if dumping => {
                if address.header.family == AddressFamily::Inet6 {
                    self.with_ipv6.insert(address.header.index);
                }
                Effect::Changed
            }
            RouteNetlinkMessage::NewRule(rule) if dumping => {
                self.rules |= !is_default(&rule);
                Effect::Changed
            }
            RouteNetlinkMessage::NewQueueDiscipline(discipline) if dumping => self.discipline(&discipline),
            // Routes disappear with their addresses and interfaces, which the kernel does not report.
            _ => Effect::Unclear,
        })
    }

    fn setting(&mut self, new: bool, body: &[u8], dumping: bool) -> Result<Effect, DecodeError> {
        let six = match body.first().map(|family| AddressFamily::from(*family)) {
            Some(AddressFamily::Inet) => false,
            Some(AddressFamily::Inet6) => true,
            _ => return Ok(Effect::None),
        };
        let (mut index, mut settings) = (0, Settings::default());
        for attribute in NlasIterator::new(body.get(NETCONF_HEADER..).unwrap_or(&[])) {
            let attribute = attribute?;
            match attribute.kind() {
                NETCONFA_IFINDEX => index = parse_i32(attribute.value())?,
                NETCONFA_FORWARDING => settings.forwarding = parse_i32(attribute.value())? != 0,
                NETCONFA_RP_FILTER => settings.rp_filter = parse_i32(attribute.value())?,
                NETCONFA_PROXY_NEIGH => settings.proxy = parse_i32(attribute.value())? != 0,
                _ => {}
            }
        }
        if !(new && dumping) {
            // A notification contains only the changes.
            return Ok(Effect::Unclear);
        }
        self.settings.insert((six, index), settings);
        Ok(Effect::Changed)
    }

    fn link(&mut self, message: &LinkMessage, dumping: bool) -> Effect {
        // Entries of a bridge are about its ports.
        if message.header.interface_family != AddressFamily::Unspec {
            return Effect::None;
        }
        let link = Link::of(message);
        match self.links.get(&message.header.index) {
            Some(known) if *known == link => Effect::None,
            _ if dumping => {
                self.links.insert(message.header.index, link);
                Effect::Changed
            }
            _ => Effect::Unclear,
        }
    }

    fn route(message: &RouteMessage) -> Option<Route> {
        let header = &message.header;
        let nowhere = match header.address_family {
            AddressFamily::Inet => IpAddr::from([0; 4]),
            AddressFamily::Inet6 => IpAddr::from([0; 16]),
            _ => return None,
        };
        let mut number = u32::from(header.table);
        let (mut prefix, mut priority, mut link, mut gateway, mut mtu) = (nowhere, 0, None, None, None);
        let unusable = RouteFlags::Dead
            | RouteFlags::Linkdown
            | RouteFlags::Offload
            | RouteFlags::Trap
            | RouteFlags::Unresolved
            | RouteFlags::RtTrap;
        let mut plain =
            header.kind == RouteType::Unicast && header.source_prefix_length == 0 && !header.flags.intersects(unusable);
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(address) => prefix = host(address)?,
                RouteAttribute::Gateway(address) => gateway = Some(host(address)?),
                RouteAttribute::Oif(index) => link = Some(*index),
                RouteAttribute::Priority(given) => priority = *given,
                RouteAttribute::Table(given) => number = *given,
                RouteAttribute::Metrics(metrics) => {
                    mtu = metrics.iter().find_map(|metric| match metric {
                        RouteMetric::Mtu(mtu) => Some(*mtu),
                        _ => None,
                    });
                }
                RouteAttribute::CacheInfo(info) => plain &= info.expires == 0,
                // Source of the router's own packets, and origin of the route.
                RouteAttribute::PrefSource(_) | RouteAttribute::Preference(_) => {}
                _ => plain = false,
            }
        }
        // The kernel has no such route, and the tables here have no place for it.
        if header.destination_prefix_length > if prefix.is_ipv4() { 32 } else { 128 } {
            return None;
        }
        let table = match number {
            TABLE_LOCAL => Table::Local,
            TABLE_MAIN => Table::Main,
            // The default rules use no other table except an empty one.
            _ => return None,
        };
        if header.flags.contains(RouteFlags::Cloned) {
            return None;
        }
        let target = match link.filter(|_| plain) {
            Some(link) => Target::Hop(Hop { link, gateway, mtu }),
            None => Target::Kernel,
        };
        Some(Route { table, prefix, length: header.destination_prefix_length, tos: header.tos, priority, target })
    }

    fn neighbour(&mut self, message: &NeighbourMessage, there: bool) -> Effect {
        let (mut host, mut hardware) = (None, None);
        for attribute in &message.attributes {
            match attribute {
                NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => host = Some(IpAddr::V4(*address)),
                NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => host = Some(IpAddr::V6(*address)),
                NeighbourAttribute::LinkLayerAddress(address) => hardware = Mac::try_from(&address[..]).ok(),
                _ => {}
            }
        }
        let Some(host) = host else { return Effect::None };
        let key = (message.header.ifindex, host);
        let stale = match message.header.state {
            NeighbourState::Stale => true,
            NeighbourState::Reachable
            | NeighbourState::Delay
            | NeighbourState::Probe
            | NeighbourState::Permanent
            | NeighbourState::Noarp => false,
            _ => return self.forget(key),
        };
        let Some(address) = hardware.filter(|_| there) else { return self.forget(key) };
        let new = Neighbour { address, stale, used: false };
        let before = self.neighbours.insert(key, new);
        if before == Some(new) {
            Effect::None
        } else {
            Effect::Changed
        }
    }

    fn forget(&mut self, neighbour: (u32, IpAddr)) -> Effect {
        self.neighbours.remove(&neighbour).map_or(Effect::None, |_| Effect::Changed)
    }

    fn discipline(&mut self, message: &TcMessage) -> Effect {
        for attribute in &message.attributes {
            match attribute {
                TcAttribute::Kind(kind) if kind != "noqueue" => {
                    self.disciplines.insert(message.header.index as u32, kind.clone());
                }
                _ => {}
            }
        }
        Effect::Changed
    }

    /// Returns the number of the interface whose pair's other end is interface `inside` of the daemon's namespace, if
    /// its own other end has the number `peer`.
    pub fn other_end(&self, inside: u32, peer: u32) -> Option<u32> {
        self.links.get(&peer).filter(|link| link.peer == inside).map(|_| peer)
    }

    /// Returns the functions in use between these interfaces that [`Self::way`] does not support.
    pub fn unknown(&self, links: impl IntoIterator<Item = u32>) -> Option<String> {
        if self.rules {
            return Some("policy routing rules".to_owned());
        }
        links.into_iter().find_map(|index| {
            let link = self.links.get(&index)?;
            if let Some(foreign) = link.foreign {
                return Some(format!("{foreign} {}", link.name));
            }
            let kind = self.disciplines.get(&index)?;
            Some(format!("traffic control ({kind}) at {}", link.name))
        })
    }

    /// Returns the kernel's treatment of a packet that arrives on interface `input`; none if the kernel must be asked.
    pub fn way(&mut self, input: u32, packet: &Packet) -> Option<Way> {
        let from = self.links.get(&input).filter(|link| link.up && link.address == packet.to)?;
        let six = packet.destination.is_ipv6();
        let (own, all) = (self.settings.get(&(six, input as i32))?, self.settings.get(&(six, ALL))?);
        let forwards = match six {
            false => own.forwarding,
            true => all.forwarding && !all.proxy && from.ipv6_mtu.is_some() && self.with_ipv6.contains(&input),
        };
        if !forwards {
            return None;
        }
        let validation = if six { 0 } else { own.rp_filter.max(all.rp_filter) };
        match (validation, self.routes.find(packet.source)) {
            (_, Found::Local) | (1.., Found::Other) => return None,
            (1, Found::Hop(back)) if back.link != input => return None,
            _ => {}
        }
        let Found::Hop(hop) = self.routes.find(packet.destination) else { return None };
        // Back through the same interface: the sender gets a redirect.
        let to = self.links.get(&hop.link).filter(|link| link.up && hop.link != input)?;
        let mtu = if six { to.ipv6_mtu?.min(to.mtu) } else { to.mtu };
        let mtu = hop.mtu.unwrap_or(mtu).min(mtu) as usize;
        if packet.length > mtu {
            return None;
        }
        let known = self.neighbours.get_mut(&(hop.link, hop.gateway.unwrap_or(packet.destination)));
        // A point-to-point line: the kernel creates a neighbour entry when it first sends there.
        let Some(next) = known else {
            return to.without_arp.then(|| way(hop.link, to.address, to.address, mtu));
        };
        if next.stale && !next.used {
            // On this packet the kernel checks whether the neighbour is still reachable.
            next.used = true;
            return None;
        }
        Some(way(hop.link, next.address, to.address, mtu))
    }

    /// Returns the interfaces, by number.
    pub fn links(&self) -> &HashMap<u32, Link> {
        &self.links
    }
}

fn way(link: u32, to: Mac, from: Mac, mtu: usize) -> Way {
    let mut header = [0; ADDRESSES];
    header[..6].copy_from_slice(&to);
    header[6..].copy_from_slice(&from);
    Way { link, header, mtu }
}

fn effect(change: Change) -> Effect {
    match change {
        Change::Same => Effect::None,
        Change::Done => Effect::Changed,
        Change::Unclear => Effect::Unclear,
    }
}

fn host(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

/// Returns whether it is one of the rules of every namespace: look up `local`, `main`, `default`, for every packet.
fn is_default(rule: &RuleMessage) -> bool {
    let header = &rule.header;
    let (mut priority, mut table, mut plain) = (0, u32::from(header.table), true);
    for attribute in &rule.attributes {
        match attribute {
            RuleAttribute::Priority(given) => priority = *given,
            RuleAttribute::Table(given) => table = *given,
            RuleAttribute::Protocol(_) => {}
            // None at all.
            RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
            _ => plain = false,
        }
    }
    let selects = (header.dst_len, header.src_len, header.tos) != (0, 0, 0) || header.flags.bits() & 0x2 != 0;
    let known = [(0, TABLE_LOCAL), (32766, TABLE_MAIN), (32767, 253)];
    plain && !selects && header.action == RuleAction::ToTable && known.contains(&(priority, table))
}

impl Link {
    /// Returns the interface of a message.
    pub fn of(message: &LinkMessage) -> Link {
        let header = &message.header;
        let mut link = Link {
            name: String::new(),
            peer: 0,
            address: Mac::default(),
            up: header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp),
            without_arp: header.flags.contains(LinkFlags::Noarp),
            mtu: 0,
            ipv6_mtu: None,
            foreign: None,
        };
        if header.link_layer_type != LinkLayerType::Ether {
            link.up = false;
        }
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::Link(peer) => link.peer = *peer,
                LinkAttribute::Address(address) => {
                    link.address = Mac::try_from(&address[..]).unwrap_or_default();
                }
                LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
                LinkAttribute::Controller(_) => link.foreign = Some("a bridge, bond or VRF over"),
                LinkAttribute::Xdp(xdp) => {
                    let none = xdp.iter().all(|each| matches!(each, LinkXdp::Attached(XdpAttached::None)));
                    link.foreign = if none { link.foreign } else { Some("an XDP program at") };
                }
                LinkAttribute::AfSpecUnspec(families) => link.ipv6_mtu = ipv6_mtu(families),
                _ => {}
            }
        }
        link
    }

    /// Returns the maximum IPv6 packet length, a setting without notifications from the kernel.
    pub fn ipv6_mtu(&self) -> Option<u32> {
        self.ipv6_mtu
    }
}

fn ipv6_mtu(families: &[AfSpecUnspec]) -> Option<u32> {
    let six = families.iter().find_map(|family| match family {
        AfSpecUnspec::Inet6(six) => Some(six),
        _ => None,
    })?;
    six.iter().find_map(|each| match each {
        AfSpecInet6::DevConf(settings) => u32::try_from(settings.mtu6).ok(),
        _ => None,
    })
}
