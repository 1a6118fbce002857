//! The routes of the kernel's tables `local` and `main`, and the selection of a route.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::IpAddr;

use prefix_trie::{Prefix, PrefixMap};

/// Output interface and next router of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Number of the interface in the router's namespace.
    pub link: u32,
    /// Next router; none if the destination is a neighbour.
    pub gateway: Option<IpAddr>,
    /// Maximum packet length, if the route has one.
    pub mtu: Option<u32>,
}

/// Contents of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Plain forwarding.
    Hop(Hop),
    /// Route that the kernel must handle itself: of another type than unicast, with several next hops, with an
    /// encapsulation, or with an end. When it is removed, another one may appear: among IPv6 routes with one prefix and
    /// priority, a dump omits those between the next hops of another route (`fib6_dump_node` of Linux).
    Kernel,
}

/// The tables of the default policy rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The router's own addresses, searched first.
    Local,
    /// All other routes.
    Main,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The table of the route.
    pub table: Table,
    /// Prefix; host bits do not count.
    pub prefix: IpAddr,
    /// Bits of the prefix.
    pub length: u8,
    /// Required type of service of packets; 0 for any.
    pub tos: u8,
    /// The least comes first.
    pub priority: u32,
    /// Properties of the route.
    pub target: Target,
}

/// Result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing has changed.
    Same,
    /// The routes equal those of the kernel.
    Done,
    /// The change is ambiguous: only the kernel's complete table is conclusive.
    Unclear,
}

/// Kind of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A route of the table `local`: the router itself, or a broadcast.
    Local,
    /// A packet to forward.
    Hop(Hop),
    /// Without a route, or with a route that the kernel must handle.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tos: u8,
    priority: u32,
    target: Target,
}

/// Routes of one version of IP, whose addresses are numbers `R`.
#[derive(Debug)]
struct Family<R: Debug>
where
    (R, u8): Prefix<R = R>,
{
    local: PrefixMap<(R, u8), Vec<Entry>>,
    main: PrefixMap<(R, u8), Vec<Entry>>,
}

impl<R: Debug> Default for Family<R>
where
    (R, u8): Prefix<R = R>,
{
    fn default() -> Self {
        Self { local: PrefixMap::default(), main: PrefixMap::default() }
    }
}

impl<R: Debug + Copy + Eq + Hash> Family<R>
where
    (R, u8): Prefix<R = R>,
{
    fn table(&mut self, table: Table) -> &mut PrefixMap<(R, u8), Vec<Entry>> {
        match table {
            Table::Local => &mut self.local,
            Table::Main => &mut self.main,
        }
    }

    fn add(&mut self, prefix: R, route: &Route, replace: bool) -> Change {
        let new = Entry { tos: route.tos, priority: route.priority, target: route.target };
        let entries = self.table(route.table).entry((prefix, route.length)).or_default();
        let alike = |entry: &Entry| (entry.tos, entry.priority) == (new.tos, new.priority);
        let mut rivals = entries.iter_mut().filter(|entry| alike(entry));
        match (rivals.next(), rivals.next()) {
            // A route can arrive as a notification and in a dump. Two routes that only the kernel understands may be
            // different.
            (Some(old), _) if *old == new && new.target != Target::Kernel => return Change::Same,
            (Some(old), None) if replace && old.target != Target::Kernel => *old = new,
            (Some(_), _) if replace => return Change::Unclear,
            _ => entries.push(new),
        }
        entries.sort_by_key(|entry| entry.priority);
        Change::Done
    }

    fn remove(&mut self, prefix: R, route: &Route) -> Change {
        let gone = Entry { tos: route.tos, priority: route.priority, target: route.target };
        let table = self.table(route.table);
        let Some(entries) = table.get_mut(&(prefix, route.length)) else { return Change::Same };
        let alike = |entry: &&Entry| (entry.tos, entry.priority) == (gone.tos, gone.priority);
        match entries.iter().filter(alike).count() {
            0 => return Change::Same,
            1 if gone.target != Target::Kernel && entries.iter().find(alike) == Some(&gone) => {
                entries.retain(|entry| *entry != gone);
            }
            _ => return Change::Unclear,
        }
        if entries.is_empty() {
            table.remove(&(prefix, route.length));
        }
        Change::Done
    }

    fn find(&self, address: R, length: u8) -> Found {
        if self.local.get_lpm(&(address, length)).is_some() {
            return Found::Local;
        }
        match self.main.get_lpm(&(address, length)).map(|(_, entries)| &entries[..]) {
            Some([first, rest @ ..])
                if first.tos == 0
                    && rest.iter().all(|entry| entry.tos == 0)
                    && rest.first().is_none_or(|second| second.priority != first.priority) =>
            {
                match first.target {
                    Target::Hop(hop) => Found::Hop(hop),
                    Target::Kernel => Found::Other,
                }
            }
            _ => Found::Other,
        }
    }
}

/// The routes of both versions of IP.
#[derive(Debug, Default)]
pub struct Routes {
    v4: Family<u32>,
    v6: Family<u128>,
}

impl Routes {
    /// Adds a route; with `replace` in the place of the one with the same prefix, type of service and priority.
    pub fn add(&mut self, route: &Route, replace: bool) -> Change {
        match route.prefix {
            IpAddr::V4(prefix) => self.v4.add(prefix.into(), route, replace),
            IpAddr::V6(prefix) => self.v6.add(prefix.into(), route, replace),
        }
    }

    /// Removes a route.
    pub fn remove(&mut self, route: &Route) -> Change {
        match route.prefix {
            IpAddr::V4(prefix) => self.v4.remove(prefix.into(), route),
            IpAddr::V6(prefix) => self.v6.remove(prefix.into(), route),
        }
    }

    /// Returns the treatment of a destination: the longest prefix of `local`, then of `main`, and among its routes the
    /// one with the lowest priority value. The kernel handles routes by type of service, and two with the same
    /// priority.
    pub fn find(&self, address: IpAddr) -> Found {
        match address {
            IpAddr::V4(address) => self.v4.find(address.into(), 32),
            IpAddr::V6(address) => self.v6.find(address.into(), 128),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn hop(link: u32) -> Target {
        Target::Hop(Hop { link, gateway: None, mtu: None })
    }

    fn route(length: u8, priority: u32, target: Target) -> Route {
        let prefix = Ipv4Addr::new(10, 1, 2, 3).into();
        Route { table: Table::Main, prefix, length, tos: 0, priority, target }
    }

    fn find(routes: &Routes) -> Found {
        routes.find(Ipv4Addr::new(10, 1, 2, 3).into())
    }

    #[test]
    fn ambiguous_routes_are_left_to_the_kernel() {
        let mut routes = Routes::default();
        assert_eq!(routes.add(&route(24, 5, hop(1)), false), Change::Done);
        assert_eq!(routes.add(&route(24, 5, hop(1)), false), Change::Same);
        assert_eq!(routes.add(&route(24, 5, hop(2)), true), Change::Done);
        assert_eq!(routes.add(&route(24, 5, hop(3)), false), Change::Done);
        assert_eq!(find(&routes), Found::Other, "two of the same priority");
        assert_eq!(routes.add(&route(24, 5, hop(4)), true), Change::Unclear);
        assert_eq!(routes.remove(&route(24, 5, hop(3))), Change::Unclear);
        let mut routes = Routes::default();
        assert_eq!(routes.add(&route(24, 5, hop(2)), false), Change::Done);
        assert_eq!(routes.remove(&route(24, 5, hop(1))), Change::Unclear);
        assert_eq!(routes.remove(&route(24, 6, hop(1))), Change::Same);
        assert!(matches!(find(&routes), Found::Hop(Hop { link: 2, .. })));
        routes.add(&Route { tos: 8, ..route(24, 9, hop(3)) }, false);
        assert_eq!(find(&routes), Found::Other);
        routes.add(&route(32, 0, Target::Kernel), false);
        assert_eq!(find(&routes), Found::Other);
        assert_eq!(routes.add(&route(32, 0, hop(1)), true), Change::Unclear);
        assert_eq!(routes.remove(&route(32, 0, Target::Kernel)), Change::Unclear);
        routes.add(&Route { table: Table::Local, ..route(30, 0, Target::Kernel) }, false);
        assert_eq!(find(&routes), Found::Local);
    }

    /// Generates few addresses, so that prefixes contain each other.
    fn address() -> impl Strategy<Value = IpAddr> {
        (any::<bool>(), 0u8..8, 0u8..4).prop_map(|(six, a, b)| match six {
            false => Ipv4Addr::new(a << 5, b << 6, 0, b).into(),
            true => Ipv6Addr::from((u128::from(a) << 125) | (u128::from(b) << 100) | u128::from(b)).into(),
        })
    }

    fn routes() -> impl Strategy<Value = (bool, Route)> {
        let length = prop::sample::select(vec![0u8, 1, 3, 4, 9, 10, 27, 32]);
        (any::<bool>(), any::<bool>(), address(), length, 0u32..3, 1u32..4).prop_map(
            |(add, local, prefix, length, priority, link)| {
                let table = if local && length > 20 { Table::Local } else { Table::Main };
                (add, Route { table, prefix, length, tos: 0, priority, target: hop(link) })
            },
        )
    }

    fn covers(route: &Route, address: IpAddr) -> bool {
        let (mine, its, bits) = match (route.prefix, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(u32::from(a)), u128::from(u32::from(b)), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.into(), b.into(), 128),
            _ => return false,
        };
        (mine ^ its).checked_shr(bits - u32::from(route.length)).unwrap_or(0) == 0
    }

    proptest! {
        /// The tables behave like a list of all routes.
        #[test]
        fn agrees_with_a_linear_list(steps in prop::collection::vec(routes(), 1..60), asked in address()) {
            let mut table = Routes::default();
            let mut list: Vec<Route> = Vec::new();
            for (add, route) in steps {
                let same_place = |other: &Route| {
                    other.table == route.table && other.length == route.length && other.priority == route.priority
                        && covers(other, route.prefix)
                };
                let (found, change) = (list.iter().position(same_place), match add {
                    true => table.add(&route, true),
                    false => table.remove(&route),
                });
                match (add, found) {
                    (true, Some(at)) => list[at].target = route.target,
                    (true, None) => list.push(route),
                    (false, Some(at)) if list[at].target == route.target => drop(list.remove(at)),
                    (false, Some(_)) => prop_assert_eq!(change, Change::Unclear),
                    (false, None) => prop_assert_eq!(change, Change::Same),
                }
            }
            let matching = |table| list.iter().filter(move |r| r.table == table && covers(r, asked));
            let expected = match matching(Table::Local).next() {
                Some(_) => Found::Local,
                None => {
                    let best = matching(Table::Main).max_by_key(|r| (r.length, std::cmp::Reverse(r.priority)));
                    match best.map(|route| route.target) {
                        Some(Target::Hop(hop)) => Found::Hop(hop),
                        _ => Found::Other,
                    }
                }
            };
            prop_assert_eq!(table.find(asked), expected);
        }
    }
}
