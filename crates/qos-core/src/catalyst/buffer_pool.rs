//! The shared egress memory of an ASIC, in cells.

use crate::config::catalyst_constants::{ASIC_CELLS, CPU_CELLS, QUEUES};
use crate::counters::catalyst::SwitchCounters;
use crate::plan::catalyst::QueueLimits;
use crate::time::Time;
use crate::winner_tree::WinnerTree;

/// The cells that a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueBuffers {
    /// Of those reserved for it.
    pub reserved: u32,
    /// Of the common ones.
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
    /// Reserved for the queues of all ports.
    reserved: u32,
    /// QueueBuffers by queues, and what of that is common.
    held: u32,
    held_common: u32,
    /// When each port of the engine will next give cells back.
    releases: WinnerTree,
}

impl BufferPool {
    fn new(ports: usize) -> BufferPool {
        BufferPool { reserved: 0, held: 0, held_common: 0, releases: WinnerTree::new(ports) }
    }

    /// Cells for queues.
    const CELLS: u32 = ASIC_CELLS - CPU_CELLS;

    /// Makes the memory of each ASIC, which stays for ever, and reserves of it so many cells for queues.
    pub fn reserve(pools: &mut Vec<BufferPool>, cells: &[u32], ports: usize) {
        for (asic, cells) in cells.iter().enumerate() {
            if asic == pools.len() {
                pools.push(BufferPool::new(ports));
            }
            pools[asic].reserved = *cells;
        }
    }

    /// Cells that are not reserved. None when the reservations exceed the memory: then a reserved cell may be missing
    /// too (inferred).
    fn common(&self) -> u32 {
        BufferPool::CELLS.saturating_sub(self.reserved)
    }

    fn common_free(&self) -> u32 {
        self.common().saturating_sub(self.held_common)
    }

    /// What a queue with these limits would take for a frame of `cells`, if it is there.
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

    /// Common cells are given back first.
    pub fn give_back(&mut self, held: &mut QueueBuffers, cells: u32) {
        let common = cells.min(held.common);
        held.common -= common;
        held.reserved -= cells - common;
        self.held -= cells;
        self.held_common -= common;
    }

    /// A queue's reservation has changed.
    pub fn reserve_anew(&mut self, held: &mut QueueBuffers, limits: &QueueLimits) {
        let total = held.total();
        let reserved = total.min(limits.reserved);
        self.held_common -= held.common;
        *held = QueueBuffers { reserved, common: total - reserved };
        self.held_common += held.common;
    }

    /// When a port will next give cells back.
    pub fn set_release(&mut self, port: usize, release: Option<Time>) {
        self.releases.set(port, release.map_or(WinnerTree::NONE, |time| time.0));
    }

    /// A port that gives cells back by `now`.
    pub fn release_due(&self, now: Time) -> Option<usize> {
        self.releases.least().filter(|_| self.releases.least_key() <= now.0)
    }

    /// All ASICs together.
    pub fn counters(pools: &[BufferPool]) -> SwitchCounters {
        let sum = |cells: fn(&BufferPool) -> u32| pools.iter().map(cells).sum();
        SwitchCounters {
            cells_total: sum(|_| ASIC_CELLS),
            cells_reserved: sum(|pool| pool.reserved),
            cells_common: sum(BufferPool::common),
            cells_common_free: sum(BufferPool::common_free),
        }
    }

    /// Checks that the ports' queues hold what the memory counts.
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
