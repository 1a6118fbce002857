//! Where each node sends what is for an address: looked up once, as routes are static.

use std::net::IpAddr;

use crate::network::Network;

/// No route.
const NOWHERE: u32 = u32::MAX;

/// By node and number of the destination: the end of a link by which to send.
#[derive(Debug)]
pub(super) struct Routes {
    next: Vec<Vec<u32>>,
}

impl Routes {
    /// The routes of all nodes to numbered addresses.
    pub fn new(network: &Network, addresses: &[IpAddr]) -> Routes {
        let route = |node: usize| {
            let to = |address| network.next_hop(node, address).ok().flatten().map_or(NOWHERE, |end| end as u32);
            addresses.iter().map(|address| to(*address)).collect()
        };
        Routes { next: (0..network.nodes.len()).map(route).collect() }
    }

    /// The end by which a node sends to the address with number `to`.
    pub fn next(&self, node: usize, to: usize) -> Option<usize> {
        let end = self.next[node][to];
        (end != NOWHERE).then_some(end as usize)
    }
}
