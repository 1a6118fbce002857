//! A tree of classes and queues on an interface, as Linux's `tc` builds it: the configuration.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A class or a queue of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct TreeNode {
    /// Its name: the handle or class of `tc` (`1:10`), unique in the tree.
    pub name: String,
    /// The name of the class above it, which comes before it; null for the outermost ones.
    #[cfg_attr(feature = "serde", serde(default))]
    pub parent: Option<String>,
    /// The most that it may send, and in which bursts; null for no limit of its own.
    #[cfg_attr(feature = "serde", serde(default))]
    pub shape: Option<TreeShape>,
    /// The rate that it has before what is left is shared, b/s (HTB `rate`); 0 for none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub minimum_bps: u64,
    /// Its part of what is left, relative to its siblings (HTB `quantum`).
    #[cfg_attr(feature = "serde", serde(default = "default_weight"))]
    pub weight: u64,
    /// Its queue; null for a class that has classes below it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: Option<QueueDiscipline>,
}

/// A token bucket that shapes (`tbf`, HTB `ceil`, the shaper of `cake`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct TreeShape {
    /// Bits per second.
    pub rate_bps: u64,
    /// Size of the bucket, counted bytes; 0: packets are spaced.
    pub burst_bytes: u64,
    /// A packet leaves while the bucket is not below empty, whatever its length, and the next one waits (HTB, CAKE).
    /// Else it leaves when the bucket holds its length, or is full (TBF).
    #[cfg_attr(feature = "serde", serde(default))]
    pub deficit: bool,
    /// Length of a packet for the rate; null for its counted bytes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub account: Option<LengthAccount>,
}

/// The length of a packet for a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct LengthAccount {
    /// Added to the counted bytes.
    pub offset_bytes: i32,
    /// No packet is shorter (`mpu`).
    #[cfg_attr(feature = "serde", serde(default))]
    pub least_bytes: u32,
    /// What it is put into then.
    #[cfg_attr(feature = "serde", serde(default))]
    pub carrier: Carrier,
}

/// What packets are put into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Carrier {
    /// Nothing.
    #[default]
    Frames,
    /// Whole ATM cells.
    Atm,
    /// 65 bytes for each 64 (PTM).
    Ptm,
}

/// The discipline of a queue. Times in microseconds, bytes as counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields))]
pub enum QueueDiscipline {
    /// First in, first out, with a limit in packets.
    Pfifo {
        /// Packets.
        limit: u32,
    },
    /// First in, first out, with a limit in bytes.
    Bfifo {
        /// Bytes: a packet is taken while fewer wait.
        limit: u64,
    },
    /// Random early detection (S. Floyd, V. Jacobson, 1993).
    Red {
        /// Bytes: a packet is taken while fewer wait.
        limit: u64,
        /// Mean depth from which packets are dropped at random, bytes.
        min: u32,
        /// Mean depth from which every packet is dropped, bytes.
        max: u32,
        /// A packet counts 2⁻ⁿ in the mean depth, 1 to 32.
        exponential_weight: u8,
        /// Just below `max` one packet in this many is dropped.
        denominator: u32,
        /// Mark ECN-capable packets where they would be dropped at random.
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
        /// Delay from which on every ECN-capable packet is marked; null for none.
        #[cfg_attr(feature = "serde", serde(default))]
        ce_threshold_us: Option<u32>,
        /// Mark ECN-capable packets in place of a drop.
        #[cfg_attr(feature = "serde", serde(default))]
        ecn: bool,
    },
    /// FQ-CoDel (RFC 8290).
    FqCodel {
        /// Packets of all flows.
        limit: u32,
        /// Flow queues, 1 to 65535.
        flows: u32,
        /// Bytes of a turn.
        quantum: u32,
        /// Acceptable delay.
        target_us: u32,
        /// Time above the target before the first drop.
        interval_us: u32,
        /// Bytes of all flows, of memory as Linux counts it.
        memory_limit: u64,
        /// Most packets that are dropped at once when the limit is reached.
        drop_batch: u32,
        /// Delay from which on every ECN-capable packet is marked; null for none.
        #[cfg_attr(feature = "serde", serde(default))]
        ce_threshold_us: Option<u32>,
        /// Mark ECN-capable packets in place of a drop.
        #[cfg_attr(feature = "serde", serde(default))]
        ecn: bool,
    },
    /// PIE (RFC 8033).
    Pie {
        /// Packets.
        limit: u32,
        /// Delay that the controller aims at.
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
    /// CAKE. Its rate is that of the node's `shape`; without one it is unlimited.
    Cake {
        /// How code points are divided into tins.
        diffserv: Diffserv,
        /// Units of fairness: flows, hosts, or both.
        isolation: Isolation,
        /// Round-trip time of the paths.
        rtt_us: u32,
        /// Acceptable delay.
        target_us: u32,
        /// Bytes of all flows; of memory as Linux counts it; null for four round-trip times of the rate and at least
        /// 4 MiB.
        #[cfg_attr(feature = "serde", serde(default))]
        memory_limit: Option<u64>,
        /// Set the code point of what leaves to 0.
        #[cfg_attr(feature = "serde", serde(default))]
        wash: bool,
    },
}

/// How CAKE divides code points into tins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Diffserv {
    /// One tin.
    Besteffort,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
}

/// What CAKE tells apart, and what it treats alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Isolation {
    /// Nothing: one queue.
    Flowblind,
    /// Source addresses.
    Srchost,
    /// Destination addresses.
    Dsthost,
    /// Pairs of addresses.
    Hosts,
    /// Flows.
    Flows,
    /// Flows, fairly among their sources.
    DualSrchost,
    /// Flows, fairly among their destinations.
    DualDsthost,
    /// Flows, fairly among sources and destinations.
    TripleIsolate,
}

#[cfg(feature = "serde")]
fn default_weight() -> u64 {
    1
}
