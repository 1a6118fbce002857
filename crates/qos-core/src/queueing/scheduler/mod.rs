//! The scheduler of an interface: the queues in front of the transmit ring, and the selection of the next packet.
//!
//! The queues are the leaves of a tree ([`crate::plan::tree`]). At each inner node, children with priority come first,
//! in the later generation also those with priority classes further down. The others share
//!
//! - by weight: start-time fair queueing (Goyal, Vin and Cheng, 1996) over counted bytes. While two children both have
//!   packets, their shares in proportion to their weights differ by at most one packet of each.
//! - or by sequence number, as classic weighted fair queueing does: the conversations of the interface's own fair
//!   queueing, those of class-default, and the classes, each a conversation, are in one space of numbers.
//! - or by number and in turn: priority and custom queueing ([`crate::queueing::turns`]).
//!
//! A node with a shaper takes part while the shaper permits its next packet. A shaper of the classic generation
//! precedes the interface's queues instead: the packets that it releases at the end of an interval join one of them at
//! once, even if the line is busy. Changes are propagated from a leaf to the root, through a tournament at each level,
//! so that the cost of a packet is logarithmic in the number of classes.

mod audit;
mod contest;
mod departure;
mod joining;
mod node;
mod release;

pub(crate) use joining::Room;
pub(crate) use node::Node;

use crate::config::defaults;
use crate::counters::count::Count;
use crate::frame::drop_reason::DropReason;
use crate::plan::tree::{self, BodyPlan, NodePlan, Rank, Sharing, ROOT};
use crate::queueing::aqm::manage::Lost;
use crate::queueing::discipline::{Discipline, Item};
use crate::queueing::queue::Queue;
use crate::queueing::weighted_fair::Waiting;
use crate::time::{Rate, Time};
use crate::winner_tree::WinnerTree;
use node::{Inner, InnerId, Leaf, LeafId, Member, Minimums, NodeId, Standing};

/// Returns, for each inner node, whether one of its children has a priority class below it.
fn propagating(plans: &[NodePlan]) -> Vec<bool> {
    let mut found = vec![false; plans.len()];
    let weighted =
        |node: usize| matches!(plans[node].body, BodyPlan::Inner { sharing: Sharing::Weighted | Sharing::Excess, .. });
    for plan in plans.iter().filter(|plan| defaults::HQF_PRIORITY_PROPAGATES && matches!(plan.rank, Rank::Priority(_)))
    {
        let mut node = plan.parent;
        while node != ROOT {
            node = plans[node].parent;
            found[node] = weighted(node);
        }
    }
    found
}

/// Returns whether a node's children are served by sequence number.
fn sequence(plans: &[NodePlan], node: usize) -> bool {
    matches!(plans[node].body, BodyPlan::Inner { sharing: Sharing::Sequence, .. })
}

/// All queues of an interface.
#[derive(Debug)]
pub(crate) struct Scheduler<P> {
    leaves: Vec<Leaf<P>>,
    /// The root first.
    inners: Vec<Inner>,
    /// Nodes by their number in the plan.
    nodes: Vec<NodeId>,
    /// Queue that packets join at each node of the plan; for a choice, the last queue below it.
    joins: Vec<LeafId>,
    /// Times at which shapers release the next packet, by timer.
    timers: WinnerTree<u64>,
    /// The nodes of the timers.
    shaped: Vec<NodeId>,
    /// The classic hold-queue: maximum number of packets in all conversations.
    hold: Option<u64>,
    held: u64,
    /// Whether priority classes further down take precedence at the nodes above.
    propagates: bool,
    /// Whether this is the classic generation.
    classic: bool,
    /// Leaves by the highest sequence number, negated: the lowest is the first to be discarded.
    tails: WinnerTree<u64>,
    active: u32,
    max_active: u32,
    /// The time of the last change.
    clock: Time,
    /// Times at which a child of a choice may next use its minimum rate, by choice.
    minimum_timers: WinnerTree<u64>,
    /// The choices between children with minimum rates.
    with_minimums: Vec<InnerId>,
    /// Whether a shaper precedes the interface's queues.
    apart: bool,
    /// Packets released by shapers but refused by the next queue, and packets dropped by active queue management: time,
    /// reason and packet.
    refused: Vec<(Time, DropReason, Item<P>)>,
    /// Reusable buffer for packets dropped by active queue management; empty between calls.
    lost: Vec<Lost<P>>,
}

impl<P> Scheduler<P> {
    /// Creates the queues; `plans` is a tree with its root first, `hold` limits the conversations of a classic
    /// interface, and `rate` is that of the line.
    pub fn new(plans: &[NodePlan], hold: Option<u32>, seed: u64, rate: Rate, now: Time) -> Scheduler<P> {
        let mut scheduler = Scheduler {
            leaves: Vec::new(),
            inners: Vec::new(),
            nodes: Vec::with_capacity(plans.len()),
            joins: vec![LeafId(0); plans.len()],
            timers: WinnerTree::new(plans.iter().filter(|plan| plan.shape.is_some()).count()),
            shaped: Vec::new(),
            hold: hold.map(u64::from),
            held: 0,
            propagates: false,
            classic: sequence(plans, ROOT),
            tails: WinnerTree::new(if hold.is_some() { plans.len() } else { 0 }),
            active: 0,
            max_active: 0,
            clock: now,
            minimum_timers: WinnerTree::new(0),
            with_minimums: Vec::new(),
            apart: plans.iter().any(|plan| matches!(plan.rank, Rank::Released(_))),
            refused: Vec::new(),
            lost: Vec::new(),
        };
        scheduler.grow(plans, seed, (rate, now));
        for number in (0..plans.len()).rev() {
            scheduler.joins[number] = match scheduler.nodes[number] {
                NodeId::Leaf(leaf) => leaf,
                // Children follow their parent.
                NodeId::Inner(_) => plans
                    .iter()
                    .rposition(|plan| plan.parent == number)
                    .map_or(LeafId(0), |child| scheduler.joins[child]),
            };
        }
        scheduler
    }

    /// Creates the nodes.
    fn grow(&mut self, plans: &[NodePlan], seed: u64, (rate, now): (Rate, Time)) {
        let mut children = vec![0; plans.len()];
        plans.iter().skip(1).for_each(|plan| children[plan.parent] += 1);
        let urgent = propagating(plans);
        let mut minimums = vec![false; plans.len()];
        plans.iter().skip(1).for_each(|plan| minimums[plan.parent] |= plan.minimum_bps > 0);
        self.minimum_timers = WinnerTree::new(minimums.iter().filter(|minimum| **minimum).count());
        self.propagates = urgent.contains(&true);
        for (number, plan) in plans.iter().enumerate() {
            let standing = self.standing(plan.parent, children[plan.parent] == 1);
            let mut member = Member::new(plan, standing, now);
            let id = match &plan.body {
                BodyPlan::Leaf { .. } => NodeId::Leaf(LeafId(self.leaves.len())),
                BodyPlan::Inner { .. } => NodeId::Inner(InnerId(self.inners.len())),
            };
            if let Some(above) = self.inners.get_mut(standing.parent.0) {
                above.push(id, plan.rank);
            }
            if plan.shape.is_some() {
                self.shaped.push(id);
            }
            self.nodes.push(id);
            match &plan.body {
                BodyPlan::Leaf { queue, random_detect } => {
                    let queue = Queue::of(queue, seed, now);
                    let numbered = sequence(plans, plan.parent) && plan.shape.is_none() && queue.numbers();
                    let detect = random_detect.as_ref();
                    let random_detect = Leaf::<P>::random_detect((plans, number), detect, seed, (rate, now));
                    let drops = Count::default();
                    let managed = queue.managed().is_some();
                    if managed {
                        member.touch_at = Time(0);
                    }
                    let plain = !member.shaped && random_detect.is_none() && !numbered && !managed;
                    let flows = queue.flows().is_some();
                    let leaf = Leaf { member, queue, random_detect, numbered, plain, flows, managed, active: 0, drops };
                    self.leaves.push(leaf);
                }
                BodyPlan::Inner { .. } => {
                    let mut inner = Inner::new(member, children[number], urgent[number]);
                    if minimums[number] {
                        let minimums = Minimums::new(self.with_minimums.len(), children[number]);
                        inner.minimums = Some(Box::new(minimums));
                        self.with_minimums.push(InnerId(self.inners.len()));
                    }
                    self.inners.push(inner);
                }
            }
        }
    }

    /// Returns the place of the next new node; `parent` is the number of its parent in the plan.
    fn standing(&self, parent: usize, only: bool) -> Standing {
        let parent = match self.nodes.get(parent) {
            Some(NodeId::Inner(parent)) => *parent,
            // A node below a queue, which no plan has, would become its sibling.
            Some(NodeId::Leaf(leaf)) => self.leaves[leaf.0].member.parent,
            None => InnerId::ROOT,
        };
        let above = self.inners.get(parent.0);
        Standing {
            parent,
            child: above.map_or(0, |above| above.children.len()),
            level: above.map_or(0, |above| above.member.level + 1),
            shaped: above.is_some_and(|above| above.member.shaped),
            only,
            timer: self.shaped.len(),
        }
    }

    /// Returns the node of that number in the plan.
    pub fn node(&self, number: usize) -> Node<'_, P> {
        match self.nodes[number] {
            NodeId::Leaf(leaf) => Node::Leaf(&self.leaves[leaf.0]),
            NodeId::Inner(inner) => Node::Inner(&self.inners[inner.0]),
        }
    }

    pub fn queues(&self) -> impl Iterator<Item = &Queue<P>> {
        self.leaves.iter().map(|leaf| &leaf.queue)
    }

    /// Returns the packets that wait, and their counted bytes.
    pub fn waiting(&self) -> Count {
        self.leaves.iter().fold(Count::default(), |sum, leaf| sum.plus(leaf.member.depth))
    }

    /// Returns the number of packets that wait.
    #[inline]
    pub fn len(&self) -> u64 {
        self.inners[InnerId::ROOT.0].member.depth.packets
    }

    /// Returns the number of packets waiting for the line, without those waiting for a shaper before the interface's
    /// queues.
    pub fn depth(&self) -> u64 {
        let shaped = self.shaped.iter().map(|node| self.member(*node));
        let before =
            shaped.filter(|member| member.parent == InnerId::ROOT && matches!(member.plan.rank, Rank::Released(_)));
        self.len() - before.map(|member| member.depth.packets).sum::<u64>()
    }

    /// Returns whether this is the classic generation.
    pub fn is_classic(&self) -> bool {
        self.classic
    }

    /// Returns whether shapers release packets even if the transmit ring is full.
    #[inline]
    pub fn releases_apart(&self) -> bool {
        self.apart
    }

    /// Returns whether [`take_refused`](Self::take_refused) has something to return.
    #[inline]
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Sets the limit of the hold-queue. A queue that exceeds a new limit drains by itself.
    pub fn set_hold(&mut self, hold: Option<u32>) {
        self.hold = hold.map(u64::from);
    }

    /// Sets the rate of the line.
    pub fn set_rate(&mut self, rate: Rate) {
        for number in 0..self.leaves.len() {
            let shapes = self.line(NodeId::Leaf(LeafId(number))).filter_map(|node| self.member(node).plan.shape);
            let fastest = tree::slowest_shaper(rate, shapes);
            if let Some(red) = &mut self.leaves[number].random_detect {
                red.set_rate(fastest);
            }
        }
    }

    /// Returns the conversations with packets: now, and at most at the same time.
    pub fn conversations(&self) -> (u32, u32) {
        (self.active, self.max_active)
    }

    /// Returns the conversations with packets in the interface's own number space.
    pub fn waiting_conversations(&self) -> impl Iterator<Item = Waiting<'_, P>> {
        self.leaves.iter().filter(|leaf| leaf.numbered).flat_map(|leaf| leaf.queue.waiting())
    }

    #[inline]
    fn member(&self, node: NodeId) -> &Member {
        match node {
            NodeId::Leaf(leaf) => &self.leaves[leaf.0].member,
            NodeId::Inner(inner) => &self.inners[inner.0].member,
        }
    }

    #[inline]
    fn member_mut(&mut self, node: NodeId) -> &mut Member {
        match node {
            NodeId::Leaf(leaf) => &mut self.leaves[leaf.0].member,
            NodeId::Inner(inner) => &mut self.inners[inner.0].member,
        }
    }

    /// Returns the node and those above it, the root last.
    fn line(&self, from: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let parent = |node: &NodeId| (*node != NodeId::ROOT).then(|| NodeId::Inner(self.member(*node).parent));
        std::iter::successors(Some(from), parent)
    }

    /// Removes all packets, regardless of shapers; queue by queue, each in its order. The scheduler must not be used
    /// afterwards.
    pub fn drain(&mut self) -> Vec<Item<P>> {
        let mut items = Vec::with_capacity(self.len() as usize);
        for leaf in (0..self.leaves.len()).map(LeafId) {
            let first = items.len();
            let queue = &mut self.leaves[leaf.0].queue;
            items.extend(std::iter::from_fn(|| queue.dequeue(|item| item)));
            for item in &items[first..] {
                self.uncount(leaf, item.descriptor.counted_len);
            }
            self.recount(leaf);
            self.settle(NodeId::Leaf(leaf));
        }
        items
    }

    pub fn clear_counters(&mut self) {
        self.max_active = self.active;
        let inners = self.inners.iter_mut().map(|inner| &mut inner.member);
        for member in self.leaves.iter_mut().map(|leaf| &mut leaf.member).chain(inners) {
            member.output = Count::default();
            member.delayed = Count::default();
        }
        for leaf in &mut self.leaves {
            leaf.drops = Count::default();
            leaf.queue.clear_drops();
            if let Some(red) = &mut leaf.random_detect {
                red.clear();
            }
        }
    }
}
