//! Tree of classes and queues on an interface, like in Linux `tc`: the configuration.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Class or queue of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct TreeNode {
    /// Name: the handle or class of `tc` (`1:10`), unique in the tree.
    pub name: String,
    /// Name of the parent class, which comes before it; null for the outermost ones.
    pub parent: Option<String>,
    /// Maximum rate, and its bursts; null for no separate limit.
    pub shape: Option<TreeShape>,
    /// Guaranteed rate before the excess is shared, b/s (HTB `rate`); 0 for none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub minimum_bps: u64,
    /// Share of the excess, relative to its siblings (HTB `quantum`).
    #[cfg_attr(feature = "serde", serde(default = "default_weight"))]
    pub weight: u64,
    /// Queue; null for a class with child classes.
    pub queue: Option<QueueDiscipline>,
}

/// Token bucket that shapes (`tbf`, HTB `ceil`, the shaper of `cake`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct TreeShape {
    /// Bits per second.
    pub rate_bps: u64,
    /// Size of the bucket, counted bytes; 0: packets are spaced.
    pub burst_bytes: u64,
    /// True if a packet of any length leaves while the bucket is not negative, and the next one waits (HTB, CAKE).
    /// Otherwise it leaves when the bucket holds its length, or is full (TBF).
    #[cfg_attr(feature = "serde", serde(default))]
    pub deficit: bool,
    /// Packet length for the rate; null for its counted bytes.
    pub account: Option<LengthAccount>,
}

/// Packet length for a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct LengthAccount {
    /// Added to the counted bytes.
    pub offset_bytes: i32,
    /// Minimum packet length (`mpu`).
    #[cfg_attr(feature = "serde", serde(default))]
    pub least_bytes: u32,
    /// Cells or units that contain the packet.
    #[cfg_attr(feature = "serde", serde(default))]
    pub carrier: Carrier,
}

/// Cells or units that contain packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum Carrier {
    /// None.
    #[default]
    Frames,
    /// Whole ATM cells.
    Atm,
    /// 65 bytes per 64 (PTM).
    Ptm,
}

/// Discipline of a queue. Times in microseconds, bytes as counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields))]
pub enum QueueDiscipline {
    /// First in, first out, with a limit in packets.
    Pfifo {
        /// Packets.
        limit: u32,
    },
    /// First in, first out, with a limit in bytes.
    Bfifo {
        /// Bytes: a packet is accepted while fewer wait.
        limit: u64,
    },
    /// Random early detection (S. Floyd, V. Jacobson, 1993).
    Red {
        /// Bytes: a packet is accepted while fewer wait.
        limit: u64,
        /// Mean depth above which packets are dropped at random, bytes.
        min: u32,
        /// Mean depth above which every packet is dropped, bytes.
        max: u32,
        /// A packet counts 2⁻ⁿ in the mean depth, 1 to 32.
        exponential_weight: u8,
        /// Just below `max` one packet in this many is dropped.
        denominator: u32,
        /// Mark ECN-capable packets instead of dropping them at random.
        #[cfg_attr(feature = "serde", serde(default))]
        ecn: bool,
    },
    /// CoDel (RFC 8289).
    Codel {
        /// Packets.
        limit: u32,
        /// Acceptable delay.
        target_us: u32,
        /// Time above the target before the first drop.
        interval_us: u32,
        /// Delay above which every ECN-capable packet is marked; null for none.
        ce_threshold_us: Option<u32>,
        /// Mark ECN-capable packets instead of dropping them.
        #[cfg_attr(feature = "serde", serde(default))]
        ecn: bool,
    },
    /// FQ-CoDel (RFC 8290).
    FqCodel {
        /// Packets of all flows.
        limit: u32,
        /// Flow queues, 1 to 65535.
        flows: u32,
        /// Bytes per turn.
        quantum: u32,
        /// Acceptable delay.
        target_us: u32,
        /// Time above the target before the first drop.
        interval_us: u32,
        /// Bytes of all flows, in memory as counted by Linux.
        memory_limit: u64,
        /// Maximum number of packets dropped at once when the limit is reached.
        drop_batch: u32,
        /// Delay above which every ECN-capable packet is marked; null for none.
        ce_threshold_us: Option<u32>,
        /// Mark ECN-capable packets instead of dropping them.
        #[cfg_attr(feature = "serde", serde(default))]
        ecn: bool,
    },
    /// PIE (RFC 8033).
    Pie {
        /// Packets.
        limit: u32,
        /// Target delay of the controller.
        target_us: u32,
        /// Time between updates of the probability.
        tupdate_us: u32,
        /// Weight of the distance from the target, sixteenths per second, 0 to 32.
        alpha: u32,
        /// Weight of the change of the delay, sixteenths per second, 0 to 32.
        beta: u32,
        /// Mark ECN-capable packets while the probability is at most a tenth.
        #[cfg_attr(feature = "serde", serde(default))]
        ecn: bool,
        /// Drop small packets less often.
        #[cfg_attr(feature = "serde", serde(default))]
        bytemode: bool,
    },
    /// CAKE. Its rate is the `shape` of the node; without one it is unlimited.
    Cake {
        /// Assignment of code points to tins.
        diffserv: Diffserv,
        /// Units of fairness: flows, hosts, or both.
        isolation: Isolation,
        /// Round-trip time of the paths.
        rtt_us: u32,
        /// Acceptable delay.
        target_us: u32,
        /// Bytes of all flows, in memory as counted by Linux; null for four round-trip times of the rate and at least 4
        /// MiB.
        memory_limit: Option<u64>,
        /// Set the code point of leaving packets to 0.
        #[cfg_attr(feature = "serde", serde(default))]
        wash: bool,
    },
}

/// Assignment of code points to tins in CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum Diffserv {
    /// One tin.
    Besteffort,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
}

/// Flow isolation of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum Isolation {
    /// None: one queue.
    Flowblind,
    /// Source addresses.
    Srchost,
    /// Destination addresses.
    Dsthost,
    /// Pairs of addresses.
    Hosts,
    /// Flows.
    Flows,
    /// Flows, with fairness among sources.
    DualSrchost,
    /// Flows, with fairness among destinations.
    DualDsthost,
    /// Flows, with fairness among sources and destinations.
    TripleIsolate,
}

#[cfg(feature = "serde")]
fn default_weight() -> u64 {
    1
}
