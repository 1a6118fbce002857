//! The nodes of a scheduler's tree: queues, and the choices between them.

use crate::counters::count::Count;
use crate::plan::queue::RandomDetectPlan;
use crate::plan::tree::{self, BodyPlan, NodePlan, Rank, PRIORITY_LEVELS};
use crate::queueing::discipline::Discipline;
use crate::queueing::queue::Queue;
use crate::queueing::random_detect::RandomDetect;
use crate::queueing::shaper::Shaper;
use crate::queueing::winner_tree::WinnerTree;
use crate::time::{Rate, Time};

/// A node of the tree.
#[derive(Debug)]
pub(crate) struct Node<P> {
    pub plan: NodePlan,
    /// Its number among its parent's children.
    pub(super) child: usize,
    /// How far below the root.
    pub(super) level: u8,
    pub(super) body: Body<P>,
    pub shaper: Option<Shaper>,
    /// It or a node above it has a shaper.
    pub(super) shaped: bool,
    pub(super) timer: usize,
    /// Its key among its siblings while it may send.
    pub(super) key: Option<u128>,
    /// Virtual time (sequence number) at which the last packet served from here ended.
    pub(super) finish: u128,
    /// Bytes of the present turn, where turns are taken.
    pub(super) used: u64,
    /// Sequence numbers are those of its packets.
    pub(super) numbered: bool,
    /// Of its queue, the conversations with packets, as far as the scheduler has counted them.
    pub(super) active: u32,
    pub depth: Count,
    /// What left.
    pub output: Count,
    /// What of that had waited for the shaper.
    pub delayed: Count,
    /// What the queue dropped.
    pub drops: Count,
}

#[derive(Debug)]
pub(super) enum Body<P> {
    Leaf { queue: Queue<P>, random_detect: Option<RandomDetect> },
    Inner(Inner),
}

impl<P> Body<P> {
    /// Of the node of that number in `plans`.
    pub fn new(
        index: usize,
        plans: &[NodePlan],
        (children, urgent): (Vec<usize>, bool),
        seed: u64,
        (rate, now): (Rate, Time),
    ) -> Body<P> {
        match &plans[index].body {
            BodyPlan::Leaf { queue, random_detect } => {
                let detect = |plan: &RandomDetectPlan| {
                    let rate = tree::rate_of(plans, index, rate);
                    RandomDetect::new(plan.clone(), seed.wrapping_add(index as u64), rate, now)
                };
                Body::Leaf { queue: Queue::of(queue, seed), random_detect: random_detect.as_ref().map(detect) }
            }
            BodyPlan::Inner { .. } => {
                let mut priority = [None; PRIORITY_LEVELS];
                for child in &children {
                    if let Rank::Priority(level) = plans[*child].rank {
                        priority[level] = Some(*child);
                    }
                }
                Body::Inner(Inner {
                    contest: WinnerTree::new(children.len()),
                    propagated: urgent.then(|| Box::new(Propagated::new(children.len()))),
                    children,
                    priority,
                    priority_ready: [false; PRIORITY_LEVELS],
                    virtual_time: 0,
                })
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Inner {
    pub children: Vec<usize>,
    /// Children without priority that may send, by virtual start time or sequence number.
    pub contest: WinnerTree<u128>,
    pub priority: [Option<usize>; PRIORITY_LEVELS],
    pub priority_ready: [bool; PRIORITY_LEVELS],
    pub propagated: Option<Box<Propagated>>,
    /// Start time, or sequence number, of the packet served last.
    pub virtual_time: u128,
}

/// Children below which packets with priority may be sent: by level, in the order in which they came to it.
#[derive(Debug)]
pub(super) struct Propagated {
    waiting: [WinnerTree<u64>; PRIORITY_LEVELS],
    /// The next place in that order.
    next: u64,
}

impl Propagated {
    fn new(children: usize) -> Propagated {
        Propagated { waiting: std::array::from_fn(|_| WinnerTree::new(children)), next: 0 }
    }

    /// A child's next packet has that priority, or none; it keeps its place.
    pub fn set(&mut self, child: usize, urgent: Option<usize>) {
        for (level, waiting) in self.waiting.iter_mut().enumerate() {
            if urgent != Some(level) {
                waiting.set(child, WinnerTree::<u64>::NONE);
            } else if waiting.key(child) == WinnerTree::<u64>::NONE {
                waiting.set(child, self.next);
                self.next += 1;
            }
        }
    }
}

impl Inner {
    /// The child to serve next.
    pub fn next(&self) -> Option<usize> {
        if self.priority_ready == [false; PRIORITY_LEVELS] && self.propagated.is_none() {
            return Some(self.children[self.contest.least()?]);
        }
        match self.urgent() {
            Some((_, child)) => Some(child),
            None => Some(self.children[self.contest.least()?]),
        }
    }

    /// The highest priority of a packet that may be sent, and the child to serve for it: at the same level its own
    /// before that of others' classes.
    pub fn urgent(&self) -> Option<(usize, usize)> {
        (0..PRIORITY_LEVELS).find_map(|level| {
            if self.priority_ready[level] {
                return Some((level, self.priority[level]?));
            }
            let child = self.propagated.as_ref()?.waiting[level].least()?;
            Some((level, self.children[child]))
        })
    }
}

impl<P> Node<P> {
    pub fn queue(&self) -> Option<&Queue<P>> {
        match &self.body {
            Body::Leaf { queue, .. } => Some(queue),
            Body::Inner(_) => None,
        }
    }

    pub fn random_detect(&self) -> Option<&RandomDetect> {
        match &self.body {
            Body::Leaf { random_detect, .. } => random_detect.as_ref(),
            Body::Inner(_) => None,
        }
    }

    /// Flow queues with packets; a queue without flows counts as one.
    pub(super) fn conversations(&self) -> u32 {
        match self.queue().and_then(Discipline::<P>::flows) {
            Some((active, _)) => active,
            None => u32::from(self.depth.packets > 0),
        }
    }
}
