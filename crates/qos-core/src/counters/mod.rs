//! Counters of the engine: the `counters` and `resolve` replies of `docs/internals/control-protocol.md`, as types.
//!
//! Bytes are counted like in IOS: IP packet plus layer-2 header (see [`crate::Descriptor::counted_len`]).

pub(crate) mod aqm;
pub(crate) mod buckets;
pub(crate) mod catalyst;
pub(crate) mod conversation;
pub(crate) mod count;
pub(crate) mod interface_queueing;
pub(crate) mod police;
pub(crate) mod policy;
pub(crate) mod port;
pub(crate) mod queue;
pub(crate) mod rate_limit;
pub(crate) mod resolved;
pub(crate) mod totals;

pub use aqm::{FlowsCounters, ManagedCounters, TinCounters, TreeNodeCounters};
pub use buckets::{ClassBuckets, Tokens};
pub use catalyst::{ProfileCounters, SwitchCounters, SwitchPortCounters};
pub use conversation::{ConversationCounters, HeadIp, HeadPacket};
pub use count::Count;
pub use interface_queueing::{InterfaceShaperCounters, NumberedQueueCounters};
pub use police::{BucketChange, ColourCounters, DynamicCounters, PoliceCounters, TokensLost};
pub use policy::{
    BandwidthCounters, ClassCounters, ClassDrops, CriterionCounters, MapCounters, PolicyCounters, PriorityCounters,
    SetCounters,
};
pub use port::{
    AccessEntryCounters, Counters, DirectionCounters, InterfaceCounters, InterfaceQueueCounters, LinkCounters,
    PropagationCounters, QueueingDelayCounters, ReservedConversations, RingCounters, Strategy, SubinterfaceCounters,
};
pub use queue::{
    ClassQueueCounters, DisciplineName, PriorityQueueCounters, RandomDetectCounters, RandomDetectRow, ShapeCounters,
};
pub use rate_limit::RateLimitCounters;
pub use resolved::{
    Resolved, ResolvedClass, ResolvedFairQueue, ResolvedPolice, ResolvedPolicy, ResolvedPriority, ResolvedRandomDetect,
    ResolvedRandomDetectRow, ResolvedShape,
};
pub use totals::PortTotals;
