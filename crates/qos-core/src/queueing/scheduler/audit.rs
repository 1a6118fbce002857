//! Comparison of counters with queue contents.

use crate::counters::aqm::ManagedCounters;
use crate::counters::count::Count;
use crate::queueing::discipline::Discipline;
use crate::queueing::scheduler::node::{LeafId, NodeId};
use crate::queueing::scheduler::Scheduler;

impl<P> Scheduler<P> {
    /// Checks the counters against the queue contents.
    pub fn audit(&self) -> Result<(), String> {
        let mut depth = vec![Count::default(); self.inners.len()];
        let (mut active, mut held) = (0, 0);
        for (number, leaf) in self.leaves.iter().enumerate() {
            active += leaf.conversations();
            held += if leaf.numbered { leaf.member.depth.packets } else { 0 };
            let found = leaf.queue.items().fold(Count::default(), |mut sum, item| {
                sum.add(item.bytes());
                sum
            });
            if found != leaf.member.depth {
                return Err(format!("{found:?} are in a queue, {:?} are counted of it", leaf.member.depth));
            }
            if let Some(managed) = leaf.queue.managed() {
                audit_managed(&managed.counters(), found, leaf.drops)?;
            }
            for node in self.line(NodeId::Leaf(LeafId(number))) {
                if let NodeId::Inner(inner) = node {
                    depth[inner.0] = depth[inner.0].plus(found);
                }
            }
        }
        if let Some((inner, found)) = self.inners.iter().zip(depth).find(|(inner, found)| inner.member.depth != *found)
        {
            return Err(format!("{found:?} are in a class, {:?} are counted", inner.member.depth));
        }
        let inners = self.inners.iter().map(|inner| &inner.member);
        for member in self.leaves.iter().map(|leaf| &leaf.member).chain(inners) {
            if let Some(shaper) = member.shaper.as_ref().filter(|shaper| shaper.exceeds() && member.depth.packets == 0)
            {
                return Err(format!("nothing waits for {shaper:?}, which is beyond its limit"));
            }
        }
        if (active, held) != (self.active, self.held) {
            return Err(format!(
                "{active} conversations have {held} packets, counted are {} and {}",
                self.active, self.held
            ));
        }
        Ok(())
    }
}

/// Checks the separate counters of a queue with active queue management: all drops, and all waiting packets, by tin if
/// it has tins.
fn audit_managed(counters: &ManagedCounters, depth: Count, drops: Count) -> Result<(), String> {
    let ManagedCounters { overlimit, early, tins, .. } = counters;
    if overlimit.plus(*early) != drops {
        return Err(format!("{drops:?} are dropped of a queue, which counts {overlimit:?} and {early:?}"));
    }
    let of_tins = tins.iter().map(|tin| Count { packets: tin.depth_packets, bytes: tin.depth_bytes });
    let waiting = of_tins.fold(Count::default(), Count::plus);
    if !tins.is_empty() && waiting != depth {
        return Err(format!("{depth:?} are in a queue, its tins count {waiting:?}"));
    }
    Ok(())
}
