//! The plans of queues with active queue management.

use crate::plan::shape::AccountPlan;
use crate::time::Duration;

/// CoDel's control law (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodelPlan {
    /// Acceptable persistent queueing delay.
    pub target: Duration,
    /// Time for which the delay must stay above the target before the first drop.
    pub interval: Duration,
    /// Queueing delay above which every ECN-capable packet is marked.
    pub ce_threshold: Option<Duration>,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

/// A FIFO queue under CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodelQueuePlan {
    pub law: CodelPlan,
    /// Packets.
    pub limit: u32,
}

/// FQ-CoDel (RFC 8290).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FqCodelPlan {
    pub law: CodelPlan,
    /// Packets of all flows.
    pub limit: u32,
    /// Flow queues.
    pub flows: u32,
    /// Bytes that a flow may send in a round.
    pub quantum: u32,
    /// Counted bytes of all flows.
    pub memory_limit: u64,
    /// Maximum number of packets that are dropped at once when the queue is full.
    pub drop_batch: u32,
}

/// PIE (RFC 8033). `alpha` and `beta` in sixteenths per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PiePlan {
    /// Packets.
    pub limit: u32,
    pub target: Duration,
    pub update: Duration,
    pub alpha: u32,
    pub beta: u32,
    /// Mark ECN-capable packets instead of dropping them, while the probability is at most a tenth.
    pub ecn: bool,
    /// Scale the probability by the size of the packet.
    pub bytemode: bool,
}

/// Division of packets into flows by CAKE, and the hosts that get fair shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IsolationPlan {
    /// A flow is identified by addresses, protocol and ports.
    pub flows: bool,
    /// Without `flows`: a flow is identified by its source address.
    pub source: bool,
    /// Without `flows`: a flow is identified by its destination address.
    pub destination: bool,
    /// Flows of a source share the part of that source.
    pub fair_sources: bool,
    /// Flows to a destination share the part of that destination.
    pub fair_destinations: bool,
}

/// A tin of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TinPlan {
    /// The rate above which the tin loses its priority, b/s; 0 without a shaper.
    pub threshold_bps: u64,
    /// Share of the tin without a shaper.
    pub quantum: u32,
    pub flow_quantum: u32,
    pub target: Duration,
    pub interval: Duration,
    /// Time that a full packet takes at the threshold.
    pub mtu_time: Duration,
}

/// CAKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CakePlan {
    /// Tins in the order of the kernel: a later one has priority over an earlier one, up to its threshold.
    pub tins: Vec<TinPlan>,
    /// The tin of a code point.
    pub tin_of: [u8; 64],
    pub isolation: IsolationPlan,
    /// Length of a packet for the rates.
    pub account: Option<AccountPlan>,
    /// Counted bytes of all flows.
    pub memory_limit: u64,
    /// Set the DSCP of departing packets to 0.
    pub wash: bool,
}
