//! The nodes of a scheduler's tree: queues, and the choices between them. Each kind has a separate arena and index
//! type, so that a packet can join only a queue, and only a choice can be above a node.

use crate::config::defaults;
use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::plan::queue::RandomDetectPlan;
use crate::plan::tree::{self, NodePlan, Rank, PRIORITY_LEVELS};
use crate::queueing::discipline::Discipline;
use crate::queueing::queue::Queue;
use crate::queueing::random_detect::RandomDetect;
use crate::queueing::shaper::Shaper;
use crate::queueing::{turns, weighted_fair};
use crate::time::{Rate, Time};
use crate::winner_tree::WinnerTree;

/// Virtual time of a byte of a queue with weight 1.
const BYTE: u64 = 1 << 60;

/// A queue, by its number among the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafId(pub usize);

/// A choice between nodes, by its number among the choices. The number of a parent is lower than those of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InnerId(pub usize);

impl InnerId {
    /// The interface.
    pub const ROOT: InnerId = InnerId(0);
}

/// A node of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeId {
    Leaf(LeafId),
    Inner(InnerId),
}

impl NodeId {
    pub const ROOT: NodeId = NodeId::Inner(InnerId::ROOT);
}

/// The packet that a node would send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    pub bytes: u32,
    precedence: u8,
}

impl Front {
    #[inline]
    pub fn of(descriptor: &Descriptor) -> Front {
        Front { bytes: descriptor.counted_len, precedence: descriptor.precedence() }
    }
}

/// Common parts of nodes of both kinds: place among siblings, shaper, and counters.
#[derive(Debug)]
pub(crate) struct Member {
    pub depth: Count,
    /// Departures.
    pub output: Count,
    /// Departures that had waited for the shaper.
    pub delayed: Count,
    /// The root's is itself.
    pub(super) parent: InnerId,
    /// Number among its parent's children.
    pub(super) child: usize,
    /// Depth below the root.
    pub(super) level: u8,
    /// Whether it has no siblings: it is then served whenever it may send, and neither its key nor its parent's virtual
    /// time matters.
    pub(super) only: bool,
    /// Whether the node or one above it has a shaper.
    pub(super) shaped: bool,
    /// Earliest end of an interval of its shaper and those above it.
    pub(super) touch_at: Time,
    pub(super) timer: usize,
    /// Key among its siblings while it may send.
    pub(super) key: Option<u128>,
    /// Virtual time (sequence number) at which the last packet served from here ended.
    finish: u128,
    /// Bytes sent in the present turn.
    used: u64,
    /// Time at which it may next use its minimum rate, if it has one.
    minimum_at: Time,
    /// Whether it takes part among its siblings' minimum rates.
    offered: bool,
    pub shaper: Option<Shaper>,
    pub plan: NodePlan,
}

/// Position of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub parent: InnerId,
    pub child: usize,
    pub level: u8,
    /// Whether a node above it has a shaper.
    pub shaped: bool,
    pub only: bool,
    pub timer: usize,
}

impl Member {
    pub(super) fn new(plan: &NodePlan, standing: Standing, now: Time) -> Member {
        let Standing { parent, child, level, shaped, only, timer } = standing;
        let shaped = shaped || plan.shape.is_some();
        Member {
            depth: Count::default(),
            output: Count::default(),
            delayed: Count::default(),
            parent,
            child,
            level,
            // Nodes of this kind have no key.
            only: only && !matches!(plan.rank, Rank::Priority(_) | Rank::Released(_)),
            shaped,
            touch_at: if shaped { now } else { Time(u64::MAX) },
            timer,
            key: None,
            finish: 0,
            used: 0,
            minimum_at: now,
            offered: false,
            shaper: plan.shape.map(|shape| Shaper::new(shape, now)),
            plan: plan.clone(),
        }
    }

    /// Sets the timer of its shaper, if any, for the packet in front. Returns whether the packet may leave.
    #[inline]
    pub(super) fn may_send(&self, front: Option<Front>, timers: &mut WinnerTree<u64>) -> bool {
        let Some(shaper) = &self.shaper else { return front.is_some() };
        let release = front.and_then(|front| shaper.release(front.bytes));
        let ready = front.is_some() && release.is_none();
        // Packets that may leave now for a queue behind the shaper do so at once: `expire`.
        let now = (ready && matches!(self.plan.rank, Rank::Released(_))).then_some(Time(0));
        let timer = release.or(now).map_or(WinnerTree::<u64>::NONE, |time| time.0.min(u64::MAX - 1));
        timers.set(self.timer, timer);
        ready
    }

    /// Returns the key among its siblings, with this packet in front.
    #[inline]
    pub(super) fn key(&self, parent: &Inner, front: Front) -> u128 {
        match (self.key, self.plan.rank) {
            _ if self.only => 0,
            (Some(key), _) => key,
            (None, Rank::Factor(factor)) => {
                let factor = factor.unwrap_or_else(|| weighted_fair::weight(front.precedence));
                self.finish.max(parent.virtual_time) + u128::from(front.bytes) * u128::from(factor)
            }
            (None, Rank::Strict(number)) => turns::strict(number),
            (None, Rank::Turn(turn)) => turns::joins(turn, parent.virtual_time, self.finish),
            (None, _) => self.finish.max(parent.virtual_time),
        }
    }

    /// Passes its key, if it may send, and its minimum rate to the parent.
    #[inline]
    pub(super) fn enter(&mut self, parent: &mut Inner, key: Option<u128>, now: Time) {
        self.key = key;
        if let Some(minimums) = parent.minimums.as_mut().filter(|_| self.plan.minimum_bps > 0) {
            // The minimum rate that was unused while the queue was empty is lost.
            if key.is_some() && !self.offered {
                self.minimum_at = self.minimum_at.max(now);
            }
            self.offered = key.is_some();
            minimums.set(self.child, key.map(|_| self.minimum_at), now);
        }
        parent.contest.set(self.child, key.unwrap_or(WinnerTree::<u128>::NONE));
    }

    /// Counts a packet that leaves and the levels whose shapers had delayed it.
    #[inline]
    pub(super) fn count_out(&mut self, (bytes, delayed): (u32, u8)) {
        self.depth.remove(bytes);
        self.output.add(bytes);
        if delayed & (1 << self.level) != 0 {
            self.delayed.add(bytes);
        }
    }

    /// Updates the node's place among its siblings after a packet of this many bytes. An `urgent` packet takes nothing
    /// from the share of its class.
    #[inline]
    pub(super) fn record_served(&mut self, parent: &mut Inner, bytes: u32, urgent: bool, now: Time) {
        if urgent {
            // It goes behind its siblings with priority.
            if let Some(propagated) = &mut parent.propagated {
                propagated.set(self.child, None);
            }
            return;
        }
        let Some(key) = self.key.filter(|_| !self.only) else { return };
        // Packets sent under a minimum rate do not count against the excess.
        if parent.minimums.as_ref().is_some_and(|minimums| minimums.is_due(self.child)) {
            let time = |bytes: u64| Rate(self.plan.minimum_bps).time_for_bytes(bytes);
            let earliest = Time(now.0.saturating_sub(time(defaults::XE_MINIMUM_CATCH_UP).0));
            self.minimum_at = self.minimum_at.max(earliest) + time(u64::from(bytes));
            return;
        }
        self.key = None;
        self.finish = match self.plan.rank {
            Rank::Weight(weight) => key + u128::from(bytes) * u128::from(BYTE / weight),
            Rank::AccountedWeight(weight, account) => {
                key + u128::from(account.length(bytes)) * u128::from(BYTE / weight)
            }
            Rank::Factor(_) | Rank::Priority(_) | Rank::Released(_) => key,
            Rank::Turn(turn) => {
                let (next, used) = turns::after(turn, key, self.used, bytes, self.depth.packets == 0);
                self.used = used;
                next
            }
            // A queue that is served before the others takes no other queue's turn.
            Rank::Strict(_) => {
                self.finish = 0;
                return;
            }
        };
        parent.virtual_time = key;
    }
}

/// A queue.
#[derive(Debug)]
pub(crate) struct Leaf<P> {
    pub member: Member,
    pub(super) queue: Queue<P>,
    pub(super) random_detect: Option<RandomDetect>,
    /// Whether its packets have sequence numbers.
    pub(super) numbered: bool,
    /// Whether it has no shaper (own or above it), no early detection and no numbers: then only its queue decides on a
    /// packet.
    pub(super) plain: bool,
    /// The queue distinguishes flows.
    pub(super) flows: bool,
    /// Whether the queue has active queue management, which is called before each packet.
    pub(super) managed: bool,
    /// Conversations of the queue with packets, as counted by the scheduler.
    pub(super) active: u32,
    /// Drops of the queue.
    pub(super) drops: Count,
}

impl<P> Leaf<P> {
    /// Returns the queue of the node of that number in `plans`.
    pub(super) fn random_detect(
        (plans, index): (&[NodePlan], usize),
        plan: Option<&RandomDetectPlan>,
        seed: u64,
        (rate, now): (Rate, Time),
    ) -> Option<RandomDetect> {
        let rate = tree::rate_of(plans, index, rate);
        plan.map(|plan| RandomDetect::new(plan.clone(), seed.wrapping_add(index as u64), rate, now))
    }

    /// Counts a packet for which the queue has no room.
    pub(super) fn refuse(&mut self, descriptor: &Descriptor) {
        self.drops.add(descriptor.counted_len);
        self.queue.count_refused(descriptor);
        if let Some(red) = &mut self.random_detect {
            red.record_overflow(descriptor);
        }
    }

    /// Returns the flow queues with packets; a queue without flows counts as one.
    #[inline]
    pub(super) fn conversations(&self) -> u32 {
        if self.flows {
            return self.queue.flows().map_or(0, |(active, _)| active);
        }
        u32::from(self.member.depth.packets > 0)
    }
}

/// A choice between nodes.
#[derive(Debug)]
pub(crate) struct Inner {
    pub member: Member,
    pub(super) children: Vec<NodeId>,
    /// Children without priority that may send, by virtual start time or sequence number.
    pub(super) contest: WinnerTree<u128>,
    pub(super) priority: [Option<NodeId>; PRIORITY_LEVELS],
    pub(super) priority_ready: [bool; PRIORITY_LEVELS],
    pub(super) propagated: Option<Box<Propagated>>,
    /// Children with minimum rates.
    pub(super) minimums: Option<Box<Minimums>>,
    /// Start time or sequence number of the last served packet.
    pub(super) virtual_time: u128,
}

/// Children with sendable priority packets below them: by level, in the order of joining it.
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

    /// Sets the priority of a child's next packet, or none; the child keeps its place.
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

/// Minimum rates of children that may send: by the time at which each may next use its rate.
#[derive(Debug)]
pub(super) struct Minimums {
    /// Number among those of the scheduler.
    pub number: usize,
    due: WinnerTree<u64>,
    later: WinnerTree<u64>,
}

impl Minimums {
    pub fn new(number: usize, children: usize) -> Minimums {
        Minimums { number, due: WinnerTree::new(children), later: WinnerTree::new(children) }
    }

    /// Sets the time from which a child may use its minimum rate, or none if it does not take part.
    fn set(&mut self, child: usize, at: Option<Time>, now: Time) {
        let key = at.map_or(WinnerTree::<u64>::NONE, |at| at.0.min(u64::MAX - 1));
        let (due, later) = if key <= now.0 { (key, u64::MAX) } else { (u64::MAX, key) };
        self.due.set(child, due);
        self.later.set(child, later);
    }

    fn is_due(&self, child: usize) -> bool {
        self.due.key(child) != WinnerTree::<u64>::NONE
    }

    /// Returns the time at which the next child may use its minimum rate.
    pub fn next(&self) -> u64 {
        self.later.least_key()
    }

    /// Updates the state to `now`.
    pub fn advance(&mut self, now: Time) {
        while self.later.least_key() <= now.0 {
            let Some(child) = self.later.least() else { return };
            self.set(child, Some(Time(self.later.key(child))), now);
        }
    }
}

impl Inner {
    /// Creates a choice without its children yet; `urgent`: some have priority classes below.
    pub(super) fn new(member: Member, children: usize, urgent: bool) -> Inner {
        Inner {
            member,
            children: Vec::with_capacity(children),
            contest: WinnerTree::new(children),
            priority: [None; PRIORITY_LEVELS],
            priority_ready: [false; PRIORITY_LEVELS],
            propagated: urgent.then(|| Box::new(Propagated::new(children))),
            minimums: None,
            virtual_time: 0,
        }
    }

    /// Adds the next child.
    pub(super) fn push(&mut self, child: NodeId, rank: Rank) {
        self.children.push(child);
        if let Rank::Priority(level) = rank {
            self.priority[level] = Some(child);
        }
    }

    /// Returns the child to serve next.
    #[inline]
    pub(super) fn next(&self) -> Option<NodeId> {
        if self.priority_ready == [false; PRIORITY_LEVELS] && self.propagated.is_none() && self.minimums.is_none() {
            return Some(self.children[self.contest.least()?]);
        }
        self.next_of_all()
    }

    /// Returns the next packet and its position among all competing nodes.
    #[inline(never)]
    fn next_of_all(&self) -> Option<NodeId> {
        match self.urgent() {
            Some(_) if mistaken!(PriorityLast) && self.contest.least().is_some() => {
                Some(self.children[self.contest.least()?])
            }
            Some((_, child)) => Some(child),
            None => {
                let minimum = self.minimums.as_ref().and_then(|minimums| minimums.due.least());
                Some(self.children[minimum.or_else(|| self.contest.least())?])
            }
        }
    }

    /// Returns the highest priority of a packet that may be sent, and the child to serve for it. At equal levels, a
    /// child's own priority precedes that of classes below.
    pub(super) fn urgent(&self) -> Option<(usize, NodeId)> {
        (0..PRIORITY_LEVELS).find_map(|level| {
            if self.priority_ready[level] {
                return Some((level, self.priority[level]?));
            }
            let child = self.propagated.as_ref()?.waiting[level].least()?;
            Some((level, self.children[child]))
        })
    }
}

/// A reference to a node of either kind.
#[derive(Debug)]
pub(crate) enum Node<'a, P> {
    Leaf(&'a Leaf<P>),
    Inner(&'a Inner),
}

impl<'a, P> Node<'a, P> {
    pub fn member(&self) -> &'a Member {
        match self {
            Node::Leaf(leaf) => &leaf.member,
            Node::Inner(inner) => &inner.member,
        }
    }

    pub fn queue(&self) -> Option<&'a Queue<P>> {
        match self {
            Node::Leaf(leaf) => Some(&leaf.queue),
            Node::Inner(_) => None,
        }
    }

    pub fn random_detect(&self) -> Option<&'a RandomDetect> {
        match self {
            Node::Leaf(leaf) => leaf.random_detect.as_ref(),
            Node::Inner(_) => None,
        }
    }

    /// Drops of its queue.
    pub fn drops(&self) -> Count {
        match self {
            Node::Leaf(leaf) => leaf.drops,
            Node::Inner(_) => Count::default(),
        }
    }
}
