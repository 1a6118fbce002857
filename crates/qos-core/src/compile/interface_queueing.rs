//! Compiler from queueing without a policy-map to the plan of a router's port.

use crate::compile::context::Context;
use crate::compile::generation::ShapeInterval;
use crate::compile::parameters;
use crate::compile::range::in_range;
use crate::compile::tree as tree_of;
use crate::config::defaults;
use crate::config::interface_queueing::{CustomQueue, InterfaceQueueing, InterfaceShaper, QueueRule, CUSTOM_QUEUES};
use crate::config::tree::TreeNode;
use crate::counters::port::Strategy;
use crate::error::ConfigError;
use crate::plan::interface_queueing::{InterfaceQueueingPlan, Steering, Wanted};
use crate::plan::port::RouterPlan;
use crate::plan::queue::QueuePlan;
use crate::plan::shape::ShapePlan;
use crate::plan::tree::{self, BodyPlan, NodePlan, Rank, Sharing, Turn, ROOT, SINGLE};
use crate::time::Rate;
use crate::wire::ip::protocol;

/// Maximum number of rules, or shapers, of an interface.
const MAX_RULES: usize = 1_000;

/// Returns the plan of a port with this queueing instead of its default; `path` is that of the queueing.
pub(crate) fn over(
    context: &Context<'_>,
    queueing: &InterfaceQueueing,
    path: &str,
    plan: RouterPlan,
    rate: Rate,
) -> Result<RouterPlan, ConfigError> {
    if plan.output.as_ref().is_some_and(|policy| !policy.nodes.is_empty()) {
        let message = "the output policy-map also queues: use null, or another policy-map";
        return Err(ConfigError::new(path, message));
    }
    let (rules, field) = match queueing {
        InterfaceQueueing::Shaped { shapers } => (shapers.len(), "shapers"),
        InterfaceQueueing::Priority { rules, .. }
        | InterfaceQueueing::Custom { rules, .. }
        | InterfaceQueueing::Tree { rules, .. } => (rules.len(), "rules"),
    };
    if rules > MAX_RULES {
        let message = format!("{rules} rules: at most {MAX_RULES} are possible");
        return Err(ConfigError::too_much(format!("{path}.{field}"), message));
    }
    match queueing {
        InterfaceQueueing::Shaped { shapers } => shaped(context, shapers, path, plan, rate),
        InterfaceQueueing::Priority { rules, default, limits } => {
            let queues: Vec<_> = limits.iter().map(|limit| (*limit, None)).collect();
            numbered(context, Strategy::Priority, (rules, *default), &queues, path, plan)
        }
        InterfaceQueueing::Custom { rules, default, lowest, queues } => {
            let queues = custom_queues(*lowest, queues, path)?;
            numbered(context, Strategy::Custom, (rules, *default), &queues, path, plan)
        }
        InterfaceQueueing::Tree { nodes, rules, default } => branched(context, nodes, (rules, *default), path, plan),
    }
}

/// Numbered queues: the limit of each, and the byte count of those that take turns.
type Numbered = (u32, Option<u32>);

fn custom_queues(lowest: u8, given: &[CustomQueue], path: &str) -> Result<Vec<Numbered>, ConfigError> {
    let greatest = CUSTOM_QUEUES as u64 - 1;
    in_range(&format!("{path}.lowest"), u64::from(lowest), &(1..=greatest), "as a queue's number")?;
    let mut queues: Vec<_> = (0..CUSTOM_QUEUES as u8).map(CustomQueue::new).collect();
    for (index, queue) in given.iter().enumerate() {
        let path = format!("{path}.queues[{index}]");
        in_range(&format!("{path}.number"), u64::from(queue.number), &(0..=greatest), "as a queue's number")?;
        in_range(&format!("{path}.byte_count"), u64::from(queue.byte_count), &(1..=16_777_215), "bytes")?;
        queues[usize::from(queue.number)] = *queue;
    }
    let turn = |queue: &CustomQueue| (queue.number >= lowest).then_some(queue.byte_count);
    Ok(queues.iter().map(|queue| (queue.limit, turn(queue))).collect())
}

/// Returns the plan of numbered queues.
fn numbered(
    context: &Context<'_>,
    strategy: Strategy,
    (rules, default): (&[QueueRule], u8),
    queues: &[Numbered],
    path: &str,
    plan: RouterPlan,
) -> Result<RouterPlan, ConfigError> {
    let mut nodes = tree::root(Sharing::Turns);
    for (number, (limit, byte_count)) in (0u8..).zip(queues) {
        let rank = match byte_count {
            None => Rank::Strict(number),
            Some(byte_count) => Rank::Turn(Turn { number, byte_count: *byte_count }),
        };
        let limit = if *limit == 0 { u32::MAX } else { *limit };
        let body = BodyPlan::Leaf { queue: QueuePlan::Fifo { limit }, random_detect: None };
        nodes.push(NodePlan { parent: ROOT, rank, minimum_bps: 0, shape: None, body });
    }
    let greatest = queues.len() as u64 - 1;
    let node = |queue: u8, path: String| {
        in_range(&path, u64::from(queue), &(0..=greatest), "as a queue's number").map(|queue| SINGLE + queue as usize)
    };
    let mut steered = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}.rules[{index}]");
        steered.push((wanted(context, rule, &path)?, node(rule.queue, format!("{path}.queue"))?));
    }
    let steering = Steering { rules: steered, other: node(default, format!("{path}.default"))? };
    let queues = (0u8..).zip(SINGLE..nodes.len()).collect();
    Ok(RouterPlan {
        strategy,
        nodes,
        hold: None,
        conversations: None,
        queueing: Some(Box::new(InterfaceQueueingPlan { steering, shapers: Vec::new(), queues, tree: Vec::new() })),
        ..plan
    })
}

/// Returns the plan of a tree of classes and queues.
fn branched(
    context: &Context<'_>,
    given: &[TreeNode],
    (rules, default): (&[QueueRule], u8),
    path: &str,
    plan: RouterPlan,
) -> Result<RouterPlan, ConfigError> {
    let (nodes, tree) = tree_of::nodes(given, path)?;
    let mut steered = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}.rules[{index}]");
        steered.push((wanted(context, rule, &path)?, tree_of::joined(given, rule.queue, &format!("{path}.queue"))?));
    }
    let steering = Steering { rules: steered, other: tree_of::joined(given, default, &format!("{path}.default"))? };
    Ok(RouterPlan {
        strategy: Strategy::Tree,
        nodes,
        hold: None,
        conversations: None,
        queueing: Some(Box::new(InterfaceQueueingPlan { steering, shapers: Vec::new(), queues: Vec::new(), tree })),
        ..plan
    })
}

fn wanted(context: &Context<'_>, rule: &QueueRule, path: &str) -> Result<Wanted, ConfigError> {
    let input = rule.interface.as_ref().map(|name| {
        let missing = || ConfigError::unknown(format!("{path}.interface"), format!("there is no port {name:?}"));
        context.ports.get(name).copied().ok_or_else(missing)
    });
    if let Some(port) = rule.port {
        if ![protocol::TCP, protocol::UDP].contains(&port.protocol) {
            return Err(ConfigError::new(format!("{path}.port.protocol"), "only TCP (6) and UDP (17) have ports"));
        }
    }
    Ok(Wanted {
        protocol: rule.protocol,
        input: input.transpose()?,
        access_list: access_list(context, rule.access_list.as_ref(), path)?,
        larger_than: rule.larger_than,
        smaller_than: rule.smaller_than,
        fragments: rule.fragments,
        port: rule.port,
    })
}

fn access_list(context: &Context<'_>, name: Option<&String>, path: &str) -> Result<Option<usize>, ConfigError> {
    let Some(name) = name else { return Ok(None) };
    let list = context.access_lists.get(name).filter(|_| context.config.access_lists.contains_key(name));
    let missing = || {
        let message = format!("there is no access list {name:?}: define it first");
        ConfigError::unknown(format!("{path}.access_list"), message)
    };
    list.copied().map(Some).ok_or_else(missing)
}

/// Returns the plan of shapers in parallel with the interface's own queue.
fn shaped(
    context: &Context<'_>,
    shapers: &[InterfaceShaper],
    path: &str,
    mut plan: RouterPlan,
    rate: Rate,
) -> Result<RouterPlan, ConfigError> {
    let by_sequence = matches!(plan.nodes[ROOT].body, BodyPlan::Inner { sharing: Sharing::Sequence, .. });
    let (mut rules, mut nodes, mut left) = (Vec::new(), Vec::new(), rate.0);
    for (index, shaper) in shapers.iter().enumerate() {
        let path = format!("{path}.shapers[{index}]");
        in_range(&format!("{path}.buffers"), u64::from(shaper.buffers), &(1..=4_096), "packets")?;
        let shape = shape(shaper).map_err(|error| error.under(&path))?;
        let queue = QueuePlan::WeightedFair {
            flows: defaults::dynamic_queues(shape.cir_bps / 1_000),
            threshold: defaults::CONGESTIVE_DISCARD_THRESHOLD,
            total: Some(shaper.buffers),
        };
        // Packets released by shapers join weighted fair queueing. Next to a FIFO, they get their rate before the other
        // packets when the line is full, and the others get the rest of the line.
        let rank = if by_sequence { Rank::Released(SINGLE) } else { Rank::Weight(shape.target_bps()) };
        left = left.saturating_sub(shape.target_bps());
        let wanted =
            Wanted { access_list: access_list(context, shaper.access_list.as_ref(), &path)?, ..Wanted::default() };
        rules.push((wanted, plan.nodes.len()));
        nodes.push(plan.nodes.len());
        let body = BodyPlan::Leaf { queue, random_detect: None };
        plan.nodes.push(NodePlan { parent: ROOT, rank, minimum_bps: 0, shape: Some(shape), body });
    }
    if !by_sequence {
        plan.nodes[SINGLE].rank = Rank::Weight(left.max(rate.0 / 100).max(1));
    }
    let steering = Steering { rules, other: SINGLE };
    plan.queueing =
        Some(Box::new(InterfaceQueueingPlan { steering, shapers: nodes, queues: Vec::new(), tree: Vec::new() }));
    Ok(plan)
}

/// Returns the plan of generic traffic shaping, with the bursts of the classic generation's shaper: published outputs
/// show 8000/8000 for 64000 and 7936/7936 for 128000.
fn shape(shaper: &InterfaceShaper) -> Result<ShapePlan, ConfigError> {
    let resolved = parameters::shape(&shaper.shape, None, ShapeInterval::CLASSIC)?;
    let missing = || ConfigError::new("shape", "cannot be calculated: set the rate and bursts as numbers");
    parameters::shape_plan(&resolved).ok_or_else(missing)
}
