//! Plan of queueing without a policy-map: the selection of a queue, and the owners of the queues.

use crate::config::interface_queueing::{QueuedPort, QueuedProtocol};
use crate::frame::port_number::PortId;

/// Properties that a packet must have to join a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub protocol: Option<QueuedProtocol>,
    pub input: Option<PortId>,
    /// Access list by number.
    pub access_list: Option<usize>,
    pub larger_than: Option<u32>,
    pub smaller_than: Option<u32>,
    pub fragments: bool,
    pub port: Option<QueuedPort>,
}

/// Selection of the queue that a packet joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steering {
    /// Rules with their nodes; the first one that matches decides.
    pub rules: Vec<(Wanted, usize)>,
    /// Node of all other packets.
    pub other: usize,
}

/// Queueing without a policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceQueueingPlan {
    pub steering: Steering,
    /// The nodes of shapers, in order.
    pub shapers: Vec<usize>,
    /// Numbers and nodes of queues.
    pub queues: Vec<(u8, usize)>,
    /// The nodes of a tree, without the root.
    pub tree: Vec<TreeNodePlan>,
}

/// Displayed properties of a node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeNodePlan {
    pub name: String,
    pub parent: Option<String>,
    /// Settings of a queue.
    pub discipline: Option<String>,
}
