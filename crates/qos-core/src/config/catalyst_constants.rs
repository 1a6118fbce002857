//! Constants of the switch. "Inferred" marks those that no vendor document states; each can be replaced by a better
//! source.

/// Number of egress queues of a port.
pub const QUEUES: usize = 4;

/// Number of drop thresholds of a queue. The third is the maximum of the queue and cannot be set.
pub const THRESHOLDS: usize = 3;

/// Number of ingress queues of the switch.
pub const INPUT_QUEUES: usize = 2;

/// Bytes of a buffer ("cell"). Inferred: commonly quoted, not found in print.
pub const CELL_BYTES: u32 = 256;

/// Cells that are allocated to the queues of a port. Inferred: the vendor's example has 400 buffers, and drop counts of
/// published measurements fit.
pub const PORT_CELLS: u32 = 400;

/// Egress memory of one ASIC in cells: 2 MB. The vendor states 2 MB for 24 ports (of a later model).
pub const ASIC_CELLS: u32 = 8_192;

/// Ports that share the memory of one ASIC, connected or not. Ports 25 and above (uplinks) have another 2 MB.
pub const ASIC_PORTS: u32 = 24;

/// Cells reserved for the processor of the switch. Inferred: leaves about 3000 common cells with the default
/// reservations.
pub const CPU_CELLS: u32 = 392;

/// Maximum of a queue in per cent of its allocation, even if the configured maximum is greater (the command reference;
/// another document calls greater values usable).
pub const MAXIMUM_CAP_PERCENT: u32 = 400;

/// Cells of the only queue of a port while QoS is off. Inferred: fits published drop counts.
pub const FIFO_CELLS: u32 = 800;

/// Queue and threshold (from 0) under which frames are counted while QoS is off. Uncertain: based on common field
/// output.
pub const FIFO_CHARGED: (usize, usize) = (3, 2);

/// Displayed limit of a port's output queue (`Output queue: 0/40`).
pub const SHOWN_OUTPUT_QUEUE: u32 = 40;

/// Preamble with delimiter and inter-frame gap: bytes on the wire outside the frame.
pub const GAP: u32 = 20;

/// Bytes on the wire of the longest frame (1522 with a tag and the FCS).
pub const LONGEST_ON_WIRE: u32 = 1_522 + GAP;

/// Operational bandwidth if it is known to differ from the configured limit: per cent, and hundredths of a per cent.
/// The rounding rule of the hardware is unknown; add pairs here.
pub const OPERATIONAL_BANDWIDTH: [(u32, u32); 1] = [(70, 7_038)];

/// Maximum number of policers of one port.
pub const POLICERS_PER_PORT: usize = 63;

/// Rates of a policer, b/s (the ranges of different releases differ; this is the widest).
pub const POLICE_RATES: std::ops::RangeInclusive<u64> = 8_000..=10_000_000_000;

/// Bursts of a policer, bytes.
pub const POLICE_BURSTS: std::ops::RangeInclusive<u64> = 8_000..=1_000_000;

/// Returns the operational bandwidth of a port with a limit of `percent`, in hundredths of a per cent.
pub fn operational_bandwidth(percent: u32) -> u32 {
    OPERATIONAL_BANDWIDTH.iter().find(|(limit, _)| *limit == percent).map_or(percent * 100, |(_, bandwidth)| *bandwidth)
}
