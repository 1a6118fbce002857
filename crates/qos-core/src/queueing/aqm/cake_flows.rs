//! CAKE's hash of flows: eight ways.
//!
//! A flow has the queue of its hash, or, if another flow uses it, a different queue of the same set of eight; flows
//! collide only if more than eight of a set are active. Hosts are identified the same way (Linux's `sch_cake`,
//! "set-associative hashing").

use std::net::IpAddr;

use crate::frame::descriptor::{mix, Descriptor};
use crate::plan::aqm::IsolationPlan;

/// Flow queues of a tin, and hosts.
pub(crate) const QUEUES: usize = 1_024;

/// Queues of a set.
const WAYS: usize = 8;

/// Counters of the ways in which the queues of packets were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    /// Packets of flows with another queue of the set.
    pub indirect: u64,
    /// Packets that got a free queue.
    pub misses: u64,
    /// Packets that share a queue because all queues of the set were in use.
    pub collisions: u64,
}

/// Hashes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hashes {
    pub flow: u64,
    pub source: u64,
    pub destination: u64,
}

fn of_address(address: IpAddr, seed: u64) -> u64 {
    match address {
        IpAddr::V4(address) => mix(u64::from(u32::from(address)) ^ seed),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            mix(mix((bits >> 64) as u64 ^ seed) ^ bits as u64)
        }
    }
}

impl Hashes {
    pub fn of(descriptor: &Descriptor, isolation: &IsolationPlan, seed: u64) -> Hashes {
        let source = of_address(descriptor.source, seed);
        let destination = of_address(descriptor.destination, seed.rotate_left(32));
        let mut flow = 0;
        if isolation.flows {
            flow = mix(descriptor.flow ^ seed);
        } else {
            flow ^= if isolation.source { source } else { 0 };
            flow ^= if isolation.destination { destination } else { 0 };
        }
        Hashes { flow, source, destination }
    }
}

/// Returns the place of a tag in a table of sets (its present queue, a free one, or the one of its hash), and the way
/// in which it was found.
pub(crate) fn place(tag: u64, tags: &[u64], taken: impl Fn(usize) -> bool) -> (usize, Found) {
    let hash = (tag % tags.len() as u64) as usize;
    let (set, way) = (hash - hash % WAYS, hash % WAYS);
    let ways = || (0..WAYS).map(|step| set + (way + step) % WAYS);
    if let Some(place) = ways().find(|place| tags[*place] == tag && taken(*place)) {
        return (place, if place == hash { Found::Direct } else { Found::Indirect });
    }
    match ways().find(|place| !taken(*place)) {
        Some(place) => (place, Found::Free),
        None => (hash, Found::Collides),
    }
}

/// Way in which a place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Direct,
    Indirect,
    Free,
    Collides,
}

impl Ways {
    pub fn count(&mut self, found: Found) {
        match found {
            Found::Direct => {}
            Found::Indirect => self.indirect += 1,
            Found::Free => self.misses += 1,
            Found::Collides => self.collisions += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight flows with the same hash have a queue each, the ninth shares that of the hash.
    #[test]
    fn eight_flows_of_a_set_do_not_collide() {
        let (mut tags, mut taken) = (vec![0; QUEUES], [false; QUEUES]);
        let mut found = Vec::new();
        for number in 0..9u64 {
            let tag = 13 + number * QUEUES as u64;
            let (at, how) = place(tag, &tags, |place| taken[place]);
            (tags[at], taken[at]) = (tag, true);
            found.push((at, how));
        }
        let places: Vec<_> = found.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [13, 14, 15, 8, 9, 10, 11, 12, 13]);
        assert_eq!(found[8].1, Found::Collides);
        let tag = 13 + 3 * QUEUES as u64;
        assert_eq!(place(tag, &tags, |place| taken[place]), (8, Found::Indirect), "it keeps its queue");
    }
}
