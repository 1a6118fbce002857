//! The interface's queueing: the queues in front of the transmit ring, and which of them is served next.
//!
//! The queues are the leaves of a tree ([`crate::plan::tree`]). At each inner node priority comes first, in the later
//! generation that of classes further down too. The others share
//!
//! - by weight: start-time fair queueing (Goyal, Vin and Cheng, 1996) over counted bytes. Whenever two children both
//!   have packets, what they get in proportion to their weights differs by at most a packet of each.
//! - or by sequence number, as classic weighted fair queueing does: the conversations of the interface's own fair
//!   queueing, those of class-default, and the classes, each a conversation, are in one space of numbers.
//! - or by number and in turn: priority and custom queueing ([`crate::queueing::turns`]).
//!
//! A node with a shaper takes part while the shaper lets its next packet go. A shaper of the classic generation stands
//! before the interface's queues instead: what it lets go at the end of an interval joins one of them at once, whether
//! or not the line has time for it. Nothing is searched: changes go up from a leaf to the root, through a tournament at
//! each level, so that a packet costs the logarithm of the number of classes.

mod admission;
mod audit;
mod contest;
mod departure;
mod node;
mod release;

pub(crate) use node::Node;

use crate::config::defaults;
use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::plan::tree::{self, BodyPlan, NodePlan, Rank, Sharing, ROOT};
use crate::queueing::discipline::{Discipline, Item};
use crate::queueing::queue::Queue;
use crate::queueing::shaper::Shaper;
use crate::queueing::weighted_fair::WeightedFair;
use crate::queueing::winner_tree::WinnerTree;
use crate::time::{Rate, Time};
use node::{Body, Inner};

/// Which inner nodes have a class with priority below one of their children.
fn propagating(plans: &[NodePlan]) -> Vec<bool> {
    let mut found = vec![false; plans.len()];
    let weighted = |node: usize| matches!(plans[node].body, BodyPlan::Inner { sharing: Sharing::Weighted, .. });
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

/// All queues of an interface.
#[derive(Debug)]
pub(crate) struct Scheduler<P> {
    nodes: Vec<Node<P>>,
    /// When shapers let the next packet go, by timer.
    timers: WinnerTree<u64>,
    /// The node up to whose shapers, and the time up to which, credit was counted last.
    touched: (usize, Time),
    /// The nodes of the timers.
    shaped: Vec<usize>,
    /// The classic hold-queue: most packets of all conversations, and how many there are.
    hold: Option<u64>,
    held: u64,
    /// A class further down than its parent's children has priority, which counts there too.
    propagates: bool,
    /// Of the classic generation.
    classic: bool,
    /// Leaves by the highest sequence number, negated: the least is the first to be discarded.
    tails: WinnerTree<u64>,
    active: u32,
    max_active: u32,
    /// Some shaper stands before the interface's queues.
    apart: bool,
    /// What shapers had let go and the queues behind them did not take, and when.
    refused: Vec<(Time, Item<P>)>,
}

impl<P> Scheduler<P> {
    /// `plans` is a tree with its root first; `hold` limits the conversations of a classic interface; `rate` is the
    /// line's.
    pub fn new(plans: &[NodePlan], hold: Option<u32>, seed: u64, rate: Rate, now: Time) -> Scheduler<P> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); plans.len()];
        for (index, plan) in plans.iter().enumerate().skip(1) {
            children[plan.parent].push(index);
        }
        let urgent = propagating(plans);
        let mut shaped = Vec::new();
        let mut nodes: Vec<Node<P>> = Vec::with_capacity(plans.len());
        for (index, plan) in plans.iter().enumerate() {
            let body =
                Body::new(index, plans, (std::mem::take(&mut children[index]), urgent[index]), seed, (rate, now));
            let timer = shaped.len();
            if plan.shape.is_some() {
                shaped.push(index);
            }
            let classic = matches!(plans[plan.parent].body, BodyPlan::Inner { sharing: Sharing::Sequence, .. });
            let numbered = classic
                && plan.shape.is_none()
                && matches!(&body, Body::Leaf { queue: Queue::WeightedFair(_), .. })
                && index != ROOT;
            let siblings = match nodes.get(plan.parent).map(|parent| &parent.body) {
                Some(Body::Inner(inner)) => inner.children.iter().position(|child| *child == index),
                _ => None,
            };
            nodes.push(Node {
                child: siblings.unwrap_or(0),
                level: nodes.get(plan.parent).filter(|_| index != ROOT).map_or(0, |parent| parent.level + 1),
                plan: plan.clone(),
                body,
                shaped: plan.shape.is_some() || nodes.get(plan.parent).is_some_and(|parent| parent.shaped),
                shaper: plan.shape.map(|shape| Shaper::new(shape, now)),
                timer,
                key: None,
                finish: 0,
                used: 0,
                numbered,
                active: 0,
                depth: Count::default(),
                output: Count::default(),
                delayed: Count::default(),
                drops: Count::default(),
            });
        }
        Scheduler {
            timers: WinnerTree::new(shaped.len()),
            tails: WinnerTree::new(if hold.is_some() { nodes.len() } else { 0 }),
            nodes,
            touched: (ROOT, Time(0)),
            shaped,
            hold: hold.map(u64::from),
            held: 0,
            propagates: urgent.contains(&true),
            classic: matches!(plans[ROOT].body, BodyPlan::Inner { sharing: Sharing::Sequence, .. }),
            active: 0,
            max_active: 0,
            apart: plans.iter().any(|plan| matches!(plan.rank, Rank::Released(_))),
            refused: Vec::new(),
        }
    }

    pub fn nodes(&self) -> &[Node<P>] {
        &self.nodes
    }

    pub fn queues(&self) -> impl Iterator<Item = &Queue<P>> {
        self.nodes.iter().filter_map(Node::queue)
    }

    /// Packets that wait.
    pub fn len(&self) -> u64 {
        self.nodes[ROOT].depth.packets
    }

    /// Packets that wait for the line, and not for a shaper that stands before the interface's queues.
    pub fn depth(&self) -> u64 {
        let shaped = self.shaped.iter().map(|node| &self.nodes[*node]);
        let before = shaped.filter(|node| node.plan.parent == ROOT && matches!(node.plan.rank, Rank::Released(_)));
        self.len() - before.map(|node| node.depth.packets).sum::<u64>()
    }

    /// Whether shapers let packets go whether or not there is room in the transmit ring.
    #[inline]
    pub fn releases_apart(&self) -> bool {
        self.apart
    }

    /// Whether there is something for [`take_refused`](Self::take_refused).
    #[inline]
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// A hold-queue that holds more than a new limit empties by itself.
    pub fn set_hold(&mut self, hold: Option<u32>) {
        if self.hold.is_some() && hold.is_some() {
            self.hold = hold.map(u64::from);
        }
    }

    /// The line has another rate.
    pub fn set_rate(&mut self, rate: Rate) {
        for index in 0..self.nodes.len() {
            let shapes = self.line(index).filter_map(|node| self.nodes[node].plan.shape);
            let fastest = tree::slowest(rate, shapes);
            if let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[index].body {
                red.set_rate(fastest);
            }
        }
    }

    /// Conversations with packets: now, and at most at the same time.
    pub fn conversations(&self) -> (u32, u32) {
        (self.active, self.max_active)
    }

    /// The packet that a node would send.
    fn head(&self, mut node: usize) -> Option<&Descriptor> {
        loop {
            match &self.nodes[node].body {
                Body::Leaf { queue, .. } => return queue.head(),
                Body::Inner(inner) => node = inner.next()?,
            }
        }
    }

    fn queue(&mut self, leaf: usize) -> &mut Queue<P> {
        match &mut self.nodes[leaf].body {
            Body::Leaf { queue, .. } => queue,
            Body::Inner(_) => unreachable!("packets join leaves"),
        }
    }

    /// The queue of a leaf with sequence numbers.
    fn weighted(&mut self, leaf: usize) -> &mut WeightedFair<P> {
        self.queue(leaf).weighted().expect("only weighted fair queueing gives numbers")
    }

    fn inner(&mut self, node: usize) -> &mut Inner {
        match &mut self.nodes[node].body {
            Body::Inner(inner) => inner,
            Body::Leaf { .. } => unreachable!("a parent is an inner node"),
        }
    }

    /// Start time, or sequence number, of the packet served last below a node.
    fn virtual_time(&self, node: usize) -> u128 {
        match &self.nodes[node].body {
            Body::Inner(inner) => inner.virtual_time,
            Body::Leaf { .. } => 0,
        }
    }

    /// The node above; none above the root.
    fn parent(&self, node: usize) -> Option<usize> {
        (node != ROOT).then(|| self.nodes[node].plan.parent)
    }

    /// The node and those above it, the root last.
    fn line(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(from), |node| self.parent(*node))
    }

    /// Removes all packets, whatever the shapers say; queue by queue, each in its order. Nothing else must be done with
    /// the scheduler then.
    pub fn drain(&mut self) -> Vec<Item<P>> {
        let mut items = Vec::with_capacity(self.len() as usize);
        for node in 0..self.nodes.len() {
            let Body::Leaf { queue, .. } = &mut self.nodes[node].body else { continue };
            let first = items.len();
            items.extend(std::iter::from_fn(|| queue.dequeue()));
            for item in &items[first..] {
                self.uncount(node, item.descriptor.counted_len);
            }
            self.recount(node);
            self.settle(node);
        }
        items
    }

    pub fn clear_counters(&mut self) {
        self.max_active = self.active;
        for node in &mut self.nodes {
            node.output = Count::default();
            node.delayed = Count::default();
            node.drops = Count::default();
            if let Body::Leaf { random_detect: Some(red), .. } = &mut node.body {
                red.clear();
            }
        }
    }
}
