//! The shared egress memory of an ASIC, in cells.

use crate::config::catalyst_constants::{ASIC_CELLS, CPU_CELLS, QUEUES};
use crate::counters::catalyst::SwitchCounters;
use crate::plan::catalyst::QueueLimits;
use crate::time::Time;
use crate::winner_tree::WinnerTree;

/// Cells held by a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueBuffers {
    /// Cells of the queue's reserved buffers.
    pub reserved: u32,
    /// Cells of the common pool.
    pub common: u32,
}

impl QueueBuffers {
    pub fn total(self) -> u32 {
        self.reserved + self.common
    }
}

/// The memory of one ASIC.
#[derive(Debug)]
pub(crate) struct BufferPool {
    /// Cells reserved for the queues of all ports.
    reserved: u32,
    /// Cells held by queues, and the common cells among them.
    held: u32,
    held_common: u32,
    /// Time at which each port of the engine next returns cells.
    releases: WinnerTree,
}

impl BufferPool {
    fn new(ports: usize) -> BufferPool {
        BufferPool { reserved: 0, held: 0, held_common: 0, releases: WinnerTree::new(ports) }
    }

    /// Cells for queues.
    const CELLS: u32 = ASIC_CELLS - CPU_CELLS;

    /// Creates the memory of each ASIC, which stays, and reserves this many cells of it for queues.
    pub fn reserve(pools: &mut Vec<BufferPool>, cells: &[u32], ports: usize) {
        for (asic, cells) in cells.iter().enumerate() {
            if asic == pools.len() {
                pools.push(BufferPool::new(ports));
            }
            pools[asic].reserved = *cells;
        }
    }

    /// Returns the number of cells that are not reserved. Returns 0 if the reservations exceed the memory: then even a
    /// reserved cell may be missing (inferred).
    fn common(&self) -> u32 {
        BufferPool::CELLS.saturating_sub(self.reserved)
    }

    fn common_free(&self) -> u32 {
        self.common().saturating_sub(self.held_common)
    }

    /// Returns the cells that a queue with these limits would take for a frame of `cells`, if they are free.
    pub fn offer(&self, held: QueueBuffers, limits: &QueueLimits, cells: u32) -> Option<QueueBuffers> {
        let reserved = cells.min(limits.reserved.saturating_sub(held.reserved));
        let common = cells - reserved;
        let there = common <= self.common_free() && cells <= BufferPool::CELLS.saturating_sub(self.held);
        there.then_some(QueueBuffers { reserved, common })
    }

    pub fn take(&mut self, held: &mut QueueBuffers, part: QueueBuffers) {
        held.reserved += part.reserved;
        held.common += part.common;
        self.held += part.total();
        self.held_common += part.common;
    }

    /// Returns cells to the memory, common cells first.
    pub fn give_back(&mut self, held: &mut QueueBuffers, cells: u32) {
        let common = cells.min(held.common);
        held.common -= common;
        held.reserved -= cells - common;
        self.held -= cells;
        self.held_common -= common;
    }

    /// Changes the reservation of a queue.
    pub fn reset_reservations(&mut self, held: &mut QueueBuffers, limits: &QueueLimits) {
        let total = held.total();
        let reserved = total.min(limits.reserved);
        self.held_common -= held.common;
        *held = QueueBuffers { reserved, common: total - reserved };
        self.held_common += held.common;
    }

    /// Sets the time at which a port next returns cells.
    pub fn set_release(&mut self, port: usize, release: Option<Time>) {
        self.releases.set(port, release.map_or(WinnerTree::NONE, |time| time.0));
    }

    /// Returns a port that returns cells by `now`.
    pub fn release_due(&self, now: Time) -> Option<usize> {
        self.releases.least().filter(|_| self.releases.least_key() <= now.0)
    }

    /// Returns the counters of all ASICs together.
    pub fn counters(pools: &[BufferPool]) -> SwitchCounters {
        let sum = |cells: fn(&BufferPool) -> u32| pools.iter().map(cells).sum();
        SwitchCounters {
            cells_total: sum(|_| ASIC_CELLS),
            cells_reserved: sum(|pool| pool.reserved),
            cells_common: sum(BufferPool::common),
            cells_common_free: sum(BufferPool::common_free),
        }
    }

    /// Checks that the contents of the ports' queues equal the counters of the memory.
    pub fn audit(&self, queues: impl Iterator<Item = [QueueBuffers; QUEUES]>) -> Result<(), String> {
        let mut found = QueueBuffers::default();
        for held in queues.flatten() {
            found.reserved += held.reserved;
            found.common += held.common;
        }
        if (found.total(), found.common) != (self.held, self.held_common) {
            return Err(format!("queues hold {found:?}, the memory counts {} and {}", self.held, self.held_common));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(reserved: u32) -> BufferPool {
        let mut pools = Vec::new();
        BufferPool::reserve(&mut pools, &[reserved], 1);
        pools.remove(0)
    }

    fn limits(reserved: u32) -> QueueLimits {
        QueueLimits { reserved, thresholds: [10_000; 3] }
    }

    /// Takes cells for a queue, if enough are free.
    fn take(pool: &mut BufferPool, held: &mut QueueBuffers, reserved: u32, cells: u32) -> Option<(u32, u32)> {
        let part = pool.offer(*held, &limits(reserved), cells)?;
        pool.take(held, part);
        Some((part.reserved, part.common))
    }

    #[test]
    fn a_queue_takes_its_reserved_cells_and_then_common_ones() {
        let mut pool = pool(BufferPool::CELLS - 100);
        let (mut one, mut other) = (QueueBuffers::default(), QueueBuffers::default());
        assert_eq!(take(&mut pool, &mut one, 50, 60), Some((50, 10)));
        assert_eq!(take(&mut pool, &mut one, 50, 91), None, "90 common cells are left");
        assert_eq!(take(&mut pool, &mut one, 50, 90), Some((0, 90)));
        // Most of the memory is free, and reserved for others.
        assert_eq!(take(&mut pool, &mut one, 50, 1), None);
        assert_eq!(take(&mut pool, &mut other, 50, 50), Some((50, 0)));
        assert_eq!(take(&mut pool, &mut other, 50, 1), None);
        pool.give_back(&mut one, 100);
        assert_eq!((one, pool.common_free()), (QueueBuffers { reserved: 50, common: 0 }, 100));
        pool.give_back(&mut one, 20);
        assert_eq!(one, QueueBuffers { reserved: 30, common: 0 });
        assert_eq!(take(&mut pool, &mut one, 50, 21), Some((20, 1)));
    }

    #[test]
    fn exhausted_memory_lacks_reserved_cells() {
        let mut pool = pool(2 * BufferPool::CELLS);
        let (mut one, mut other) = (QueueBuffers::default(), QueueBuffers::default());
        assert_eq!(
            take(&mut pool, &mut one, BufferPool::CELLS, BufferPool::CELLS - 10),
            Some((BufferPool::CELLS - 10, 0))
        );
        assert_eq!(take(&mut pool, &mut other, BufferPool::CELLS, 11), None);
        assert_eq!(take(&mut pool, &mut other, BufferPool::CELLS, 10), Some((10, 0)));
    }

    #[test]
    fn changed_reservation_changes_the_common_cells_of_a_queue() {
        let mut pool = pool(1_000);
        let mut held = QueueBuffers::default();
        take(&mut pool, &mut held, 50, 80);
        let free = pool.common_free();
        pool.reset_reservations(&mut held, &limits(70));
        assert_eq!((held, pool.common_free()), (QueueBuffers { reserved: 70, common: 10 }, free + 20));
        pool.reset_reservations(&mut held, &limits(20));
        assert_eq!((held, pool.common_free()), (QueueBuffers { reserved: 20, common: 60 }, free - 30));
        pool.reset_reservations(&mut held, &limits(500));
        assert_eq!((held, pool.common_free()), (QueueBuffers { reserved: 80, common: 0 }, free + 30));
    }

    #[test]
    fn audit_compares_cells_with_queue_contents() {
        let mut pool = pool(1_000);
        let mut held = QueueBuffers::default();
        take(&mut pool, &mut held, 50, 80);
        let of = |reserved, common| {
            let mut queues = [QueueBuffers::default(); QUEUES];
            queues[2] = QueueBuffers { reserved, common };
            pool.audit([[QueueBuffers::default(); QUEUES], queues].into_iter()).is_ok()
        };
        assert_eq!([of(50, 30), of(50, 29), of(49, 30), of(49, 31)], [true, false, false, false]);
    }
}
