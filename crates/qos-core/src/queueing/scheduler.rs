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

use crate::config::defaults;
use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::plan::queue::RandomDetectPlan;
use crate::plan::tree::{self, BodyPlan, NodePlan, Rank, Sharing, PRIORITY_LEVELS, ROOT};
use crate::queueing::discipline::{Discipline, Enqueued, Item};
use crate::queueing::queue::Queue;
use crate::queueing::random_detect::RandomDetect;
use crate::queueing::shaper::Shaper;
use crate::queueing::turns;
use crate::queueing::weighted_fair::{self, Place, WeightedFair};
use crate::queueing::winner_tree::WinnerTree;
use crate::time::{Rate, Time};

/// Virtual time of a byte at weight 1: so large that dividing it by a weight loses less than a millionth.
const BYTE: u128 = 1 << 60;

/// A node of the tree.
#[derive(Debug)]
pub(crate) struct Node<P> {
    pub plan: NodePlan,
    /// Its number among its parent's children.
    child: usize,
    /// How far below the root.
    level: u8,
    body: Body<P>,
    pub shaper: Option<Shaper>,
    timer: usize,
    /// Its key among its siblings while it may send.
    key: Option<u128>,
    /// Virtual time (sequence number) at which the last packet served from here ended.
    finish: u128,
    /// Bytes of the present turn, where turns are taken.
    used: u64,
    /// Sequence numbers are those of its packets.
    numbered: bool,
    pub depth: Count,
    /// What left.
    pub output: Count,
    /// What of that had waited for the shaper.
    pub delayed: Count,
    /// What the queue dropped.
    pub drops: Count,
}

#[derive(Debug)]
enum Body<P> {
    Leaf { queue: Queue<P>, random_detect: Option<RandomDetect> },
    Inner(Inner),
}

impl<P> Body<P> {
    /// Of the node of that number in `plans`.
    fn new(
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
struct Inner {
    children: Vec<usize>,
    /// Children without priority that may send, by virtual start time or sequence number.
    contest: WinnerTree<u128>,
    priority: [Option<usize>; PRIORITY_LEVELS],
    priority_ready: [bool; PRIORITY_LEVELS],
    propagated: Option<Box<Propagated>>,
    /// Start time, or sequence number, of the packet served last.
    virtual_time: u128,
}

/// Children below which packets with priority may be sent: by level, in the order in which they came to it.
#[derive(Debug)]
struct Propagated {
    waiting: [WinnerTree<u64>; PRIORITY_LEVELS],
    /// The next place in that order.
    next: u64,
}

impl Propagated {
    fn new(children: usize) -> Propagated {
        Propagated { waiting: std::array::from_fn(|_| WinnerTree::new(children)), next: 0 }
    }

    /// A child's next packet has that priority, or none; it keeps its place.
    fn set(&mut self, child: usize, urgent: Option<usize>) {
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
    fn next(&self) -> Option<usize> {
        match self.urgent() {
            Some((_, child)) => Some(child),
            None => Some(self.children[self.contest.least()?]),
        }
    }

    /// The highest priority of a packet that may be sent, and the child to serve for it: at the same level its own
    /// before that of others' classes.
    fn urgent(&self) -> Option<(usize, usize)> {
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
    fn active(&self) -> u32 {
        match self.queue().and_then(Discipline::<P>::flows) {
            Some((active, _)) => active,
            None => u32::from(self.depth.packets > 0),
        }
    }
}

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
                shaper: plan.shape.map(|shape| Shaper::new(shape, now)),
                timer,
                key: None,
                finish: 0,
                used: 0,
                numbered,
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

    /// Brings the shapers of a node and above it up to `now`. Call before anything changes there.
    fn touch(&mut self, from: usize, now: Time) {
        if self.shaped.is_empty() {
            return;
        }
        let mut at = Some(from);
        while let Some(node) = at {
            if self.nodes[node].shaper.is_some() {
                let head = self.head(node).map(|head| head.counted_len);
                if let Some(shaper) = &mut self.nodes[node].shaper {
                    shaper.advance(now, head);
                }
            }
            at = self.parent(node);
        }
    }

    /// Decides whether a node may send, and tells its parent or sets its timer.
    fn contend(&mut self, node: usize) {
        if node == ROOT && self.nodes[ROOT].shaper.is_none() {
            return;
        }
        let head = self.head(node).map(|head| (head.counted_len, weighted_fair::weight(head)));
        let this = &self.nodes[node];
        let mut ready = head;
        if let (Some((bytes, _)), Some(shaper)) = (head, &this.shaper) {
            let release = shaper.release(bytes);
            let timer = this.timer;
            if release.is_some() {
                ready = None;
            }
            // What may go now to a queue behind the shaper does so at once: `expire`.
            let now = matches!(this.plan.rank, Rank::Released(_)).then_some(Time(0));
            let release = release.or(now);
            self.timers.set(timer, release.map_or(WinnerTree::<u64>::NONE, |time| time.0.min(u64::MAX - 1)));
        } else if this.shaper.is_some() {
            let timer = this.timer;
            self.timers.set(timer, WinnerTree::<u64>::NONE);
        }
        if node == ROOT {
            return;
        }
        let this = &self.nodes[node];
        let (parent, child) = (this.plan.parent, this.child);
        match this.plan.rank {
            Rank::Priority(level) => {
                self.inner(parent).priority_ready[level] = ready.is_some();
                return;
            }
            Rank::Released(_) => return,
            Rank::Weight(_) | Rank::Factor(_) | Rank::Strict(_) | Rank::Turn(_) => {}
        }
        if self.propagates {
            self.propagate(node, ready.is_some());
        }
        let this = &self.nodes[node];
        let key = match ready {
            None => None,
            Some(_) if this.numbered => match &this.body {
                Body::Leaf { queue, .. } => queue.lowest().map(u128::from),
                Body::Inner(_) => None,
            },
            Some((bytes, by_precedence)) => Some(match (this.key, this.plan.rank) {
                (Some(key), _) => key,
                (None, Rank::Factor(factor)) => {
                    let (finish, factor) = (this.finish, factor.unwrap_or(by_precedence));
                    finish.max(self.inner(parent).virtual_time) + u128::from(bytes) * u128::from(factor)
                }
                (None, Rank::Strict(number)) => turns::strict(number),
                (None, Rank::Turn(turn)) => turns::joins(turn, self.virtual_time(parent), this.finish),
                (None, _) => this.finish.max(self.virtual_time(parent)),
            }),
        };
        self.nodes[node].key = key;
        self.inner(parent).contest.set(child, key.unwrap_or(WinnerTree::<u128>::NONE));
    }

    /// Tells the parent of the priority that a node's next packet has, if it may send.
    fn propagate(&mut self, node: usize, ready: bool) {
        let this = &self.nodes[node];
        let (parent, child) = (this.plan.parent, this.child);
        let urgent = match &this.body {
            Body::Inner(inner) if ready => inner.urgent().map(|(level, _)| level),
            _ => None,
        };
        if let Some(propagated) = &mut self.inner(parent).propagated {
            propagated.set(child, urgent);
        }
    }

    /// Brings a node and those above it up to date with a change below it.
    fn settle(&mut self, from: usize) {
        let mut at = Some(from);
        while let Some(node) = at {
            self.contend(node);
            at = self.parent(node);
        }
    }

    /// Keeps what is known of a leaf's conversations; `before` of them had packets.
    fn recount(&mut self, leaf: usize, before: u32) {
        let node = &self.nodes[leaf];
        self.active = self.active + node.active() - before;
        self.max_active = self.max_active.max(self.active);
        if node.numbered && self.hold.is_some() {
            let highest = node.queue().and_then(Queue::highest);
            let key = highest.map_or(WinnerTree::<u64>::NONE, |number| WinnerTree::<u64>::NONE - 1 - number);
            self.tails.set(leaf, key);
        }
    }

    /// Whether a packet of `bytes` could leave a queue at `now` if the ring had room: no shaper holds it.
    pub fn passes(&mut self, now: Time, leaf: usize, bytes: u32) -> bool {
        self.touch(leaf, now);
        self.line(leaf).all(|node| self.nodes[node].shaper.as_ref().is_none_or(|shaper| shaper.allows(bytes)))
    }

    /// What random early detection says of a packet; none where it may join. A packet that goes `straight` to the
    /// transmit ring never meets the software queue of the classic generation, nor its early detection; the later
    /// generation asks early detection before anything else.
    fn detect(&mut self, now: Time, leaf: usize, descriptor: &mut Descriptor, straight: bool) -> Option<DropReason> {
        let depth = self.nodes[leaf].depth.packets;
        let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body else { return None };
        if depth == 0 {
            red.age(now);
        }
        if straight && self.classic {
            return None;
        }
        red.arrive(depth, descriptor)
    }

    /// A packet joins a queue; `straight`: it does so only to go on to the transmit ring at once.
    pub fn enqueue(&mut self, now: Time, leaf: usize, mut item: Item<P>, straight: bool) -> Enqueued<P> {
        self.touch(leaf, now);
        let bytes = item.bytes();
        let before = self.nodes[leaf].active();
        let depth = self.nodes[leaf].depth.packets;
        if let Some(reason) = self.detect(now, leaf, &mut item.descriptor, straight) {
            self.nodes[leaf].drops.add(bytes);
            return Enqueued::Refused(item, reason);
        }
        if self.nodes[leaf].numbered {
            let parent = self.nodes[leaf].plan.parent;
            let served = self.inner(parent).virtual_time as u64;
            self.queue(leaf).set_served(served);
        }
        // A shaper with packets waiting is active, and every packet waits.
        if !self.shaped.is_empty() {
            for node in self.line(leaf) {
                let node = &self.nodes[node];
                if node.shaper.as_ref().is_some_and(|shaper| node.depth.packets > 0 || !shaper.allows(bytes)) {
                    item.delayed |= 1 << node.level;
                }
            }
        }
        // Spelt out, since a packet that is handed from function to function is copied each time.
        let enqueued = if self.nodes[leaf].numbered {
            match self.make_room(leaf, &item.descriptor) {
                Err(reason) => return self.refused(leaf, item, reason),
                Ok((place, displaced)) => {
                    self.weighted(leaf).insert(place, item);
                    displaced.map_or(Enqueued::Queued, |other| Enqueued::Displaced(other, DropReason::Tail))
                }
            }
        } else {
            match self.queue(leaf).enqueue(item) {
                Enqueued::Refused(item, reason) => return self.refused(leaf, item, reason),
                Enqueued::Queued => Enqueued::Queued,
                Enqueued::Displaced(other, reason) => {
                    self.lose(leaf, &other);
                    Enqueued::Displaced(other, reason)
                }
            }
        };
        self.joined(leaf, bytes, before);
        // Behind others it changes nothing for those above, unless it may overtake them.
        if depth == 0 || matches!(self.nodes[leaf].queue(), Some(Queue::WeightedFair(_))) {
            self.settle(leaf);
        }
        if self.releases_apart() {
            self.expire(now);
        }
        enqueued
    }

    /// Counts a packet that has joined a queue, where `before` conversations had packets.
    fn joined(&mut self, leaf: usize, bytes: u32, before: u32) {
        let mut at = Some(leaf);
        while let Some(node) = at {
            self.nodes[node].depth.add(bytes);
            at = self.parent(node);
        }
        self.held += u64::from(self.nodes[leaf].numbered);
        self.recount(leaf, before);
    }

    fn refused(&mut self, leaf: usize, item: Item<P>, reason: DropReason) -> Enqueued<P> {
        self.nodes[leaf].drops.add(item.bytes());
        if let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body {
            red.overflowed(&item.descriptor);
        }
        Enqueued::Refused(item, reason)
    }

    /// Asks the congestive discard. Where the hold-queue is full: removes the packet with the highest sequence number
    /// of all, unless it is the new one.
    fn make_room(&mut self, leaf: usize, descriptor: &Descriptor) -> Result<(Place, Option<Item<P>>), DropReason> {
        let mut place = self.weighted(leaf).place(descriptor)?;
        if self.hold.is_none_or(|hold| self.held < hold) {
            return Ok((place, None));
        }
        let Some(last) = self.tails.least() else { return Err(DropReason::Tail) };
        if self.nodes[last].queue().and_then(Queue::highest) <= Some(place.number) {
            return Err(DropReason::Tail);
        }
        let before = self.nodes[last].active();
        let Some(other) = self.queue(last).discard() else { return Err(DropReason::Tail) };
        self.lose(last, &other);
        if last == leaf {
            // It may have been of the same conversation.
            place = self.weighted(leaf).next(descriptor);
        } else {
            self.recount(last, before);
            self.settle(last);
        }
        Ok((place, Some(other)))
    }

    /// A packet that waited in a queue was removed to make room.
    fn lose(&mut self, leaf: usize, item: &Item<P>) {
        self.nodes[leaf].drops.add(item.bytes());
        if let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body {
            red.overflowed(&item.descriptor);
        }
        self.uncount(leaf, item.bytes());
    }

    fn uncount(&mut self, leaf: usize, bytes: u32) {
        self.held -= u64::from(self.nodes[leaf].numbered);
        let mut at = Some(leaf);
        while let Some(node) = at {
            let depth = &mut self.nodes[node].depth;
            depth.packets -= 1;
            depth.bytes -= u64::from(bytes);
            at = self.parent(node);
        }
    }

    /// Lets nodes take part again whose shapers have waited long enough, and packets join the queues behind them.
    pub fn expire(&mut self, now: Time) {
        while let Some(timer) = self.timers.least().filter(|timer| self.timers.key(*timer) <= now.0) {
            let node = self.shaped[timer];
            self.touch(node, now);
            if let Rank::Released(queue) = self.nodes[node].plan.rank {
                self.release(now, node, queue);
            }
            self.settle(node);
        }
    }

    /// Lets go what a shaper has credit for. It joins the queue behind the shaper; what that does not take is kept for
    /// [`take_refused`](Self::take_refused).
    fn release(&mut self, now: Time, node: usize, queue: usize) {
        while let Some(bytes) = self.head(node).map(|head| head.counted_len) {
            if !self.nodes[node].shaper.as_ref().is_some_and(|shaper| shaper.allows(bytes)) {
                return;
            }
            let Some(item) = self.leave_queue(now, node) else { return };
            let before = self.nodes[queue].active();
            let parent = self.nodes[queue].plan.parent;
            let served = self.inner(parent).virtual_time as u64;
            self.queue(queue).set_served(served);
            match self.make_room(queue, &item.descriptor) {
                Ok((place, displaced)) => {
                    self.weighted(queue).insert(place, item);
                    self.refused.extend(displaced.map(|item| (now, item)));
                }
                Err(_) => {
                    self.nodes[queue].drops.add(bytes);
                    self.refused.push((now, item));
                    continue;
                }
            }
            self.joined(queue, bytes, before);
            self.settle(queue);
        }
    }

    /// A packet that a shaper had let go and that the queue behind it did not take, and when. To be asked for after
    /// whatever lets time pass.
    pub fn take_refused(&mut self) -> Option<(Time, Item<P>)> {
        self.refused.pop()
    }

    /// The next packet that may leave at `now`, if any.
    pub fn dequeue(&mut self, now: Time) -> Option<Item<P>> {
        if self.len() == 0 {
            return None;
        }
        if !self.shaped.is_empty() {
            self.expire(now);
        }
        self.leave_queue(now, ROOT)
    }

    /// The next packet below a node leaves its queue, and all nodes from there up to this one. In line: else the packet
    /// is copied once more.
    #[inline(always)]
    fn leave_queue(&mut self, now: Time, top: usize) -> Option<Item<P>> {
        let mut leaf = top;
        while let Body::Inner(inner) = &self.nodes[leaf].body {
            leaf = inner.next()?;
        }
        self.touch(leaf, now);
        let before = self.nodes[leaf].active();
        let item = self.queue(leaf).dequeue()?;
        let bytes = item.bytes();
        self.uncount(leaf, bytes);
        self.recount(leaf, before);
        let depth = self.nodes[leaf].depth.packets;
        if let Body::Leaf { random_detect: Some(red), .. } = &mut self.nodes[leaf].body {
            red.transmitted(&item.descriptor);
            if depth == 0 {
                red.emptied(now);
            }
        }
        let urgent = self.propagates && matches!(self.nodes[leaf].plan.rank, Rank::Priority(_));
        let mut at = Some(leaf);
        while let Some(node) = at {
            self.leave(node, &item, urgent);
            at = self.parent(node).filter(|_| node != top);
        }
        Some(item)
    }

    /// A packet that waited below a node leaves it; an `urgent` one takes nothing of what its class shares with others.
    #[inline(always)]
    fn leave(&mut self, node: usize, item: &Item<P>, urgent: bool) {
        let bytes = item.bytes();
        let emptied = self.nodes[node].shaper.is_some() && self.head(node).is_none();
        let this = &mut self.nodes[node];
        this.output.add(bytes);
        if item.delayed & (1 << this.level) != 0 {
            this.delayed.add(bytes);
        }
        if let Some(shaper) = &mut this.shaper {
            shaper.take(bytes, emptied);
        }
        if node == ROOT {
            return;
        }
        let (parent, child) = (this.plan.parent, this.child);
        if urgent {
            // It goes behind its siblings with priority.
            if let Some(propagated) = &mut self.inner(parent).propagated {
                propagated.set(child, None);
            }
        } else if let Some(key) = this.key.take() {
            this.finish = match this.plan.rank {
                Rank::Weight(weight) => key + u128::from(bytes) * (BYTE / u128::from(weight)),
                Rank::Factor(_) | Rank::Priority(_) | Rank::Released(_) => key,
                Rank::Turn(turn) => {
                    let (next, used) = turns::after(turn, key, this.used, bytes, this.depth.packets == 0);
                    this.used = used;
                    next
                }
                Rank::Strict(_) => 0,
            };
            // A queue that is served ahead of the others takes nobody's turn.
            if !matches!(this.plan.rank, Rank::Strict(_)) {
                self.inner(parent).virtual_time = key;
            }
        }
        self.contend(node);
    }

    /// When a shaper will next let a packet go, and which. Meaningful after a `dequeue` that gave nothing.
    pub fn next_release(&self) -> Option<(Time, &Descriptor)> {
        let timer = self.timers.least()?;
        Some((Time(self.timers.key(timer)), self.head(self.shaped[timer])?))
    }

    /// Removes all packets, whatever the shapers say; queue by queue, each in its order. Nothing else must be done with
    /// the scheduler then.
    pub fn drain(&mut self) -> Vec<Item<P>> {
        let mut items = Vec::with_capacity(self.len() as usize);
        for node in 0..self.nodes.len() {
            let before = self.nodes[node].active();
            let Body::Leaf { queue, .. } = &mut self.nodes[node].body else { continue };
            let first = items.len();
            items.extend(std::iter::from_fn(|| queue.dequeue()));
            for item in &items[first..] {
                self.uncount(node, item.descriptor.counted_len);
            }
            self.recount(node, before);
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

    /// Checks what is counted against what is there.
    pub fn audit(&self) -> Result<(), String> {
        let mut depth = vec![Count::default(); self.nodes.len()];
        let (mut active, mut held) = (0, 0);
        for (leaf, node) in self.nodes.iter().enumerate() {
            let Some(queue) = node.queue() else { continue };
            active += node.active();
            held += if node.numbered { node.depth.packets } else { 0 };
            let found = queue.items().fold(Count::default(), |mut sum, item| {
                sum.add(item.bytes());
                sum
            });
            if found != queue.depth() {
                return Err(format!("{found:?} are in a queue, {:?} are counted", queue.depth()));
            }
            self.line(leaf).for_each(|node| depth[node] = depth[node].plus(found));
        }
        if let Some((node, found)) = self.nodes.iter().zip(depth).find(|(node, found)| node.depth != *found) {
            return Err(format!("{found:?} are in a class, {:?} are counted", node.depth));
        }
        if (active, held) != (self.active, self.held) {
            return Err(format!(
                "{active} conversations have {held} packets, counted are {} and {}",
                self.active, self.held
            ));
        }
        Ok(())
    }
}
