//! Compiler from a tree of classes and queues to the plan of a router's port.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::compile::range::in_range;
use crate::config::policy::ShapeMode;
use crate::config::queueing::RandomDetectBasis;
use crate::config::tree::{Carrier, Diffserv, Isolation, LengthAccount, QueueDiscipline, TreeNode, TreeShape};
use crate::counters::resolved::ResolvedRandomDetectRow;
use crate::error::ConfigError;
use crate::plan::aqm::{CakePlan, CodelPlan, CodelQueuePlan, FqCodelPlan, IsolationPlan, PiePlan, TinPlan};
use crate::plan::interface_queueing::TreeNodePlan;
use crate::plan::queue::{LimitsPlan, ManagedPlan, QueuePlan, RandomDetectPlan};
use crate::plan::shape::{AccountPlan, ShapePlan};
use crate::plan::tree::{self, BodyPlan, NodePlan, Rank, Sharing, ROOT};
use crate::time::{Duration, Rate, NANOS_PER_SECOND};

/// Maximum number of nodes of a tree.
const MAX_NODES: usize = 1_000;

/// Maximum time between two steps of a shaper's bucket.
const TICK_NS: u64 = 20_000;

/// Bytes of a full Ethernet frame without its FCS.
const FULL_FRAME: u64 = 1_514;

/// Minimum memory of CAKE's queues, bytes, unless `memlimit` says otherwise.
const CAKE_LEAST_MEMORY: u64 = 4 << 20;

/// Returns the nodes of the scheduler, with the counters' data by name; the first node is the root, which has no name.
pub(crate) fn nodes(given: &[TreeNode], path: &str) -> Result<(Vec<NodePlan>, Vec<TreeNodePlan>), ConfigError> {
    let path = format!("{path}.nodes");
    in_range(&path, given.len() as u64, &(1..=MAX_NODES as u64), "nodes")?;
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut minimums = vec![false; given.len() + 1];
    let mut nodes = tree::root(Sharing::Weighted);
    let mut names = Vec::with_capacity(given.len());
    for (index, node) in given.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let parent = match &node.parent {
            None => ROOT,
            Some(parent) => {
                let missing = || {
                    let message = format!("there is no earlier class {parent:?}");
                    ConfigError::unknown(format!("{path}.parent"), message)
                };
                *numbers.get(parent.as_str()).ok_or_else(missing)?
            }
        };
        if !matches!(nodes[parent].body, BodyPlan::Inner { .. }) {
            return Err(ConfigError::new(
                format!("{path}.parent"),
                "has a queue: a class with a queue has no children",
            ));
        }
        if numbers.insert(&node.name, nodes.len()).is_some() {
            return Err(ConfigError::new(format!("{path}.name"), format!("{:?} already exists", node.name)));
        }
        in_range(&format!("{path}.weight"), node.weight, &(1..=1 << 32), "as a weight")?;
        let shape = node.shape.as_ref().map(|shape| shaper(shape, &format!("{path}.shape"))).transpose()?;
        let body = match &node.queue {
            None => BodyPlan::Inner { sharing: Sharing::Weighted, limit: 0 },
            Some(queue) => leaf(queue, node.shape.as_ref(), &format!("{path}.queue"))?,
        };
        minimums[parent] |= node.minimum_bps > 0;
        let rank = Rank::Weight(node.weight);
        nodes.push(NodePlan { parent, rank, minimum_bps: node.minimum_bps, shape, body });
        names.push(TreeNodePlan {
            name: node.name.clone(),
            parent: node.parent.clone(),
            discipline: node.queue.as_ref().map(|queue| name(queue).to_owned()),
        });
    }
    for (number, _) in minimums.iter().enumerate().filter(|(_, minimum)| **minimum) {
        nodes[number].body = BodyPlan::Inner { sharing: Sharing::Excess, limit: 0 };
    }
    for (index, node) in given.iter().enumerate() {
        let number = index + 1;
        let empty = !nodes.iter().skip(1).any(|below| below.parent == number);
        if node.queue.is_none() && empty {
            let message = "a class without a queue and without classes below it: add a queue";
            return Err(ConfigError::new(format!("{path}[{index}].queue"), message));
        }
    }
    Ok((nodes, names))
}

/// Returns the node of a packet's queue, by its number in the configuration.
pub(crate) fn joined(given: &[TreeNode], number: u8, path: &str) -> Result<usize, ConfigError> {
    let index = in_range(path, u64::from(number), &(0..=given.len() as u64 - 1), "as a node's number")? as usize;
    if given[index].queue.is_none() {
        return Err(ConfigError::new(
            path,
            format!("node {number} is a class, not a queue: use the number of a queue"),
        ));
    }
    Ok(index + 1)
}

fn name(queue: &QueueDiscipline) -> &'static str {
    match queue {
        QueueDiscipline::Pfifo { .. } => "pfifo",
        QueueDiscipline::Bfifo { .. } => "bfifo",
        QueueDiscipline::Red { .. } => "red",
        QueueDiscipline::Codel { .. } => "codel",
        QueueDiscipline::FqCodel { .. } => "fq_codel",
        QueueDiscipline::Pie { .. } => "pie",
        QueueDiscipline::Cake { .. } => "cake",
    }
}

/// Returns a bucket that is filled in steps of at most [`TICK_NS`]; a packet may leave when the bucket holds its
/// length, or is full.
fn shaper(shape: &TreeShape, path: &str) -> Result<ShapePlan, ConfigError> {
    let rate = in_range(&format!("{path}.rate_bps"), shape.rate_bps, &(8..=1_000_000_000_000), "b/s")?;
    in_range(&format!("{path}.burst_bytes"), shape.burst_bytes, &(0..=1 << 32), "bytes")?;
    // Steps of whole bits and nanoseconds if possible; otherwise a step is at most a nanosecond short.
    let divisor = greatest_common_divisor(rate, NANOS_PER_SECOND);
    let (bits, nanos) = (rate / divisor, NANOS_PER_SECOND / divisor);
    let (bc_bits, interval) = if nanos <= TICK_NS {
        let steps = (1_000 / nanos).max(1);
        (bits * steps, nanos * steps)
    } else {
        let bits = (u128::from(rate) * u128::from(TICK_NS) / u128::from(NANOS_PER_SECOND)).max(1) as u64;
        let nanos = u128::from(bits) * u128::from(NANOS_PER_SECOND);
        (bits, (nanos / u128::from(rate)) as u64)
    };
    Ok(ShapePlan {
        mode: ShapeMode::Average,
        cir_bps: rate,
        percent: None,
        bc_bits,
        be_bits: (shape.burst_bytes * 8).saturating_sub(bc_bits),
        interval: Duration(interval.max(1)),
        account: shape.account.as_ref().map(account),
        spaced: false,
        deficit: shape.deficit,
    })
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

fn account(account: &LengthAccount) -> AccountPlan {
    AccountPlan {
        offset: account.offset_bytes,
        least: account.least_bytes,
        cells: account.carrier == Carrier::Atm,
        ptm: account.carrier == Carrier::Ptm,
    }
}

fn micros(us: u32, path: &str) -> Result<Duration, ConfigError> {
    in_range(path, u64::from(us), &(1..=u64::from(u32::MAX)), "µs").map(Duration::from_micros)
}

fn law(
    (target_us, interval_us, ce_threshold_us): (u32, u32, Option<u32>),
    ecn: bool,
    path: &str,
) -> Result<CodelPlan, ConfigError> {
    Ok(CodelPlan {
        target: micros(target_us, &format!("{path}.target_us"))?,
        interval: micros(interval_us, &format!("{path}.interval_us"))?,
        ce_threshold: ce_threshold_us.map(|us| Duration::from_micros(u64::from(us))),
        ecn,
    })
}

fn leaf(queue: &QueueDiscipline, shape: Option<&TreeShape>, path: &str) -> Result<BodyPlan, ConfigError> {
    check(queue, path)?;
    let limited = |limit: u64| {
        QueuePlan::Limited(Box::new(LimitsPlan {
            configured: None,
            in_bytes: true,
            whole: true,
            limit,
            thresholds: None,
        }))
    };
    let plan = match *queue {
        QueueDiscipline::Pfifo { limit } => QueuePlan::Fifo { limit },
        QueueDiscipline::Bfifo { limit } | QueueDiscipline::Red { limit, .. } => limited(limit),
        QueueDiscipline::Codel { limit, target_us, interval_us, ce_threshold_us, ecn } => {
            let law = law((target_us, interval_us, ce_threshold_us), ecn, path)?;
            QueuePlan::Managed(ManagedPlan::Codel(CodelQueuePlan { law, limit }))
        }
        QueueDiscipline::FqCodel {
            limit,
            flows,
            quantum,
            target_us,
            interval_us,
            memory_limit,
            drop_batch,
            ce_threshold_us,
            ecn,
        } => {
            let law = law((target_us, interval_us, ce_threshold_us), ecn, path)?;
            let plan = FqCodelPlan { law, limit, flows, quantum, memory_limit, drop_batch };
            QueuePlan::Managed(ManagedPlan::FqCodel(plan))
        }
        QueueDiscipline::Pie { limit, target_us, tupdate_us, alpha, beta, ecn, bytemode } => {
            let target = micros(target_us, &format!("{path}.target_us"))?;
            let update = micros(tupdate_us, &format!("{path}.tupdate_us"))?;
            QueuePlan::Managed(ManagedPlan::Pie(PiePlan { limit, target, update, alpha, beta, ecn, bytemode }))
        }
        QueueDiscipline::Cake { diffserv, isolation, rtt_us, target_us, memory_limit, wash } => {
            let rtt = micros(rtt_us, &format!("{path}.rtt_us"))?;
            let target = micros(target_us, &format!("{path}.target_us"))?;
            let rate = shape.map_or(0, |shape| shape.rate_bps);
            let (tins, tin_of) = tins(diffserv, rate, target, rtt);
            QueuePlan::Managed(ManagedPlan::Cake(Box::new(CakePlan {
                tins,
                tin_of,
                isolation: isolation_plan(isolation),
                account: shape.and_then(|shape| shape.account.as_ref()).map(account),
                memory_limit: memory_limit.unwrap_or_else(|| cake_memory(rate, rtt_us)),
                wash,
            })))
        }
    };
    Ok(BodyPlan::Leaf { queue: plan, random_detect: random_detect(queue) })
}

/// Checks the ranges of the given values, except times.
fn check(queue: &QueueDiscipline, path: &str) -> Result<(), ConfigError> {
    let within = |field: &str, value: u32, range: RangeInclusive<u64>, unit: &str| {
        in_range(&format!("{path}.{field}"), u64::from(value), &range, unit).map(drop)
    };
    let any = u64::from(u32::MAX);
    match *queue {
        QueueDiscipline::Pfifo { .. } | QueueDiscipline::Bfifo { .. } | QueueDiscipline::Cake { .. } => Ok(()),
        QueueDiscipline::Red { min, max, exponential_weight, denominator, .. } => {
            within("max", max, u64::from(min) + 1..=any, "bytes")?;
            within("exponential_weight", u32::from(exponential_weight), 1..=32, "as an exponent")?;
            within("denominator", denominator, 1..=65_536, "packets")
        }
        QueueDiscipline::Codel { limit, .. } => within("limit", limit, 1..=any, "packets"),
        QueueDiscipline::FqCodel { limit, flows, quantum, drop_batch, .. } => {
            within("limit", limit, 1..=any, "packets")?;
            within("flows", flows, 1..=65_535, "flow queues")?;
            within("quantum", quantum, 1..=1 << 20, "bytes")?;
            within("drop_batch", drop_batch, 1..=1 << 20, "packets")
        }
        QueueDiscipline::Pie { limit, alpha, beta, .. } => {
            within("limit", limit, 1..=any, "packets")?;
            within("alpha", alpha, 0..=32, "sixteenths")?;
            within("beta", beta, 0..=32, "sixteenths")
        }
    }
}

/// Returns early detection in bytes, with the same row for all packets.
fn random_detect(queue: &QueueDiscipline) -> Option<RandomDetectPlan> {
    let QueueDiscipline::Red { min, max, exponential_weight, denominator, ecn, .. } = *queue else { return None };
    let row = |value| ResolvedRandomDetectRow { value, min, max, denominator };
    Some(RandomDetectPlan {
        basis: RandomDetectBasis::Precedence,
        exponential_weight,
        ecn,
        in_bytes: true,
        shown: 0,
        rows: (0..8).map(row).collect(),
    })
}

/// Returns the memory of CAKE's queues in bytes: four times the bytes of a round-trip time, as in Linux; no limit
/// without a rate.
fn cake_memory(rate_bps: u64, rtt_us: u32) -> u64 {
    let by_rate = (u128::from(rate_bps) / 8 * u128::from(rtt_us) * 4 / 1_000_000) as u64;
    if rate_bps == 0 {
        u64::MAX
    } else {
        by_rate.max(CAKE_LEAST_MEMORY)
    }
}

fn isolation_plan(isolation: Isolation) -> IsolationPlan {
    let none = IsolationPlan {
        flows: false,
        source: false,
        destination: false,
        fair_sources: false,
        fair_destinations: false,
    };
    let flows = IsolationPlan { flows: true, ..none };
    match isolation {
        Isolation::Flowblind => none,
        Isolation::Srchost => IsolationPlan { source: true, ..none },
        Isolation::Dsthost => IsolationPlan { destination: true, ..none },
        Isolation::Hosts => IsolationPlan { source: true, destination: true, ..none },
        Isolation::Flows => flows,
        Isolation::DualSrchost => IsolationPlan { fair_sources: true, ..flows },
        Isolation::DualDsthost => IsolationPlan { fair_destinations: true, ..flows },
        Isolation::TripleIsolate => IsolationPlan { fair_sources: true, fair_destinations: true, ..flows },
    }
}

/// Returns the tins: best effort, bulk, and those above best effort (tc-cake(8)); their thresholds are parts of the
/// rate.
fn tins(diffserv: Diffserv, rate_bps: u64, target: Duration, rtt: Duration) -> (Vec<TinPlan>, [u8; 64]) {
    /// Quantum of best effort among several tins.
    const QUANTUM: u32 = 1_024;
    let mut tin_of = [0; 64];
    let parts: &[u32] = match diffserv {
        Diffserv::Besteffort => &[1],
        Diffserv::Diffserv3 => &[1, 16, 4],
        Diffserv::Diffserv4 => &[1, 16, 2, 4],
    };
    // Code points: LE 1, CS1 8, TOS4 4, CS2 16 .. CS7 56, AF21 18 .. AF43 38, VA 44, EF 46.
    let (bulk, video, voice): (&[usize], &[usize], &[usize]) = match diffserv {
        Diffserv::Besteffort => (&[], &[], &[]),
        Diffserv::Diffserv3 => (&[1, 8], &[], &[4, 44, 46, 48, 56]),
        Diffserv::Diffserv4 => (&[1, 8], &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38], &[32, 40, 44, 46, 48, 56]),
    };
    for (points, tin) in [(bulk, 1), (video, 2), (voice, parts.len().saturating_sub(1) as u8)] {
        points.iter().for_each(|point| tin_of[*point] = tin);
    }
    let tins = parts.iter().map(|part| {
        let threshold = rate_bps / u64::from(*part);
        let quantum = if parts.len() == 1 { 65_535 } else { QUANTUM / part };
        tin(threshold, quantum, target, rtt)
    });
    (tins.collect(), tin_of)
}

/// Returns a tin: at a low rate the target is at least one and a half full packets, and the interval twice that.
fn tin(threshold_bps: u64, quantum: u32, target: Duration, rtt: Duration) -> TinPlan {
    let bytes_per_s = threshold_bps / 8;
    let (flow_quantum, mtu_time) = if threshold_bps == 0 {
        (FULL_FRAME, Duration::ZERO)
    } else {
        ((bytes_per_s >> 12).clamp(300, FULL_FRAME), Rate(threshold_bps).time_for_bytes(FULL_FRAME))
    };
    let own = Duration((mtu_time.0 * 3 / 2).max(target.0));
    let interval = Duration((rtt.0 + own.0 - target.0).max(2 * own.0));
    TinPlan { threshold_bps, quantum, flow_quantum: flow_quantum as u32, target: own, interval, mtu_time }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// At 20 Mb/s a full packet takes 605.6 µs and the defaults hold; at 1 Mb/s it takes 12.1 ms, so that the target
    /// becomes 18.2 ms and the interval 113.2 ms (Linux prints `target 18.2ms interval 113.2ms`).
    #[test]
    fn targets_of_slow_tins_grow() {
        let (target, rtt) = (Duration(5 * MS), Duration(100 * MS));
        let fast = tin(20_000_000, 65_535, target, rtt);
        assert_eq!((fast.target, fast.interval, fast.flow_quantum), (target, rtt, 610));
        let slow = tin(1_000_000, 65_535, target, rtt);
        assert_eq!((slow.target, slow.interval, slow.flow_quantum), (Duration(18_168_000), Duration(113_168_000), 300));
    }

    /// tc-cake(8): bulk has a sixteenth, video a half and voice a quarter.
    #[test]
    fn cake_tins_have_their_shares_and_code_points() {
        let (tins, tin_of) = tins(Diffserv::Diffserv4, 16_000_000, Duration(5 * MS), Duration(100 * MS));
        let thresholds: Vec<_> = tins.iter().map(|tin| (tin.threshold_bps / 1_000_000, tin.quantum)).collect();
        assert_eq!(thresholds, [(16, 1_024), (1, 64), (8, 512), (4, 256)]);
        let found = |points: &[usize]| points.iter().map(|point| tin_of[*point]).collect::<Vec<_>>();
        assert_eq!(found(&[0, 10, 8, 1, 34, 26, 18, 46, 48, 40]), [0, 0, 1, 1, 2, 2, 2, 3, 3, 3]);
        let (tins, tin_of) = super::tins(Diffserv::Diffserv3, 0, Duration(5 * MS), Duration(100 * MS));
        assert_eq!((tins.len(), tin_of[46], tin_of[34], tin_of[8]), (3, 2, 0, 1));
        assert_eq!((tins[2].threshold_bps, tins[2].flow_quantum, tins[2].quantum), (0, 1_514, 256));
    }

    /// The steps of a bucket keep the rate to within 1 in 20 000, and exactly if it divides evenly.
    #[test]
    fn token_bucket_steps_keep_the_rate() {
        for rate in [8, 999, 64_000, 999_999, 1_234_567, 20_000_000, 10_000_000_000, 999_999_999_999] {
            let plan =
                shaper(&TreeShape { rate_bps: rate, burst_bytes: 0, deficit: false, account: None }, "x").unwrap();
            let found = plan.bc_bits as f64 * 1e9 / plan.interval.0 as f64;
            assert!((found / rate as f64 - 1.0).abs() < 1.0 / 1_000.0, "{rate}: {found}");
            assert!(plan.interval.0 <= TICK_NS || plan.bc_bits == 1, "{rate}: {plan:?}");
        }
        let exact =
            shaper(&TreeShape { rate_bps: 20_000_000, burst_bytes: 0, deficit: false, account: None }, "x").unwrap();
        assert_eq!((exact.bc_bits, exact.interval), (20, Duration(1_000)));
    }
}
