//! Properties of the generations of IOS. The compiler asks for a property or a capability, never for a name.

use crate::config::defaults;
use crate::config::router::Generation;
use crate::plan::tree::Sharing;

/// A description of a generation: its limits, defaults and capabilities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    pub class_queues: ClassQueues,
    /// Scheduling of the classes of a policy-map without priority.
    pub sharing: Sharing,
    /// Percentage of the bandwidth that the classes of a policy-map may reserve; none: `max-reserved-bandwidth` of the
    /// interface. Unconfirmed under a parent's shaper: all of it.
    pub reservable_percent: Option<u32>,
    /// Whether percentages of `bandwidth` and `priority` are added up before the policy-map is attached.
    pub adds_percentages: bool,
    /// Whether the bandwidth of class-default counts as reserved.
    pub default_class_reserves: bool,
    pub shape_interval: ShapeInterval,
    /// Whether a packet released by a shaper waits in a queue of the interface, not behind the shaper.
    pub shaper_releases_to_interface: bool,
    /// Whether `shape` has a separate weighted fair queue, with a limit in buffers.
    pub shape_has_buffers: bool,
    /// Whether a class with a queueing child may be without `shape`.
    pub queueing_child_without_shape: bool,
    /// Whether `priority` has levels.
    pub priority_levels: bool,
    /// Whether classes other than class-default may have `fair-queue`.
    pub fair_queue_in_any_class: bool,
    /// Whether a class may have both `fair-queue` and `bandwidth`.
    pub fair_queue_with_bandwidth: bool,
    /// Whether `bandwidth remaining ratio` exists.
    pub remaining_ratio: bool,
    /// Whether thresholds of early detection may be in bytes or milliseconds.
    pub random_detect_in_bytes: bool,
    /// Minimum thresholds of early detection by precedence.
    pub random_detect_min: [u32; 8],
    /// Minimum thresholds of early detection of assured forwarding by drop precedence, and of EF.
    pub random_detect_min_by_dscp: ([u32; 3], u32),
    /// Whether the drop rate of a class counts packets dropped by its policer.
    pub drop_rate_counts_police: bool,
    /// Queue limit of a class without a configured one.
    pub queue_limit: QueueLimitRule,
    /// Queue limit of a priority level.
    pub priority_queue_limit: u32,
    /// Multiple of this many kb/s to which the rate of a priority class is rounded down for its default burst.
    pub priority_burst_step_kbps: u64,
    /// Whether default thresholds of early detection follow from the queue limit, also in packets.
    pub random_detect_by_limit: bool,
    /// Flow queues of `fair-queue` in a class.
    pub class_flow_queues: u32,
    /// Whether the queue limit of a class applies to all its flows together.
    pub flows_share_limit: bool,
    /// Whether a flow has its limit in addition to early detection.
    pub flow_limit_with_random_detect: bool,
    /// Whether a class with a queueing child may have `bandwidth` in kb/s or per cent.
    pub bandwidth_above_queues: bool,
    /// Whether `queue-limit` may be in bytes or milliseconds, or by a field.
    pub queue_limit_units: bool,
    /// Whether a class may have `queue-limit` without `bandwidth`, `shape` and `priority`.
    pub queue_limit_alone: bool,
    /// Greatest `bandwidth remaining ratio`.
    pub greatest_ratio: u64,
    /// Greatest number of bytes that `account user-defined` adds or takes away.
    pub greatest_account_offset: i32,
    /// Whether a shaper spaces packets, regardless of its bursts.
    pub shaper_spaces_packets: bool,
    /// Transmit ring of every port, if it is not configurable in this generation.
    pub tx_ring: Option<u32>,
}

/// Default queue limit of a class.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueueLimitRule {
    Packets(u32),
    /// Number of packets of this length that the class's reference rate sends in this many milliseconds.
    Time {
        ms: u64,
        packet_bytes: u64,
        least: u32,
    },
}

impl QueueLimitRule {
    /// Returns the limit in packets of a class with this reference rate; the minimum if it is not known.
    pub fn packets(self, rate_bps: Option<u64>) -> u32 {
        match self {
            QueueLimitRule::Packets(packets) => packets,
            QueueLimitRule::Time { ms, packet_bytes, least } => {
                let bits = u128::from(rate_bps.unwrap_or(0)) * u128::from(ms) / 1_000;
                u32::try_from(bits / 8 / u128::from(packet_bytes)).unwrap_or(u32::MAX).max(least)
            }
        }
    }

    /// Returns the limit in bytes, for a queue with a depth in bytes.
    pub fn bytes(self, rate_bps: Option<u64>) -> u64 {
        match self {
            QueueLimitRule::Packets(_) => defaults::QUEUE_LIMIT_BYTES,
            QueueLimitRule::Time { packet_bytes, .. } => u64::from(self.packets(rate_bps)) * packet_bytes,
        }
    }
}

/// Queues of the classes that have no priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassQueues {
    /// Numbered conversations of the weighted fair queue of the interface; traffic without a class has one per flow.
    Conversations,
    /// A queue for each class.
    Separate,
}

/// Default interval Tc of a shaper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShapeInterval {
    pub ms: u64,
    /// Committed burst below which the interval is longer, in bits.
    pub least_burst_bits: u64,
}

impl ShapeInterval {
    /// The interval of classic and of generic traffic shaping: 8000 bits take longer than 25 ms below 320 kb/s.
    pub const CLASSIC: ShapeInterval = ShapeInterval {
        ms: defaults::CLASSIC_SHAPE_INTERVAL_MS,
        least_burst_bits: defaults::CLASSIC_LOW_RATE_BURST_BITS,
    };

    /// Returns the default committed burst at a rate, in bits.
    pub fn burst_bits(self, cir_bps: u64) -> u64 {
        let ms = (self.least_burst_bits * 1_000 / cir_bps).max(self.ms);
        (u128::from(cir_bps) * u128::from(ms) / 1_000) as u64
    }
}

const CLASSIC: Properties = Properties {
    class_queues: ClassQueues::Conversations,
    sharing: Sharing::Sequence,
    reservable_percent: None,
    adds_percentages: false,
    default_class_reserves: false,
    shape_interval: ShapeInterval::CLASSIC,
    shaper_releases_to_interface: defaults::CLASSIC_SHAPER_RELEASES_TO_INTERFACE,
    shape_has_buffers: true,
    queueing_child_without_shape: false,
    priority_levels: false,
    fair_queue_in_any_class: false,
    fair_queue_with_bandwidth: false,
    remaining_ratio: false,
    random_detect_in_bytes: false,
    random_detect_min: defaults::CLASSIC_RANDOM_DETECT_MIN,
    random_detect_min_by_dscp: defaults::CLASSIC_RANDOM_DETECT_MIN_BY_DSCP,
    drop_rate_counts_police: defaults::CLASSIC_DROP_RATE_COUNTS_POLICE,
    queue_limit: QueueLimitRule::Packets(defaults::QUEUE_LIMIT),
    priority_queue_limit: defaults::PRIORITY_QUEUE_LIMIT,
    priority_burst_step_kbps: 1,
    random_detect_by_limit: false,
    class_flow_queues: defaults::CLASS_FLOW_QUEUES,
    flows_share_limit: false,
    flow_limit_with_random_detect: false,
    bandwidth_above_queues: true,
    queue_limit_units: false,
    queue_limit_alone: true,
    greatest_ratio: 1_000,
    greatest_account_offset: 63,
    shaper_spaces_packets: false,
    tx_ring: None,
};

const HQF: Properties = Properties {
    class_queues: ClassQueues::Separate,
    sharing: Sharing::Weighted,
    reservable_percent: Some(defaults::HQF_RESERVABLE_PERCENT),
    adds_percentages: true,
    default_class_reserves: true,
    shape_interval: ShapeInterval { ms: defaults::HQF_SHAPE_INTERVAL_MS, least_burst_bits: 0 },
    shaper_releases_to_interface: false,
    shape_has_buffers: false,
    queueing_child_without_shape: true,
    priority_levels: true,
    fair_queue_in_any_class: true,
    fair_queue_with_bandwidth: true,
    remaining_ratio: true,
    random_detect_in_bytes: true,
    random_detect_min: defaults::HQF_RANDOM_DETECT_MIN,
    random_detect_min_by_dscp: defaults::HQF_RANDOM_DETECT_MIN_BY_DSCP,
    drop_rate_counts_police: true,
    queue_limit: QueueLimitRule::Packets(defaults::QUEUE_LIMIT),
    priority_queue_limit: defaults::PRIORITY_QUEUE_LIMIT,
    priority_burst_step_kbps: 1,
    random_detect_by_limit: false,
    class_flow_queues: defaults::CLASS_FLOW_QUEUES,
    flows_share_limit: false,
    flow_limit_with_random_detect: false,
    bandwidth_above_queues: true,
    queue_limit_units: true,
    queue_limit_alone: true,
    greatest_ratio: 1_000,
    greatest_account_offset: 63,
    shaper_spaces_packets: false,
    tx_ring: None,
};

/// IOS-XE: the queues of HQF with another scheduler and other defaults.
const IOS_XE: Properties = Properties {
    sharing: Sharing::Excess,
    reservable_percent: Some(defaults::XE_RESERVABLE_PERCENT),
    queue_limit: QueueLimitRule::Time {
        ms: defaults::XE_QUEUE_LIMIT_MS,
        packet_bytes: defaults::XE_QUEUE_LIMIT_PACKET,
        least: defaults::XE_QUEUE_LIMIT_LEAST,
    },
    priority_queue_limit: defaults::XE_PRIORITY_QUEUE_LIMIT,
    priority_burst_step_kbps: defaults::XE_PRIORITY_BURST_STEP_KBPS,
    random_detect_by_limit: true,
    class_flow_queues: defaults::XE_CLASS_FLOW_QUEUES,
    flows_share_limit: defaults::XE_FLOWS_SHARE_LIMIT,
    flow_limit_with_random_detect: true,
    bandwidth_above_queues: false,
    queue_limit_alone: false,
    greatest_ratio: 65_536,
    greatest_account_offset: 1_000_000,
    shaper_spaces_packets: true,
    tx_ring: Some(defaults::XE_TX_RING),
    ..HQF
};

/// All generations.
#[cfg(feature = "serde")]
pub(crate) const GENERATIONS: [Generation; 3] = [Generation::Classic, Generation::Hqf, Generation::IosXe];

/// Returns the properties of a generation.
pub(crate) fn properties(generation: Generation) -> &'static Properties {
    match generation {
        Generation::Classic => &CLASSIC,
        Generation::Hqf => &HQF,
        Generation::IosXe => &IOS_XE,
    }
}
