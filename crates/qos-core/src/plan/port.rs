//! The plan of a port.

use crate::counters::port::{ReservedConversations, Strategy};
use crate::plan::admission::AdmissionsPlan;
use crate::plan::catalyst::CatalystPlan;
use crate::plan::classes::PolicyPlan;
use crate::plan::interface_queueing::InterfaceQueueingPlan;
use crate::plan::tree::NodePlan;
use crate::time::{Duration, Rate};

/// Plan of a port. Equal plans behave equally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortPlan {
    pub enabled: bool,
    pub rate: Rate,
    /// Settings of a virtual circuit with a limited time at the peak rate.
    pub sustained: Option<SustainedPlan>,
    pub load_interval_s: u32,
    pub input: Option<PolicyPlan>,
    /// Subinterfaces of a router's port, in the order of their names.
    pub subinterfaces: Vec<SubinterfacePlan>,
    /// Whether a class's drop rate includes drops of its policer.
    pub police_in_drop_rate: bool,
    pub kind: KindPlan,
}

/// The sustainable rate of a virtual circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SustainedPlan {
    pub rate: Rate,
    /// Maximum amount by which the sent data may exceed the rate.
    pub tolerance: Duration,
}

/// A subinterface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubinterfacePlan {
    pub name: String,
    pub enabled: bool,
    pub vlan: u16,
    pub native: bool,
}

/// Parts of a plan that are specific to a router or a Catalyst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KindPlan {
    Router(Box<RouterPlan>),
    Catalyst(Box<CatalystPlan>),
}

/// Parts of a plan that are specific to a router: the egress, and the stages ahead of the policies of both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouterPlan {
    pub ring: RingPlan,
    pub strategy: Strategy,
    /// The displayed limit of the interface's queue.
    pub hold_queue: u32,
    /// The tree of the queues.
    pub nodes: Vec<NodePlan>,
    /// Maximum number of packets in all conversations; none without a common limit.
    pub hold: Option<u32>,
    /// Displayed values of the conversations of weighted fair queueing.
    pub conversations: Option<ConversationPlan>,
    pub output: Option<PolicyPlan>,
    /// Queueing without a policy-map.
    pub queueing: Option<Box<InterfaceQueueingPlan>>,
    pub admission: AdmissionsPlan,
}

/// The transmit ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingPlan {
    /// Packets, or particles.
    pub limit: u32,
    /// Whether the limit counts particles.
    pub particles: bool,
}

/// Conversations of an interface with weighted fair queueing, with or without classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConversationPlan {
    /// Queues of flows.
    pub most: u32,
    /// Congestive discard threshold.
    pub threshold: u32,
    pub reserved: ReservedConversations,
    /// Bandwidth that classes may still reserve.
    pub available_kbps: u64,
}
