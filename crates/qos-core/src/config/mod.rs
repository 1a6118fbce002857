//! Configuration types, described in `docs/internals/control-protocol.md`.
//!
//! Parsing checks the shape (unknown keys are refused); [`crate::Engine::configure`] checks the meaning.

pub(crate) mod catalyst;
pub(crate) mod catalyst_constants;
pub(crate) mod classification;
pub mod defaults;
pub(crate) mod interface;
pub(crate) mod interface_queueing;
#[cfg(feature = "serde")]
pub(crate) mod json;
pub(crate) mod policy;
pub(crate) mod queueing;
pub(crate) mod rate_limit;
pub(crate) mod router;
pub(crate) mod tree;
pub(crate) mod wiring;

pub use catalyst::{
    AggregatePolicerConfig, ExceedAction, InputPriorityConfig, InputQueuesConfig, MapsConfig, QueueSetConfig,
    QueueThresholds, SwitchConfig, SwitchPortConfig, SwitchportConfig, SwitchportMode, Trust,
};
pub use classification::{
    AccessAction, AccessListEntry, AddressMatch, ClassMap, Criterion, MatchMode, PortMatch, PortOperator, ProtocolName,
};
pub use interface::{InterfaceConfig, SubinterfaceConfig, VirtualCircuitConfig};
pub use interface_queueing::{
    CustomQueue, InterfaceQueueing, InterfaceShaper, QueueRule, QueuedPort, QueuedProtocol, CUSTOM_QUEUES,
    PRIORITY_QUEUES,
};
#[cfg(feature = "serde")]
pub use json::from_json;
pub use policy::{
    AccessEncapsulation, AccountConfig, DynamicBucketConfig, FairQueueConfig, MapAction, PoliceAction, PoliceBurst,
    PoliceConfig, PoliceForm, PolicyClass, PolicyMap, RateSpec, SetAction, SetField, ShapeBurst, ShapeConfig,
    ShapeMode, SubscriberEncapsulation, SubscriberLineAccount, UserDefinedAccount,
};
pub use queueing::{
    BandwidthConfig, InterfaceFairQueue, LimitUnit, PriorityConfig, PriorityUnit, QueueLimit, QueueThreshold,
    RandomDetectBasis, RandomDetectConfig, RandomDetectThreshold, ThresholdField,
};
pub use rate_limit::{RateLimitAction, RateLimitConfig, RateLimitOutcome};
pub use router::{Generation, RouterConfig, FORMAT};
pub use tree::{Carrier, Diffserv, Isolation, LengthAccount, QueueDiscipline, TreeNode, TreeShape};
pub use wiring::{
    JitterConfig, JitterDistribution, LinkConfig, LossConfig, PortConfig, PortsConfig, NORMAL_JITTER_CUT,
};
