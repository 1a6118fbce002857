//! Figures of the switch. "Inferred" marks those that no vendor's document states; each can be replaced by a better
//! source.

/// Egress queues of a port.
pub const QUEUES: usize = 4;

/// Drop thresholds of a queue. The third is the queue's maximum and cannot be set.
pub const THRESHOLDS: usize = 3;

/// Ingress queues of the switch.
pub const INPUT_QUEUES: usize = 2;

/// Bytes of a buffer ("cell"). Inferred: commonly quoted, not found in print.
pub const CELL_BYTES: u32 = 256;

/// Cells that the queues of a port are allocated from. Inferred: the vendor's own example has 400 buffers, and drop
/// counts of published measurements fit.
pub const PORT_CELLS: u32 = 400;

/// Egress memory of one ASIC in cells: 2 MB. The vendor states 2 MB for 24 ports (of a later model).
pub const ASIC_CELLS: u32 = 8_192;

/// Ports that share one ASIC's memory, wired or not. Ports 25 and following (uplinks) have another 2 MB.
pub const ASIC_PORTS: u32 = 24;

/// Cells set aside for the switch's own processor. Inferred: leaves about 3000 common cells with the default
/// reservations.
pub const CPU_CELLS: u32 = 392;

/// A queue never holds more than this many per cent of its allocation, even when the configured maximum is greater (the
/// command reference; another document calls greater values usable).
pub const MAXIMUM_CAP_PERCENT: u32 = 400;

/// Cells of a port's one queue while QoS is off. Inferred: fits published drop counts.
pub const FIFO_CELLS: u32 = 800;

/// Queue and threshold (from 0) that frames count for while QoS is off. Uncertain: what field output commonly shows.
pub const FIFO_CHARGED: (usize, usize) = (3, 2);

/// Limit of a port's output queue as it is shown (`Output queue: 0/40`).
pub const SHOWN_OUTPUT_QUEUE: u32 = 40;

/// Preamble with delimiter and the gap between frames: bytes on the wire that are no part of a frame.
pub const GAP: u32 = 20;

/// Bytes on the wire of the longest frame (1522 with a tag and frame check sequence).
pub const LONGEST_ON_WIRE: u32 = 1_522 + GAP;

/// Operational bandwidth where it is known to differ from the configured limit: per cent, and hundredths of a per cent.
/// The rule by which the hardware rounds is unknown; add pairs here.
pub const OPERATIONAL_BANDWIDTH: [(u32, u32); 1] = [(70, 7_038)];

/// Policers of one port.
pub const POLICERS_PER_PORT: usize = 63;

/// Rates of a policer, b/s (the ranges of different releases differ; this is the widest).
pub const POLICE_RATES: std::ops::RangeInclusive<u64> = 8_000..=10_000_000_000;

/// Bursts of a policer, bytes.
pub const POLICE_BURSTS: std::ops::RangeInclusive<u64> = 8_000..=1_000_000;

/// The operational bandwidth of a port with a limit of `percent`, in hundredths of a per cent.
pub fn operational_bandwidth(percent: u32) -> u32 {
    OPERATIONAL_BANDWIDTH.iter().find(|(limit, _)| *limit == percent).map_or(percent * 100, |(_, bandwidth)| *bandwidth)
}
