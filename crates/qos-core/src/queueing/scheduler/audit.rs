//! What is counted against what is there.

use crate::counters::count::Count;
use crate::queueing::discipline::Discipline;
use crate::queueing::scheduler::Scheduler;

impl<P> Scheduler<P> {
    /// Checks what is counted against what is there.
    pub fn audit(&self) -> Result<(), String> {
        let mut depth = vec![Count::default(); self.nodes.len()];
        let (mut active, mut held) = (0, 0);
        for (leaf, node) in self.nodes.iter().enumerate() {
            let Some(queue) = node.queue() else { continue };
            active += node.conversations();
            held += if node.numbered { node.depth.packets } else { 0 };
            let found = queue.items().fold(Count::default(), |mut sum, item| {
                sum.add(item.bytes());
                sum
            });
            if found != queue.depth() {
                return Err(format!("{found:?} are in a queue, {:?} are counted", queue.depth()));
            }
            self.line(leaf).for_each(|node| depth[node] = depth[node].plus(found));
        }
        if let Some((node, found)) = self.nodes.iter().zip(depth).find(|(node, found)| node.depth != *found) {
            return Err(format!("{found:?} are in a class, {:?} are counted", node.depth));
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
