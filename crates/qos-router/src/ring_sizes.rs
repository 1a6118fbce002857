//! Sizes of the receive rings on links.

use crate::ring::memory_bytes;

/// Shortest frame on an Ethernet link with all its overhead, bytes.
const SHORTEST_ON_WIRE: u64 = 84;
/// Minimum and maximum number of frames in a ring. The minimum is 63 ms of full frames at 100 Mb/s.
const SLOTS: std::ops::RangeInclusive<u64> = 512..=16_384;
/// Memory for the rings of all links of a process, bytes. Each ring is mapped and zeroed when its link is opened, so
/// that a lab of a hundred links takes its time and memory even when nothing is sent.
const TOTAL_BYTES: u64 = 112 << 20;

/// Sizes of the receive rings of a process.
///
/// All rings have room for the same time of shortest frames at the link's rate. If that exceeds the total memory, all
/// are reduced by the same factor.
#[derive(Debug, Clone, Copy)]
pub struct RingSizes {
    ring_ns: u64,
    wanted_bytes: u64,
}

impl RingSizes {
    /// Returns the sizes for rings with room for `ring_ns` of shortest frames, on links of these rates (bits per second
    /// on the wire).
    pub fn new(ring_ns: u64, rates_bps: impl Iterator<Item = u64>) -> Self {
        let bytes = |rate_bps| memory_bytes(wanted(ring_ns, rate_bps) as usize) as u64;
        Self { ring_ns, wanted_bytes: rates_bps.map(bytes).sum() }
    }

    /// Returns the minimum capacity of the ring of a link with this rate, in frames.
    pub fn slots(&self, rate_bps: u64) -> usize {
        let wanted = wanted(self.ring_ns, rate_bps);
        let slots = if self.wanted_bytes > TOTAL_BYTES { wanted * TOTAL_BYTES / self.wanted_bytes } else { wanted };
        slots.max(*SLOTS.start()) as usize
    }
}

/// Returns the number of frames of a ring without the limit of memory.
fn wanted(ring_ns: u64, rate_bps: u64) -> u64 {
    let frames = u128::from(rate_bps) * u128::from(ring_ns) / (8 * u128::from(SHORTEST_ON_WIRE) * 1_000_000_000);
    u64::try_from(frames).unwrap_or(u64::MAX).clamp(*SLOTS.start(), *SLOTS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT_NS: u64 = 60_000_000;

    #[test]
    fn ring_sizes_share_the_memory_of_many_links() {
        let of = |rate_bps: u64, links: usize| {
            let sizes = RingSizes::new(DEFAULT_NS, std::iter::repeat_n(rate_bps, links));
            (sizes.slots(rate_bps), (memory_bytes(sizes.slots(rate_bps)) * links) >> 20)
        };
        // 149 shortest frames per millisecond at 100 Mb/s.
        assert_eq!(of(100_000_000, 2), (8_928, 28));
        assert_eq!(of(10_000_000, 2), (892, 2));
        assert_eq!(of(10_000_000_000, 2), (16_384, 51));
        let (slots, mebibytes) = of(100_000_000, 100);
        assert!((700..720).contains(&slots) && mebibytes <= 120, "{slots} frames, {mebibytes} MiB");
        // The minimum is always kept.
        assert_eq!(of(100_000_000, 1_000).0, 512);
    }

    #[test]
    fn a_fast_link_keeps_its_share_among_slow_ones() {
        let rates_bps = std::iter::repeat_n(10_000_000, 100).chain([1_000_000_000]);
        let sizes = RingSizes::new(DEFAULT_NS, rates_bps);
        // Two thirds of 892 and of 16 384.
        assert_eq!((sizes.slots(10_000_000), sizes.slots(1_000_000_000)), (589, 10_833));
    }
}
