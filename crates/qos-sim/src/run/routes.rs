//! Next hop of each node for each address: looked up once, because routes are static.

use std::net::IpAddr;

use crate::network::Network;

/// No route.
const NOWHERE: u32 = u32::MAX;
/// The node itself has the address.
const HERE: u32 = u32::MAX - 1;

/// Next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// End of the link by which the route leaves.
    By(usize),
    /// Next node.
    Here,
    /// No route.
    Nowhere,
}

/// End of the link to send by, for each node and number of the destination.
#[derive(Debug)]
pub(super) struct Routes {
    next: Vec<Vec<u32>>,
    /// Node by number of its address.
    owners: Vec<Option<usize>>,
}

impl Routes {
    /// Returns the routes of all nodes to numbered addresses.
    pub fn new(network: &Network, addresses: &[IpAddr]) -> Routes {
        let owner = |address: &IpAddr| {
            network.nodes.iter().position(|node| node.ends.iter().any(|end| network.ends[*end].has(*address)))
        };
        let owners: Vec<Option<usize>> = addresses.iter().map(owner).collect();
        let route = |node: usize| {
            let to = |(address, owner): (&IpAddr, &Option<usize>)| match owner {
                Some(owner) if *owner == node => HERE,
                _ => network.next_hop(node, *address).ok().flatten().map_or(NOWHERE, |end| end as u32),
            };
            addresses.iter().zip(&owners).map(to).collect()
        };
        Routes { next: (0..network.nodes.len()).map(route).collect(), owners }
    }

    /// Returns the next hop of a node for the address with number `to`.
    pub fn next(&self, node: usize, to: u32) -> Next {
        match self.next[node][to as usize] {
            NOWHERE => Next::Nowhere,
            HERE => Next::Here,
            end => Next::By(end as usize),
        }
    }

    /// Returns the node that has the address with that number.
    pub fn owner(&self, number: u32) -> Option<usize> {
        self.owners[number as usize]
    }
}
