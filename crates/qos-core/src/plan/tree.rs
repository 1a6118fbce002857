//! The tree of an interface's queues, as a plan.
//!
//! The root is the interface; an inner node is a class whose child policy-map queues; a leaf is a queue. Each node
//! shares the rate of its parent with its siblings, and may have a shaper.

use crate::plan::queue::{QueuePlan, RandomDetectPlan};
use crate::plan::shape::{AccountPlan, ShapePlan};
use crate::time::Rate;

/// The number of the root in every plan.
pub(crate) const ROOT: usize = 0;

/// Selection among the children of an inner node that have no priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Bytes in proportion to the weights (later generation, and a single queue).
    Weighted,
    /// A minimum rate each, then bytes in proportion to the weights (IOS-XE).
    Excess,
    /// The lowest sequence number first (classic).
    Sequence,
    /// By sequence number, or in turn (priority and custom queueing).
    Turns,
}

/// The position of a node among its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Served before all nodes without priority; 0 is served first.
    Priority(usize),
    /// [`Sharing::Weighted`] and [`Sharing::Excess`]: its weight.
    Weight(u64),
    /// The same for packets with a separate length for the rate.
    AccountedWeight(u64, AccountPlan),
    /// [`Sharing::Sequence`]: the increment of the sequence number per byte; without it the packet's precedence
    /// decides.
    Factor(Option<u64>),
    /// [`Sharing::Sequence`], of a node with a shaper: it does not compete. Packets that its shaper releases join the
    /// queue of that number, a sibling, and compete there.
    Released(usize),
    /// [`Sharing::Turns`]: served before those with a greater number, and before all that take turns.
    Strict(u8),
    /// [`Sharing::Turns`]: in turn.
    Turn(Turn),
}

/// A queue that takes turns with its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Place among the siblings.
    pub number: u8,
    /// Bytes per turn; not 0.
    pub byte_count: u32,
}

/// Kind of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyPlan {
    /// A queue.
    Leaf { queue: QueuePlan, random_detect: Option<RandomDetectPlan> },
    /// A choice between children; `limit` is the displayed queue limit of all of them.
    Inner { sharing: Sharing, limit: u32 },
}

/// A node to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodePlan {
    /// Index of the parent; that of the root is the root itself. A parent comes before its children.
    pub parent: usize,
    pub rank: Rank,
    /// [`Sharing::Excess`]: rate before the excess is shared, b/s.
    pub minimum_bps: u64,
    pub shape: Option<ShapePlan>,
    pub body: BodyPlan,
}

/// Returns a tree with only the root.
pub(crate) fn root(sharing: Sharing) -> Vec<NodePlan> {
    let body = BodyPlan::Inner { sharing, limit: 0 };
    vec![NodePlan { parent: ROOT, rank: Rank::Weight(1), minimum_bps: 0, shape: None, body }]
}

/// Returns a root with one queue.
pub(crate) fn single(queue: QueuePlan, sharing: Sharing) -> Vec<NodePlan> {
    let mut nodes = root(sharing);
    let rank = match sharing {
        Sharing::Weighted | Sharing::Excess => Rank::Weight(1),
        Sharing::Sequence => Rank::Factor(None),
        Sharing::Turns => Rank::Strict(0),
    };
    let body = BodyPlan::Leaf { queue, random_detect: None };
    nodes.push(NodePlan { parent: ROOT, rank, minimum_bps: 0, shape: None, body });
    nodes
}

/// The queue in a plan of [`single`].
pub(crate) const SINGLE: usize = 1;

/// Levels of priority.
pub(crate) const PRIORITY_LEVELS: usize = 2;

/// Returns the maximum service rate of a queue behind these shapers.
pub(crate) fn slowest_shaper(line: Rate, shapes: impl Iterator<Item = ShapePlan>) -> Rate {
    shapes.fold(line, |rate, shape| Rate(rate.0.min(shape.target_bps())))
}

/// Returns the maximum service rate of the queue of that number.
pub(crate) fn rate_of(plans: &[NodePlan], index: usize, line: Rate) -> Rate {
    let above = |node: &usize| (*node != ROOT).then(|| plans[*node].parent);
    slowest_shaper(line, std::iter::successors(Some(index), above).filter_map(|node| plans[node].shape))
}
