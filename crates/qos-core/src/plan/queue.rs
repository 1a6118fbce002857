//! The plan of a queue and of its random early detection.

use crate::config::queueing::RandomDetectBasis;
use crate::counters::queue::DisciplineName;
use crate::counters::resolved::ResolvedRandomDetectRow;
use crate::frame::descriptor::Descriptor;

/// What to build a queue from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePlan {
    Fifo {
        limit: u32,
    },
    /// `threshold` is that of the congestive discard; `total` is its own limit, without which the interface's
    /// hold-queue limits it.
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
    /// Without a limit for each flow early detection alone limits them.
    FairQueue {
        flows: u32,
        per_flow: Option<u32>,
        limit: u32,
    },
}

impl QueuePlan {
    pub fn name(&self) -> DisciplineName {
        match self {
            QueuePlan::Fifo { .. } | QueuePlan::Conversation { .. } => DisciplineName::Fifo,
            QueuePlan::WeightedFair { .. } => DisciplineName::WeightedFair,
            QueuePlan::FairQueue { .. } => DisciplineName::FairQueue,
        }
    }

    /// The limit that is shown.
    pub fn limit(&self) -> u32 {
        match *self {
            QueuePlan::Fifo { limit } | QueuePlan::FairQueue { limit, .. } | QueuePlan::Conversation { limit, .. } => {
                limit
            }
            QueuePlan::WeightedFair { total, .. } => total.unwrap_or(crate::config::defaults::FAIR_HOLD_QUEUE),
        }
    }

    pub fn per_flow(&self) -> Option<u32> {
        match *self {
            QueuePlan::Fifo { .. } | QueuePlan::Conversation { .. } | QueuePlan::WeightedFair { .. } => None,
            QueuePlan::FairQueue { per_flow, .. } => per_flow,
        }
    }

    /// Whether packets are told apart by flow.
    pub fn by_flow(&self) -> bool {
        matches!(self, QueuePlan::WeightedFair { .. } | QueuePlan::FairQueue { .. })
    }

    /// Flow queues that it makes.
    pub fn flows(&self) -> u32 {
        match *self {
            QueuePlan::Fifo { .. } | QueuePlan::Conversation { .. } => 1,
            QueuePlan::WeightedFair { flows, .. } | QueuePlan::FairQueue { flows, .. } => flows,
        }
    }
}

/// Early detection with every figure known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RandomDetectPlan {
    pub basis: RandomDetectBasis,
    pub exponential_weight: u8,
    /// Mark ECN-capable packets rather than drop them at random.
    pub ecn: bool,
    /// By precedence (8) or code point (64).
    pub rows: Vec<ResolvedRandomDetectRow>,
}

impl RandomDetectPlan {
    pub fn row(&self, descriptor: &Descriptor) -> usize {
        match self.basis {
            RandomDetectBasis::Precedence => usize::from(descriptor.precedence()),
            RandomDetectBasis::Dscp => usize::from(descriptor.dscp),
        }
    }
}
