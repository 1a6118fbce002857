//! Counters of queues: those of a policy's classes, and those of an interface without a queueing policy.

use crate::counters::aqm::TreeNodeCounters;
use crate::counters::conversation::{ConversationCounters, HeadIp, HeadPacket};
use crate::counters::count::Count;
use crate::counters::interface_queueing::{InterfaceShaperCounters, NumberedQueueCounters};
use crate::counters::queue::{ClassQueueCounters, DisciplineName, PriorityQueueCounters, ShapeCounters};
use crate::frame::descriptor::{HeaderRest, Network};
use crate::plan::interface_queueing::TreeNodePlan;
use crate::plan::queue::ShownLimit;
use crate::plan::tree::BodyPlan;
use crate::queueing::aqm::managed::Managed;
use crate::queueing::discipline::Discipline;
use crate::queueing::queue::Queue;
use crate::queueing::scheduler::Node;
use crate::queueing::weighted_fair::Waiting;

/// Returns the shaper of a class.
pub(crate) fn shape<P>(node: &Node<'_, P>) -> Option<ShapeCounters> {
    let shaper = node.member().shaper.as_ref()?;
    let run = shaper.plan();
    // The bursts of a shaper that spaces packets are printed but not used.
    let plan = node.member().plan.shape.as_ref().filter(|plan| plan.spaced).unwrap_or(run);
    Some(ShapeCounters {
        mode: plan.mode,
        cir_bps: plan.cir_bps,
        percent: plan.percent,
        target_bps: plan.target_bps(),
        bc_bits: plan.bc_bits,
        be_bits: plan.be_bits,
        interval_ms: plan.interval.0 / 1_000_000,
        byte_limit: plan.limit_bits() / 8,
        increment_bytes: plan.increment_bits() / 8,
        credit_bits: shaper.credit(),
        credit_limit_bits: run.limit_bits(),
        active: node.member().depth.packets > 0,
        sent: node.member().output,
        delayed: node.member().delayed,
    })
}

/// Returns the queue of a class, or those of its children together.
///
/// `in_ring` are its packets in the transmit ring.
pub(crate) fn class<P>(
    node: &Node<'_, P>,
    conversation: Option<u32>,
    congested: Count,
    in_ring: u64,
) -> ClassQueueCounters {
    let flows = node.queue().and_then(Discipline::<P>::flows);
    let (discipline, limit, per_flow_limit, by_flow) = match &node.member().plan.body {
        BodyPlan::Leaf { queue, .. } => (queue.name(), queue.limit(), queue.per_flow(), queue.by_flow()),
        BodyPlan::Inner { limit, .. } => (DisciplineName::Fifo, ShownLimit::packets(*limit), None, false),
    };
    let flows = flows.filter(|_| by_flow);
    ClassQueueCounters {
        discipline,
        limit_packets: limit.packets,
        limit_bytes: limit.bytes,
        limit_ms: limit.ms,
        limit_us: limit.us,
        depth_packets: node.member().depth.packets,
        depth_bytes: node.member().depth.bytes,
        in_ring_packets: in_ring,
        per_flow_limit,
        flows: flows.map(|(active, _)| active),
        max_flows: flows.map(|(_, most)| most),
        output: node.member().output,
        conversation,
        congested,
    }
}

/// Returns the counters of a queue shared by priority classes.
pub(crate) fn priority<P>(level: u8, node: &Node<'_, P>) -> PriorityQueueCounters {
    let limit = match &node.member().plan.body {
        BodyPlan::Leaf { queue, .. } => queue.limit(),
        BodyPlan::Inner { limit, .. } => ShownLimit::packets(*limit),
    };
    PriorityQueueCounters {
        level,
        limit_packets: limit.packets.unwrap_or_default(),
        limit_bytes: limit.bytes,
        limit_ms: limit.ms,
        limit_us: limit.us,
        depth_packets: node.member().depth.packets,
        depth_bytes: limit.bytes.map(|_| node.member().depth.bytes),
        drops: node.drops(),
        output: node.member().output,
    }
}

/// Returns the counters of a numbered queue.
pub(crate) fn numbered<P>(number: u8, node: &Node<'_, P>) -> NumberedQueueCounters {
    NumberedQueueCounters {
        number,
        depth_packets: node.member().depth.packets,
        limit_packets: match &node.member().plan.body {
            BodyPlan::Leaf { queue, .. } => queue.limit().packets.filter(|limit| *limit < u32::MAX).unwrap_or_default(),
            BodyPlan::Inner { .. } => 0,
        },
        drops: node.drops(),
        output: node.member().output,
    }
}

/// Returns the counters of a class or queue of a tree.
pub(crate) fn tree_node<P>(plan: &TreeNodePlan, node: &Node<'_, P>) -> TreeNodeCounters {
    let managed = node.queue().and_then(Queue::managed).map(Managed::counters);
    let early = node.random_detect().and_then(|red| red.counters().ecn_mark);
    let marked = managed.as_ref().map(|managed| managed.marked.plus(managed.marked_over_threshold));
    TreeNodeCounters {
        name: plan.name.clone(),
        parent: plan.parent.clone(),
        discipline: plan.discipline.clone(),
        depth_packets: node.member().depth.packets,
        depth_bytes: node.member().depth.bytes,
        sent: node.member().output,
        drops: node.drops(),
        marked: marked.or(early).unwrap_or_default(),
        managed,
    }
}

/// Returns the counters of an interface's shaper and its queue.
pub(crate) fn interface_shaper<P>(node: &Node<'_, P>) -> Option<InterfaceShaperCounters> {
    let (active, most) = node.queue().and_then(Discipline::<P>::flows)?;
    let BodyPlan::Leaf { queue, .. } = &node.member().plan.body else { return None };
    Some(InterfaceShaperCounters {
        shape: shape(node)?,
        depth_packets: node.member().depth.packets,
        limit_packets: queue.limit().packets.unwrap_or_default(),
        drops: node.drops(),
        conversations: active,
        max_conversations: most,
    })
}

/// Returns the counters of a numbered conversation; `rest` is that of its next packet.
pub(crate) fn conversation<P>(number: u32, waiting: &Waiting<'_, P>, rest: HeaderRest) -> ConversationCounters {
    let head = &waiting.head.descriptor;
    let ip = (head.network != Network::Other).then_some(HeadIp {
        source: head.source,
        destination: head.destination,
        id: rest.id,
        ttl: rest.ttl,
        tos: (head.dscp << 2) | head.ecn,
        protocol: head.protocol,
        source_port: head.source_port,
        destination_port: head.destination_port,
    });
    ConversationCounters {
        number,
        depth_packets: waiting.packets,
        weight: waiting.weight,
        drops: waiting.drops,
        head: HeadPacket { bytes: head.counted_len, ip },
    }
}
