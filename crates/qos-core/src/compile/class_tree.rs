//! Compiler from an attached policy-map to the tree of its queues: the queue of each class, and its bandwidth.

use crate::compile::context::{Context, PathClass};
use crate::compile::generation::ClassQueues;
use crate::compile::sums::excess;
use crate::compile::{account, bandwidth, parameters, queue_limit};
use crate::config::defaults;
use crate::config::policy::PolicyClass;
use crate::config::queueing::LimitUnit;
use crate::counters::policy::BandwidthCounters;
use crate::counters::resolved::ResolvedPriority;
use crate::error::ConfigError;
use crate::plan::classes::CLASS_DEFAULT;
use crate::plan::queue::QueuePlan;
use crate::plan::shape::ShapePlan;
use crate::plan::tree::{BodyPlan, NodePlan, Rank, Sharing, PRIORITY_LEVELS, ROOT};

/// Maximum number of flow queues of an attached policy-map: keeps the product of classes and flows from exhausting
/// memory.
const MAX_FLOW_QUEUES: u64 = 1 << 20;

/// Place to which a policy is attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attachment {
    pub bandwidth_kbps: u64,
    /// Percentage of the bandwidth that classes may reserve, if the interface limits it.
    pub max_reserved_percent: u32,
    pub output: bool,
}

/// Place of a policy-map in the hierarchy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub to: Attachment,
    /// Base of a policer's and a shaper's percentage: the bandwidth, or a parent's shape rate.
    pub rate_bps: u64,
    /// Base of a guarantee's percentage: the bandwidth, or a parent's shape rate or bandwidth.
    pub guaranteed_bps: u64,
    /// The class above.
    pub parent: Option<usize>,
    /// The node of the class above, under which queues go.
    pub node: usize,
    /// Queue for packets if the policy-map has none.
    pub leaf: usize,
}

impl Position {
    /// Returns the position below a class of this policy-map.
    pub fn below(self, class: usize, place: Place, shape: Option<ShapePlan>) -> Position {
        let shape_bps = shape.map(|shape| shape.cir_bps);
        let guaranteed_bps = place.bandwidth.and_then(|bandwidth| bandwidth.kbps).map(|kbps| kbps * 1_000);
        Position {
            to: self.to,
            rate_bps: shape_bps.unwrap_or(self.rate_bps),
            guaranteed_bps: shape_bps.or(guaranteed_bps).unwrap_or(self.guaranteed_bps),
            parent: Some(class),
            node: place.own.unwrap_or(self.node),
            leaf: place.leaf,
        }
    }
}

/// Place of a class in the tree, and its settings there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The queue that its packets join (unless a child decides).
    pub leaf: usize,
    /// Node used only by this class.
    pub own: Option<usize>,
    pub bandwidth: Option<BandwidthCounters>,
    pub priority: Option<ResolvedPriority>,
    pub conversation: Option<u32>,
}

impl Place {
    /// Returns the queue of another class.
    pub fn joining(leaf: usize) -> Place {
        Place { leaf, own: None, bandwidth: None, priority: None, conversation: None }
    }
}

/// Values shared by the classes of one policy-map.
struct Shares {
    bandwidth: Vec<Option<BandwidthCounters>>,
    priority: Vec<Option<ResolvedPriority>>,
    ranks: Vec<Rank>,
    /// The rank of a class without bandwidth.
    other: Rank,
}

/// Returns the number of flow queues of a classic interface with the policy.
pub(crate) fn classic_flow_queues(classes: &[PathClass], bandwidth_kbps: u64) -> u32 {
    let fair = classes.iter().find_map(|(_, class)| class.fair_queue?.queues);
    fair.unwrap_or_else(|| defaults::dynamic_queues(bandwidth_kbps))
}

/// Returns the queues of a policy-map with queueing.
pub(crate) fn place(
    context: &Context<'_>,
    nodes: &mut Vec<NodePlan>,
    classes: &[PathClass],
    shapes: &[Option<ShapePlan>],
    here: Position,
) -> Result<Vec<Place>, ConfigError> {
    let conversations = context.properties.class_queues == ClassQueues::Conversations;
    let shares = shares(context, classes, shapes, here)?;
    let mut places: Vec<Option<Place>> = Vec::with_capacity(classes.len());
    let mut priority_leaves = [None; PRIORITY_LEVELS];
    let mut conversation = classic_flow_queues(classes, here.to.bandwidth_kbps) + defaults::SYSTEM_CONVERSATIONS;
    let priority_conversation = conversation;
    let numbers = conversations && here.parent.is_none();
    for (index, (path, class)) in classes.iter().enumerate() {
        let default = class.name == CLASS_DEFAULT;
        if !context.class_queues(class) && !default {
            places.push(None);
            continue;
        }
        let (bandwidth, priority) = (shares.bandwidth[index], shares.priority[index]);
        let mut place = Place { leaf: nodes.len(), own: Some(nodes.len()), bandwidth, priority, conversation: None };
        if let Some(priority) = priority {
            let rate_bps = priority.kbps.map_or(here.rate_bps, |kbps| kbps * 1_000);
            let queue = priority_queue(context, class, rate_bps).map_err(|error| error.under(path))?;
            let leaf = priority_leaf(nodes, &mut priority_leaves, usize::from(priority.level - 1), queue, here);
            place = Place { leaf, own: conversations.then_some(leaf), ..place };
            place.conversation = numbers.then_some(priority_conversation);
            places.push(Some(place));
            continue;
        }
        let rank = accounted(context, path, class, shares.ranks[index])?;
        let kbps = bandwidth.and_then(|bandwidth| bandwidth.kbps);
        let shape_bps = shapes[index].map(|shape| shape.cir_bps);
        let rate_bps = kbps.map(|kbps| kbps * 1_000).or(shape_bps).unwrap_or(here.rate_bps);
        let body = body(context, (path, class), (rank, rate_bps), here)?;
        if numbers && !default {
            conversation += 1;
            place.conversation = Some(conversation);
        }
        // A conversation of class-default without a bandwidth is not shown as a queue.
        if default && conversations && !context.class_queues(class) {
            place.own = None;
        }
        let rank = match shapes[index] {
            Some(_) if context.properties.shaper_releases_to_interface => {
                place = Place { leaf: place.leaf + 1, own: place.own.map(|own| own + 1), ..place };
                released(nodes, rank, here)
            }
            _ => rank,
        };
        let minimum_bps = minimum_bps(context, kbps);
        nodes.push(NodePlan { parent: here.node, rank, minimum_bps, shape: shapes[index], body });
        places.push(Some(place));
    }
    check_flow_queues(nodes, &classes[0].0)?;
    Ok(join(context, nodes, places, here, &shares))
}

/// Returns a class's rank, with the bytes that its `account` counts.
fn accounted(context: &Context<'_>, path: &str, class: &PolicyClass, rank: Rank) -> Result<Rank, ConfigError> {
    let account = account::of(class, context.properties).map_err(|error| error.under(path))?;
    Ok(match (rank, account) {
        (Rank::Weight(weight), Some(account)) => Rank::AccountedWeight(weight, account),
        (rank, _) => rank,
    })
}

/// Returns rate of a class before excess is shared; 0 if bandwidth is a weight.
fn minimum_bps(context: &Context<'_>, kbps: Option<u64>) -> u64 {
    match context.properties.sharing {
        Sharing::Excess => kbps.map_or(0, |kbps| kbps.saturating_mul(1_000)),
        _ => 0,
    }
}

/// Returns the queue of a class behind its shaper, one conversation of the interface's; the rank of the node with the
/// shaper.
fn released(nodes: &mut Vec<NodePlan>, rank: Rank, here: Position) -> Rank {
    let weight = match rank {
        Rank::Factor(factor) => factor,
        _ => None,
    };
    let queue = QueuePlan::Conversation { limit: defaults::CLASSIC_RELEASED_QUEUE_LIMIT, weight };
    let body = BodyPlan::Leaf { queue, random_detect: None };
    nodes.push(NodePlan { parent: here.node, rank, minimum_bps: 0, shape: None, body });
    Rank::Released(nodes.len() - 1)
}

/// Returns the queue of a priority class; in bytes if its limit is in bytes or time.
fn priority_queue(context: &Context<'_>, class: &PolicyClass, rate_bps: u64) -> Result<QueuePlan, ConfigError> {
    let separate = context.properties.class_queues == ClassQueues::Separate;
    if separate && class.queue_limit.is_some_and(|limit| limit.unit() != LimitUnit::Packets) {
        return queue_limit::fifo(class, Some(rate_bps), context.properties);
    }
    let limit = queue_limit::packets(class)?.unwrap_or(context.properties.priority_queue_limit);
    Ok(QueuePlan::Fifo { limit })
}

/// Returns the queue shared by the priority classes of a level. Its limit is the greatest configured limit; a limit in
/// bytes takes precedence over one in packets.
fn priority_leaf(
    nodes: &mut Vec<NodePlan>,
    leaves: &mut [Option<usize>; PRIORITY_LEVELS],
    level: usize,
    queue: QueuePlan,
    here: Position,
) -> usize {
    let leaf = *leaves[level].get_or_insert_with(|| {
        let queue = QueuePlan::Fifo { limit: 0 };
        let body = BodyPlan::Leaf { queue, random_detect: None };
        nodes.push(NodePlan { parent: here.node, rank: Rank::Priority(level), minimum_bps: 0, shape: None, body });
        nodes.len() - 1
    });
    if let BodyPlan::Leaf { queue: shared, .. } = &mut nodes[leaf].body {
        match (&mut *shared, queue) {
            (QueuePlan::Fifo { limit: shared }, QueuePlan::Fifo { limit }) => *shared = (*shared).max(limit),
            (QueuePlan::Limited(shared), QueuePlan::Limited(other)) if shared.limit >= other.limit => {}
            (_, other @ QueuePlan::Limited(_)) => *shared = other,
            _ => {}
        }
    }
    leaf
}

/// Returns the queue of a class without priority, which is served at `rate_bps`, or the choice between the queues of
/// its child.
fn body(
    context: &Context<'_>,
    (path, class): (&str, &PolicyClass),
    (rank, rate_bps): (Rank, u64),
    here: Position,
) -> Result<BodyPlan, ConfigError> {
    if class.service_policy.as_ref().is_some_and(|child| context.queues(child)) {
        let limit = queue_limit::packets(class).map_err(|error| error.under(path))?;
        return Ok(BodyPlan::Inner {
            sharing: context.properties.sharing,
            limit: limit.unwrap_or_else(|| context.properties.queue_limit.packets(Some(rate_bps))),
        });
    }
    let weight = match rank {
        Rank::Factor(factor) => factor,
        _ => None,
    };
    let rates = (Some(here.to.bandwidth_kbps), Some(rate_bps));
    let queue = parameters::class_queue(class, rates, context.properties, weight);
    let random_detect = bandwidth::random_detect(class, context.properties, Some(rate_bps));
    Ok(BodyPlan::Leaf {
        queue: queue.map_err(|error| error.under(path))?,
        random_detect: random_detect.map_err(|error| error.under(path))?,
    })
}

fn check_flow_queues(nodes: &[NodePlan], path: &str) -> Result<(), ConfigError> {
    let flows = |node: &NodePlan| match &node.body {
        BodyPlan::Leaf { queue, .. } => u64::from(queue.flows()),
        BodyPlan::Inner { .. } => 0,
    };
    let flows: u64 = nodes.iter().map(flows).sum();
    if flows > MAX_FLOW_QUEUES {
        let message = format!("{flows} flow queues in all its classes: at most {MAX_FLOW_QUEUES} are possible");
        return Err(ConfigError::too_much(path, message));
    }
    Ok(())
}

/// Classes without a queue join that of class-default. If its child has the queues, or if it is shaped, they have a
/// separate queue next to it: a shaper delays only its own class.
fn join(
    context: &Context<'_>,
    nodes: &mut Vec<NodePlan>,
    places: Vec<Option<Place>>,
    here: Position,
    shares: &Shares,
) -> Vec<Place> {
    let mut shared = places.last().copied().flatten().map_or(ROOT, |place| place.leaf);
    let apart = matches!(nodes[shared].body, BodyPlan::Inner { .. }) || nodes[shared].shape.is_some();
    if places.iter().any(Option::is_none) && apart {
        let queue = match context.properties.class_queues {
            ClassQueues::Conversations => parameters::flow_queueing(None, None, Some(here.to.bandwidth_kbps), None),
            ClassQueues::Separate => {
                QueuePlan::Fifo { limit: context.properties.queue_limit.packets(Some(here.rate_bps)) }
            }
        };
        let body = BodyPlan::Leaf { queue, random_detect: None };
        shared = nodes.len();
        nodes.push(NodePlan { parent: here.node, rank: shares.other, minimum_bps: 0, shape: None, body });
    }
    places.into_iter().map(|place| place.unwrap_or(Place::joining(shared))).collect()
}

/// Returns the shares of the classes of a policy-map.
fn shares(
    context: &Context<'_>,
    classes: &[PathClass],
    shapes: &[Option<ShapePlan>],
    here: Position,
) -> Result<Shares, ConfigError> {
    let base = Some(here.guaranteed_bps);
    let mut bandwidth = Vec::with_capacity(classes.len());
    let mut priority = Vec::with_capacity(classes.len());
    for (path, class) in classes {
        let own =
            class.bandwidth.map(|bandwidth| bandwidth::bandwidth(bandwidth, base, context.properties)).transpose();
        bandwidth.push(own.map_err(|error| error.under(path))?);
        let own = class.priority.map(|priority| bandwidth::priority(priority, base, context.properties)).transpose();
        priority.push(own.map_err(|error| error.under(path))?);
    }
    admit_sum(context, classes, &bandwidth, &priority, here)?;
    let priority_kbps = sum(priority.iter().map(|priority| priority.and_then(|priority| priority.kbps)));
    let (ranks, other) = match context.properties.class_queues {
        ClassQueues::Conversations => factors(context, classes, &bandwidth, priority_kbps, here),
        ClassQueues::Separate => weights(context, classes, (&bandwidth, shapes), priority_kbps, here),
    };
    Ok(Shares { bandwidth, priority, ranks, other })
}

fn sum(kbps: impl Iterator<Item = Option<u64>>) -> u64 {
    kbps.flatten().fold(0, u64::saturating_add)
}

/// Returns the weights of conversations: the interface's bandwidth divided by that of the class.
fn factors(
    context: &Context<'_>,
    classes: &[PathClass],
    bandwidth: &[Option<BandwidthCounters>],
    priority_kbps: u64,
    here: Position,
) -> (Vec<Rank>, Rank) {
    let flow_queues = classic_flow_queues(classes, here.to.bandwidth_kbps);
    let constant = match defaults::class_weight_constant(flow_queues) {
        constant if mistaken!(ClassWeightTwice) => constant * 2,
        constant => constant,
    };
    let base_kbps = (here.guaranteed_bps / 1_000).max(1);
    let left = (base_kbps * u64::from(reservable(context, here)) / 100).saturating_sub(priority_kbps);
    let factor = |bandwidth: &Option<BandwidthCounters>| {
        let bandwidth = (*bandwidth)?;
        let kbps = match (bandwidth.kbps, bandwidth.remaining_percent) {
            (Some(kbps), _) => kbps,
            (None, percent) => left * u64::from(percent?) / 100,
        };
        Some((constant * base_kbps / kbps.max(1)).max(1))
    };
    (bandwidth.iter().map(|bandwidth| Rank::Factor(factor(bandwidth))).collect(), Rank::Factor(None))
}

/// Returns the bandwidth that a shaper gives a class without one.
fn guarantee(shape: ShapePlan) -> Option<BandwidthCounters> {
    let kbps = Some(shape.cir_bps / 1_000);
    let guaranteed = BandwidthCounters { kbps, percent: None, remaining_percent: None, remaining_ratio: None };
    defaults::HQF_SHAPE_IS_A_GUARANTEE.then_some(guaranteed)
}

/// Returns the weights of separate queues: the configured bandwidth, and the rest in equal parts for classes without
/// bandwidth.
fn weights(
    context: &Context<'_>,
    classes: &[PathClass],
    (bandwidth, shapes): (&[Option<BandwidthCounters>], &[Option<ShapePlan>]),
    priority_kbps: u64,
    here: Position,
) -> (Vec<Rank>, Rank) {
    let guarantees: Vec<_> =
        bandwidth.iter().zip(shapes).map(|(own, shape)| own.or_else(|| guarantee((*shape)?))).collect();
    let bandwidth = guarantees.as_slice();
    let takes_part = |index: usize| {
        let (_, class) = &classes[index];
        class.name == CLASS_DEFAULT || (class.priority.is_none() && context.class_queues(class))
    };
    let without = (0..classes.len()).filter(|index| bandwidth[*index].is_none() && takes_part(*index)).count();
    let without = without.max(1) as u64;
    let remaining: u64 = bandwidth.iter().flatten().filter_map(|b| b.remaining_percent).map(u64::from).sum();
    // Weights are in b/s, or with `remaining` in millionths of the rest.
    let other = if bandwidth.iter().flatten().any(|bandwidth| bandwidth.remaining_ratio.is_some()) {
        1_000_000
    } else if remaining > 0 {
        100u64.saturating_sub(remaining).max(1) * 1_000_000 / without
    } else if context.properties.sharing == Sharing::Excess {
        u64::from(defaults::XE_EXCESS_WEIGHT) * 1_000_000
    } else {
        let kbps = sum(bandwidth.iter().map(|bandwidth| bandwidth.and_then(|bandwidth| bandwidth.kbps)));
        let base_bps = here.guaranteed_bps;
        let rest = base_bps.saturating_sub(kbps.saturating_add(priority_kbps).saturating_mul(1_000));
        let least = base_bps * u64::from(100 - reservable(context, here)) / 100;
        rest.max(least) / without
    };
    let other = if mistaken!(UnreservedWhole) { here.guaranteed_bps } else { other };
    let weight = |bandwidth: &Option<BandwidthCounters>| {
        let weight = match bandwidth {
            None => other,
            // A minimum rate; the excess is shared equally.
            Some(BandwidthCounters { kbps: Some(_), .. }) if context.properties.sharing == Sharing::Excess => other,
            Some(BandwidthCounters { kbps: Some(kbps), .. }) => kbps.saturating_mul(1_000),
            Some(BandwidthCounters { remaining_percent: Some(percent), .. }) => u64::from(*percent) * 1_000_000,
            Some(bandwidth) => u64::from(bandwidth.remaining_ratio.unwrap_or(1)) * 1_000_000,
        };
        Rank::Weight(weight.max(1))
    };
    (bandwidth.iter().map(weight).collect(), Rank::Weight(other.max(1)))
}

/// Returns the percentage that classes may reserve together.
fn reservable(context: &Context<'_>, here: Position) -> u32 {
    match (context.properties.reservable_percent, here.parent) {
        (Some(percent), _) => percent,
        (None, None) => here.to.max_reserved_percent,
        (None, Some(_)) => 100,
    }
}

/// Refuses more bandwidth than is available. The bandwidth of class-default is taken from the remainder.
fn admit_sum(
    context: &Context<'_>,
    classes: &[PathClass],
    bandwidth: &[Option<BandwidthCounters>],
    priority: &[Option<ResolvedPriority>],
    here: Position,
) -> Result<(), ConfigError> {
    let amounts = classes.iter().enumerate().map(|(index, each)| {
        let (field, kbps) = match (bandwidth[index], priority[index]) {
            (_, Some(priority)) => ("priority", priority.kbps),
            (bandwidth, None) => ("bandwidth", bandwidth.and_then(|bandwidth| bandwidth.kbps)),
        };
        let counts = each.1.name != CLASS_DEFAULT || context.properties.default_class_reserves;
        (each, kbps.filter(|_| counts).map(|kbps| (field, kbps.saturating_mul(1_000))))
    });
    if let Some(found) = excess(here.guaranteed_bps, reservable(context, here), amounts) {
        let message = format!(
            "the classes reserve {} kb/s, but only {} kb/s can be reserved: {} per cent of {} kb/s",
            found.sum / 1_000,
            found.most / 1_000,
            found.percent,
            here.guaranteed_bps / 1_000
        );
        return Err(ConfigError::too_much(found.path, message));
    }
    Ok(())
}
