//! Properties of the generations of IOS. The compiler asks for a property or a capability, never for a name.

use crate::config::defaults;
use crate::config::router::Generation;
use crate::plan::tree::Sharing;

/// A description of a generation: its limits, defaults and capabilities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    pub class_queues: ClassQueues,
    /// Choice between the classes of a policy-map that have no priority.
    pub sharing: Sharing,
    pub reservable: Reservable,
    /// Whether percentages of `bandwidth` and `priority` are added up before the policy-map is attached.
    pub adds_percentages: bool,
    /// Whether the bandwidth of class-default counts as reserved.
    pub default_class_reserves: bool,
    pub shape_interval: ShapeInterval,
    /// Whether a packet released by a shaper waits in a queue of the interface, not behind the shaper.
    pub shaper_releases_to_interface: bool,
    /// Whether `shape` has a weighted fair queue of its own, with a limit in buffers.
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
    /// Least thresholds of early detection by precedence.
    pub random_detect_min: [u32; 8],
    /// Least thresholds of early detection of assured forwarding by drop precedence, and of EF.
    pub random_detect_min_by_dscp: ([u32; 3], u32),
    /// Whether the drop rate of a class counts packets dropped by its policer.
    pub drop_rate_counts_police: bool,
}

/// Queues of the classes that have no priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassQueues {
    /// Numbered conversations of the weighted fair queue of the interface; traffic without a class has one by flow.
    Conversations,
    /// A queue for each class.
    Separate,
}

/// Share of the bandwidth that the classes of a policy-map may reserve.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reservable {
    Percent(u32),
    /// `max-reserved-bandwidth` of the interface. Unconfirmed under a parent's shaper: all of it.
    OfInterface,
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

    /// The default committed burst at a rate, in bits.
    pub fn burst_bits(self, cir_bps: u64) -> u64 {
        let ms = (self.least_burst_bits * 1_000 / cir_bps).max(self.ms);
        (u128::from(cir_bps) * u128::from(ms) / 1_000) as u64
    }
}

const CLASSIC: Properties = Properties {
    class_queues: ClassQueues::Conversations,
    sharing: Sharing::Sequence,
    reservable: Reservable::OfInterface,
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
};

const HQF: Properties = Properties {
    class_queues: ClassQueues::Separate,
    sharing: Sharing::Weighted,
    reservable: Reservable::Percent(defaults::HQF_RESERVABLE_PERCENT),
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
};

/// The properties of a generation.
pub(crate) fn properties(generation: Generation) -> &'static Properties {
    match generation {
        Generation::Classic => &CLASSIC,
        Generation::Hqf => &HQF,
    }
}
