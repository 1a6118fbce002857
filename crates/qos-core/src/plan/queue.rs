//! The plan of a queue and of its random early detection.

use crate::config::queueing::{QueueLimit, RandomDetectBasis, ThresholdField};
use crate::counters::queue::DisciplineName;
use crate::counters::resolved::ResolvedRandomDetectRow;
use crate::frame::descriptor::Descriptor;
use crate::plan::aqm::{CakePlan, CodelQueuePlan, FqCodelPlan, PiePlan};
use crate::plan::field;

/// Description from which a queue is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QueuePlan {
    Fifo {
        limit: u32,
    },
    /// A FIFO with a limit in bytes or different limits for packets.
    Limited(Box<LimitsPlan>),
    /// `threshold` is that of the congestive discard; `total` is a separate limit, without which the interface's
    /// hold-queue applies.
    WeightedFair {
        flows: u32,
        threshold: u32,
        total: Option<u32>,
    },
    /// A class as one conversation of classic weighted fair queueing; without a weight the precedence decides.
    Conversation {
        limit: u32,
        weight: Option<u64>,
    },
    /// Without a limit per flow, only early detection limits the flows.
    FairQueue {
        flows: u32,
        per_flow: Option<u32>,
        limit: u32,
        /// Whether the limit applies to all flows together.
        limits_sum: bool,
    },
    /// A queue with active queue management.
    Managed(ManagedPlan),
}

/// A queue with active queue management.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ManagedPlan {
    Codel(CodelQueuePlan),
    FqCodel(FqCodelPlan),
    Pie(PiePlan),
    Cake(Box<CakePlan>),
}

impl ManagedPlan {
    /// Returns the maximum number of packets; `u32::MAX` for CAKE, whose limit is in bytes.
    fn limit(&self) -> u32 {
        match self {
            ManagedPlan::Codel(plan) => plan.limit,
            ManagedPlan::FqCodel(plan) => plan.limit,
            ManagedPlan::Pie(plan) => plan.limit,
            ManagedPlan::Cake(_) => u32::MAX,
        }
    }
}

impl QueuePlan {
    pub fn name(&self) -> DisciplineName {
        match self {
            QueuePlan::Fifo { .. } | QueuePlan::Limited(_) | QueuePlan::Conversation { .. } => DisciplineName::Fifo,
            QueuePlan::WeightedFair { .. } => DisciplineName::WeightedFair,
            QueuePlan::FairQueue { .. } => DisciplineName::FairQueue,
            QueuePlan::Managed(_) => DisciplineName::Managed,
        }
    }

    /// Returns the displayed limit.
    pub fn limit(&self) -> ShownLimit {
        match *self {
            QueuePlan::Fifo { limit } | QueuePlan::FairQueue { limit, .. } | QueuePlan::Conversation { limit, .. } => {
                ShownLimit::packets(limit)
            }
            QueuePlan::Limited(ref limits) => limits.shown(),
            QueuePlan::Managed(ref plan) => ShownLimit::packets(plan.limit()),
            QueuePlan::WeightedFair { total, .. } => {
                ShownLimit::packets(total.unwrap_or(crate::config::defaults::FAIR_HOLD_QUEUE))
            }
        }
    }

    pub fn per_flow(&self) -> Option<u32> {
        match *self {
            QueuePlan::Fifo { .. }
            | QueuePlan::Limited(_)
            | QueuePlan::Conversation { .. }
            | QueuePlan::WeightedFair { .. }
            | QueuePlan::Managed(_) => None,
            QueuePlan::FairQueue { per_flow, .. } => per_flow,
        }
    }

    /// Returns whether packets are distinguished by flow.
    pub fn by_flow(&self) -> bool {
        matches!(self, QueuePlan::WeightedFair { .. } | QueuePlan::FairQueue { .. })
    }

    /// Returns the number of flow queues.
    pub fn flows(&self) -> u32 {
        match *self {
            QueuePlan::Fifo { .. } | QueuePlan::Limited(_) | QueuePlan::Conversation { .. } => 1,
            QueuePlan::WeightedFair { flows, .. } | QueuePlan::FairQueue { flows, .. } => flows,
            QueuePlan::Managed(ManagedPlan::FqCodel(ref plan)) => plan.flows,
            QueuePlan::Managed(_) => 1,
        }
    }
}

/// The limits of a queue with every value known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitsPlan {
    /// Limit as typed.
    pub configured: Option<QueueLimit>,
    /// Whether depth and limits are in counted bytes instead of packets.
    pub in_bytes: bool,
    /// In bytes: whether the whole arriving packet must fit within the limit, as in Linux. Otherwise it is accepted
    /// while fewer bytes wait, as on routers.
    pub whole: bool,
    pub limit: u64,
    /// Limits by value of a field.
    pub thresholds: Option<(ThresholdField, Vec<u64>)>,
}

impl LimitsPlan {
    /// Returns the limit of a packet.
    pub fn of(&self, descriptor: &Descriptor) -> u64 {
        let Some((field, rows)) = &self.thresholds else { return self.limit };
        rows.get(field::value(*field, descriptor)).copied().unwrap_or(self.limit)
    }

    fn shown(&self) -> ShownLimit {
        let known = u32::try_from(self.limit).ok();
        ShownLimit {
            packets: known.filter(|_| !self.in_bytes),
            bytes: known.filter(|_| self.in_bytes),
            ms: match self.configured {
                Some(QueueLimit::Ms(ms)) => Some(ms),
                _ => None,
            },
            us: match self.configured {
                Some(QueueLimit::Us(us)) => Some(us),
                _ => None,
            },
        }
    }
}

/// A limit in its unit: packets, or bytes, which may result from a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownLimit {
    pub packets: Option<u32>,
    pub bytes: Option<u32>,
    pub ms: Option<u32>,
    pub us: Option<u32>,
}

impl ShownLimit {
    pub fn packets(packets: u32) -> ShownLimit {
        ShownLimit { packets: Some(packets), bytes: None, ms: None, us: None }
    }
}

/// Early detection with every value known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RandomDetectPlan {
    pub basis: RandomDetectBasis,
    pub exponential_weight: u8,
    /// Whether ECN-capable packets are marked instead of dropped at random.
    pub ecn: bool,
    /// Whether depth and thresholds are in counted bytes instead of packets.
    pub in_bytes: bool,
    /// Values with a displayed row even without packets: bit n is value n.
    pub shown: u64,
    /// Rows by DSCP (64) or by one of the other fields (8).
    pub rows: Vec<ResolvedRandomDetectRow>,
}

impl RandomDetectPlan {
    pub fn row(&self, descriptor: &Descriptor) -> usize {
        match self.basis {
            RandomDetectBasis::Precedence => usize::from(descriptor.precedence()),
            RandomDetectBasis::Dscp => usize::from(descriptor.dscp),
            RandomDetectBasis::Cos => usize::from(descriptor.cos & 7),
            RandomDetectBasis::DiscardClass => usize::from(descriptor.discard_class),
        }
    }
}
