//! Plan of an attached policy-map: its classes and their match criteria.

use crate::config::classification::{MatchMode, ProtocolName};
use crate::config::policy::{MapAction, SetAction};
use crate::counters::policy::BandwidthCounters;
use crate::counters::resolved::ResolvedPriority;
use crate::frame::port_number::PortId;
use crate::plan::police::PolicePlan;
use crate::plan::tree::NodePlan;

/// A compiled class-map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matcher {
    pub combine: MatchMode,
    pub criteria: Vec<Statement>,
}

/// One match statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub negate: bool,
    pub test: Test,
}

/// Test of a match statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Any,
    /// Access list by number.
    AccessGroup(usize),
    /// Bit n set: code point n.
    Dscp {
        values: u64,
        ip_only: bool,
    },
    /// Bit n set: precedence n.
    Precedence {
        values: u8,
        ip_only: bool,
    },
    /// Bit n set: class n.
    Cos {
        values: u8,
    },
    /// First and last of each range; 0 is a frame without a VLAN.
    Vlan {
        ranges: Box<[(u16, u16)]>,
    },
    Protocol(ProtocolName),
    PacketLength {
        min: u32,
        max: u32,
    },
    InputInterface(PortId),
    QosGroup(u16),
    DiscardClass(u8),
    Nested(Matcher),
}

/// The class that always exists and is last.
pub(crate) const CLASS_DEFAULT: &str = "class-default";

/// The name of the combined policy-map of a port's subinterfaces, which cannot be configured.
pub(crate) const SUBINTERFACES: &str = "";

/// The name of the combined policy-map of a switch port's VLANs, which cannot be configured.
pub(crate) const VLAN_BASED: &str = "mls qos vlan-based";

/// A class of an attached policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassPlan {
    pub name: String,
    pub matcher: Matcher,
    pub set: Vec<SetAction>,
    pub map: Vec<MapAction>,
    pub police: Option<PolicePlan>,
    /// The queue that its packets join.
    pub leaf: usize,
    /// The queue used only by this class, or the node above its children's queues.
    pub own: Option<usize>,
    pub bandwidth: Option<BandwidthCounters>,
    pub priority: Option<ResolvedPriority>,
    /// The class that gives its packets their priority: this class or one above it.
    pub priority_of: Option<usize>,
    /// Number of its conversation (classic).
    pub conversation: Option<u32>,
    pub parent: Option<usize>,
    pub child: Option<LevelPlan>,
}

impl ClassPlan {
    /// Returns whether it has `set` commands.
    pub fn marks(&self) -> bool {
        !self.set.is_empty() || !self.map.is_empty()
    }
}

/// A policy-map in the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelPlan {
    pub name: String,
    /// Classes in order.
    pub classes: Vec<usize>,
    /// The queues that its priority classes share, with their level (later generation).
    pub priority_queues: Vec<(u8, usize)>,
}

/// An attached policy-map, its children included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyPlan {
    /// All classes of all levels; a parent comes before its children.
    pub classes: Vec<ClassPlan>,
    pub top: LevelPlan,
    /// The tree of the queues. A policy with queues replaces the interface's default queueing; without queues this is
    /// empty.
    pub nodes: Vec<NodePlan>,
    /// Flow queues in addition to its classes (classic).
    pub flow_queues: Option<u32>,
}
