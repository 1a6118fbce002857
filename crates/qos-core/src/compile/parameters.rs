//! Values of policers, shapers and queues: the configuration with the generation's defaults filled in.
//!
//! Errors carry a path relative to the class; the caller puts the class's own in front.

use std::ops::RangeInclusive;

use crate::compile::generation::{ClassQueues, Properties, ShapeInterval};
use crate::compile::order::check_order;
use crate::compile::queue_limit;
use crate::compile::range::{
    in_range, DYNAMIC_FIRST_GROWTHS, DYNAMIC_GROWTHS, DYNAMIC_SHARES, DYNAMIC_SIZES, DYNAMIC_TIMES_MS, FLOW_LIMITS,
    POLICE_BURSTS, POLICE_RATES, SHAPE_BUFFERS, SHAPE_BURSTS, SHAPE_BURST_MS, SHAPE_RATES,
};
use crate::config::defaults;
use crate::config::policy::{
    greatest, DynamicBucketConfig, PoliceAction, PoliceBurst, PoliceConfig, PolicyClass, RateSpec, ShapeBurst,
    ShapeConfig,
};
use crate::counters::queue::DisciplineName;
use crate::counters::resolved::{ResolvedFairQueue, ResolvedPolice, ResolvedShape};
use crate::error::ConfigError;
use crate::plan::classes::CLASS_DEFAULT;
use crate::plan::police::{Algorithm, DynamicPlan, PolicePlan};
use crate::plan::queue::{QueuePlan, ShownLimit};
use crate::plan::shape::ShapePlan;
use crate::time::{Duration, NANOS_PER_SECOND};

const FLOW_QUEUES: RangeInclusive<u32> = 16..=4_096;

/// Returns the rate in bits per second (`None`: a percentage of an unknown value) and the percentage.
fn rate(
    path: &str,
    spec: RateSpec,
    base_bps: Option<u64>,
    range: &RangeInclusive<u64>,
) -> Result<(Option<u64>, Option<u32>), ConfigError> {
    match spec {
        RateSpec::Bps(bps) => Ok((Some(in_range(path, bps, range, "b/s")?), None)),
        RateSpec::Percent(percent) => {
            in_range(path, u64::from(percent), &(1..=100), "per cent")?;
            let bps = match base_bps {
                None => None,
                Some(base) => {
                    let bps = u128::from(base) * u128::from(percent) / 100;
                    let bps = u64::try_from(bps).unwrap_or(u64::MAX);
                    if bps == 0 || bps > *range.end() {
                        let message = format!("{percent} per cent of {base} b/s gives an impossible rate of {bps} b/s");
                        return Err(ConfigError::out_of_range(path, message));
                    }
                    Some(bps)
                }
            };
            Ok((bps, Some(percent)))
        }
    }
}

fn default_police_burst(bps: u64) -> u64 {
    (bps / defaults::POLICE_BURST_DIVISOR).clamp(defaults::POLICE_LEAST_BURST, *POLICE_BURSTS.end())
}

/// Returns the bytes of a burst; with `zero`, a burst of 0 is valid.
fn police_burst(path: &str, burst: PoliceBurst, bps: Option<u64>, zero: bool) -> Result<Option<u64>, ConfigError> {
    match burst {
        PoliceBurst::Bytes(0) | PoliceBurst::Ms(0) if zero => Ok(Some(0)),
        PoliceBurst::Bytes(bytes) => Ok(Some(in_range(path, bytes, &POLICE_BURSTS, "bytes")?)),
        PoliceBurst::Ms(ms) => {
            in_range(path, ms, &(1..=2_000), "ms")?;
            let Some(bps) = bps else { return Ok(None) };
            let bytes = u64::try_from(u128::from(bps) * u128::from(ms) / 8_000).unwrap_or(u64::MAX);
            if bytes == 0 || bytes > *POLICE_BURSTS.end() {
                return Err(ConfigError::out_of_range(
                    path,
                    format!("{ms} ms of {bps} b/s gives a burst of {bytes} bytes"),
                ));
            }
            Ok(Some(bytes))
        }
    }
}

fn check_actions(path: &str, actions: Option<&[PoliceAction]>) -> Result<(), ConfigError> {
    use crate::config::policy::SetField;
    let Some(actions) = actions else { return Ok(()) };
    if actions.is_empty() {
        return Err(ConfigError::new(path, "no action: expected at least one, or null for the default"));
    }
    for (index, action) in actions.iter().enumerate() {
        let (field, value) = match *action {
            PoliceAction::Transmit {} | PoliceAction::Drop {} | PoliceAction::PolicedDscpTransmit {} => continue,
            PoliceAction::SetDscpTransmit { value } => (SetField::Dscp, value),
            PoliceAction::SetPrecTransmit { value } => (SetField::Precedence, value),
            PoliceAction::SetQosTransmit { value } => (SetField::QosGroup, value),
            PoliceAction::SetCosTransmit { value } => (SetField::Cos, value),
            PoliceAction::SetDiscardClassTransmit { value } => (SetField::DiscardClass, value),
        };
        if value > greatest(field) {
            let message = format!("{value} is out of range: expected 0 to {}", greatest(field));
            return Err(ConfigError::out_of_range(format!("{path}[{index}].value"), message));
        }
    }
    Ok(())
}

/// Returns a policer's values; those that depend on `base_bps` (interface bandwidth or parent's shape rate) are null
/// without it.
///
/// Algorithm: two rates with a `pir`; two buckets with a `violate` action or an explicit `be` (the latter is an
/// interpretation: without a second bucket the burst would be meaningless); else one bucket.
pub(crate) fn police(config: &PoliceConfig, base_bps: Option<u64>) -> Result<ResolvedPolice, ConfigError> {
    let (cir_bps, cir_percent) = rate("police.cir", config.cir, base_bps, &POLICE_RATES)?;
    let (pir_bps, pir_percent) = match config.pir {
        None => (None, None),
        Some(pir) => rate("police.pir", pir, base_bps, &POLICE_RATES)?,
    };
    let bc_bytes = match config.bc {
        Some(burst) => police_burst("police.bc", burst, cir_bps, false)?,
        None => cir_bps.map(default_police_burst),
    };
    check_actions("police.conform", config.conform.as_deref())?;
    check_actions("police.exceed", config.exceed.as_deref())?;
    check_actions("police.violate", config.violate.as_deref())?;
    let others = [config.bc.is_some(), config.pir.is_some(), config.be.is_some(), config.violate.is_some()];
    if config.dynamic.is_some() && others.contains(&true) {
        let message = "a policer with a dynamic bucket has no other bucket: leave out bc, pir, be and violate";
        return Err(ConfigError::new("police.dynamic", message));
    }
    let dynamic = config.dynamic.map(|dynamic| dynamic_bucket(dynamic, cir_bps)).transpose()?;
    let bc_bytes = dynamic.map_or(bc_bytes, |dynamic| dynamic.initial_bytes);
    let two_rate = config.pir.is_some() && (defaults::PEAK_RATE_ALONE_MAKES_TWO_RATES || config.violate.is_some());
    let two_buckets = two_rate || config.violate.is_some() || config.be.is_some();
    let be_bytes = match config.be {
        Some(burst) => police_burst("police.be", burst, if two_rate { pir_bps } else { cir_bps }, !two_rate)?,
        None if two_rate => pir_bps.map(default_police_burst),
        None if two_buckets => bc_bytes,
        None => None,
    };
    let conform = config.conform.clone().unwrap_or_else(|| vec![PoliceAction::Transmit {}]);
    let exceed = config.exceed.clone().unwrap_or_else(|| vec![PoliceAction::Drop {}]);
    let violate = two_buckets.then(|| config.violate.clone().unwrap_or_else(|| exceed.clone()));
    let resolved = ResolvedPolice {
        form: config.form,
        cir_bps,
        cir_percent,
        bc_bytes,
        pir_bps,
        pir_percent,
        be_bytes,
        conform,
        exceed,
        violate,
        dynamic,
    };
    check_order(&resolved)?;
    Ok(resolved)
}

/// Returns the values of a dynamic bucket with every default filled in; the maximum size is null if it depends on an
/// unknown rate.
fn dynamic_bucket(config: DynamicBucketConfig, cir_bps: Option<u64>) -> Result<DynamicBucketConfig, ConfigError> {
    let path = |field: &str| format!("police.dynamic.{field}");
    let size = |field: &str, bytes: u64| in_range(&path(field), bytes, &DYNAMIC_SIZES, "bytes");
    let share = |field: &str, percent: Option<u32>, default: u32, range: &RangeInclusive<u64>| {
        let percent = percent.unwrap_or(default);
        in_range(&path(field), u64::from(percent), range, "per cent")?;
        Ok(Some(percent))
    };
    let initial = size("initial_bytes", config.initial_bytes.unwrap_or(defaults::DYNAMIC_INITIAL_BYTES))?;
    let minimum = size("minimum_bytes", config.minimum_bytes.unwrap_or(defaults::DYNAMIC_MINIMUM_BYTES))?;
    let maximum = match (config.maximum_bytes, cir_bps) {
        (Some(bytes), _) => Some(size("maximum_bytes", bytes)?),
        (None, None) => None,
        (None, Some(bps)) => {
            let bytes = u128::from(bps) * u128::from(defaults::DYNAMIC_MAXIMUM_MS) / 8_000;
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).min(*DYNAMIC_SIZES.end());
            Some(bytes.max(initial).max(minimum))
        }
    };
    let monitoring_ms = config.monitoring_ms.unwrap_or(defaults::DYNAMIC_MONITORING_MS);
    let idle_ms = config.idle_ms.unwrap_or(defaults::DYNAMIC_IDLE_MS);
    in_range(&path("monitoring_ms"), monitoring_ms, &DYNAMIC_TIMES_MS, "ms")?;
    in_range(&path("idle_ms"), idle_ms, &DYNAMIC_TIMES_MS, "ms")?;
    let first_growths = config.first_growths.unwrap_or(defaults::DYNAMIC_FIRST_GROWTHS);
    in_range(&path("first_growths"), u64::from(first_growths), &DYNAMIC_FIRST_GROWTHS, "growths")?;
    let first_growth = config.first_growth_percent;
    Ok(DynamicBucketConfig {
        initial_bytes: Some(initial),
        minimum_bytes: Some(minimum),
        maximum_bytes: maximum,
        monitoring_ms: Some(monitoring_ms),
        idle_ms: Some(idle_ms),
        first_growth_percent: share(
            "first_growth_percent",
            first_growth,
            defaults::DYNAMIC_FIRST_GROWTH_PERCENT,
            &DYNAMIC_GROWTHS,
        )?,
        first_growths: Some(first_growths),
        growth_percent: share(
            "growth_percent",
            config.growth_percent,
            defaults::DYNAMIC_GROWTH_PERCENT,
            &DYNAMIC_GROWTHS,
        )?,
        shrink_percent: share(
            "shrink_percent",
            config.shrink_percent,
            defaults::DYNAMIC_SHRINK_PERCENT,
            &DYNAMIC_SHARES,
        )?,
        spare_percent: share("spare_percent", config.spare_percent, defaults::DYNAMIC_SPARE_PERCENT, &DYNAMIC_SHARES)?,
    })
}

fn dynamic_plan(resolved: &DynamicBucketConfig) -> Option<DynamicPlan> {
    Some(DynamicPlan {
        initial_bytes: resolved.initial_bytes?,
        minimum_bytes: resolved.minimum_bytes?,
        maximum_bytes: resolved.maximum_bytes?,
        monitoring: Duration::from_millis(resolved.monitoring_ms?),
        idle: Duration::from_millis(resolved.idle_ms?),
        first_growth_percent: resolved.first_growth_percent?,
        first_growths: resolved.first_growths?,
        growth_percent: resolved.growth_percent?,
        shrink_percent: resolved.shrink_percent?,
        spare_percent: resolved.spare_percent?,
    })
}

/// Returns the policer with values that were resolved with a base.
pub(crate) fn police_plan(resolved: &ResolvedPolice) -> Option<PolicePlan> {
    let two_rate = resolved.pir_bps.is_some() || resolved.pir_percent.is_some();
    let algorithm = match (&resolved.violate, two_rate) {
        (None, _) => Algorithm::SingleBucket,
        (Some(_), false) => Algorithm::SingleRate,
        (Some(_), true) => Algorithm::TwoRate { pir_bps: resolved.pir_bps? },
    };
    Some(PolicePlan {
        form: resolved.form,
        cir_bps: resolved.cir_bps?,
        cir_percent: resolved.cir_percent,
        pir_percent: resolved.pir_percent,
        bc_bytes: resolved.bc_bytes?,
        be_bytes: if resolved.violate.is_some() { resolved.be_bytes? } else { 0 },
        algorithm,
        account: None,
        dynamic: match resolved.dynamic {
            None => None,
            Some(dynamic) => Some(dynamic_plan(&dynamic)?),
        },
        conform: resolved.conform.clone(),
        exceed: resolved.exceed.clone(),
        violate: resolved.violate.clone().unwrap_or_default(),
    })
}

fn shape_burst(path: &str, burst: ShapeBurst, cir_bps: Option<u64>, zero: bool) -> Result<Option<u64>, ConfigError> {
    match burst {
        ShapeBurst::Bits(0) | ShapeBurst::Ms(0) if zero => Ok(Some(0)),
        ShapeBurst::Bits(bits) => Ok(Some(in_range(path, bits, &SHAPE_BURSTS, "bits")?)),
        ShapeBurst::Ms(ms) => {
            in_range(path, ms, &SHAPE_BURST_MS, "ms")?;
            let Some(cir_bps) = cir_bps else { return Ok(None) };
            // The documented range is that of the typed value for bits, and that of the milliseconds for milliseconds.
            let bits = u64::try_from(u128::from(cir_bps) * u128::from(ms) / 1_000).unwrap_or(u64::MAX);
            if bits == 0 {
                return Err(ConfigError::out_of_range(
                    path,
                    format!("{ms} ms of {cir_bps} b/s gives a burst of {bits} bits"),
                ));
            }
            Ok(Some(bits))
        }
    }
}

fn interval(bc_bits: u64, cir_bps: u64) -> Duration {
    let nanos = (u128::from(bc_bits) * u128::from(NANOS_PER_SECOND) + u128::from(cir_bps) / 2) / u128::from(cir_bps);
    Duration(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Returns a shaper's values; those that depend on `base_bps` are null without it.
pub(crate) fn shape(
    config: &ShapeConfig,
    base_bps: Option<u64>,
    default_interval: ShapeInterval,
) -> Result<ResolvedShape, ConfigError> {
    let (cir_bps, percent) = rate("shape.rate", config.rate, base_bps, &SHAPE_RATES)?;
    let bc_bits = match config.bc {
        Some(burst) => shape_burst("shape.bc", burst, cir_bps, false)?,
        None => cir_bps.map(|cir| default_interval.burst_bits(cir)),
    };
    let be_bits = match config.be {
        Some(burst) => shape_burst("shape.be", burst, cir_bps, true)?,
        None => bc_bits,
    };
    let mut resolved = ResolvedShape {
        mode: config.mode,
        cir_bps,
        percent,
        target_bps: None,
        bc_bits,
        be_bits,
        interval_ms: None,
        byte_limit: None,
        increment_bytes: None,
    };
    if let (Some(cir_bps), Some(bc_bits), Some(be_bits)) = (cir_bps, bc_bits, be_bits) {
        let interval = interval(bc_bits, cir_bps);
        // A shorter interval could not be represented to a thousandth in whole nanoseconds.
        if bc_bits == 0 || interval < Duration::from_micros(1) {
            let message =
                format!("a burst of {bc_bits} bits at {cir_bps} b/s gives an interval of {interval}: use a larger bc");
            return Err(ConfigError::out_of_range("shape.bc", message));
        }
        let plan = ShapePlan {
            mode: config.mode,
            cir_bps,
            percent,
            bc_bits,
            be_bits,
            interval,
            account: None,
            spaced: false,
            deficit: false,
        };
        resolved.target_bps = Some(plan.target_bps());
        resolved.interval_ms = Some(interval.0 / 1_000_000);
        resolved.byte_limit = Some(plan.limit_bits() / 8);
        resolved.increment_bytes = Some(plan.increment_bits() / 8);
    }
    Ok(resolved)
}

/// Returns the shaper with values that were resolved with a base.
pub(crate) fn shape_plan(resolved: &ResolvedShape) -> Option<ShapePlan> {
    let (cir_bps, bc_bits) = (resolved.cir_bps?, resolved.bc_bits?);
    Some(ShapePlan {
        mode: resolved.mode,
        cir_bps,
        percent: resolved.percent,
        bc_bits,
        be_bits: resolved.be_bits?,
        interval: interval(bc_bits, cir_bps),
        account: None,
        spaced: false,
        deficit: false,
    })
}

/// Returns a number of flow queues.
pub(crate) fn flow_queues(path: &str, queues: u32) -> Result<u32, ConfigError> {
    if FLOW_QUEUES.contains(&queues) && queues.is_power_of_two() {
        return Ok(queues);
    }
    Err(ConfigError::out_of_range(path, format!("{queues} flow queues: expected a power of two from 16 to 4096")))
}

/// Returns classic weighted fair queueing of unclassified traffic. With classes it is limited by the interface's
/// hold-queue, behind a shaper by its own `buffers`.
pub(crate) fn flow_queueing(
    flows: Option<u32>,
    threshold: Option<u32>,
    bandwidth_kbps: Option<u64>,
    buffers: Option<u32>,
) -> QueuePlan {
    QueuePlan::WeightedFair {
        flows: flows.unwrap_or_else(|| defaults::dynamic_queues(bandwidth_kbps.unwrap_or(u64::MAX))),
        threshold: threshold.unwrap_or(defaults::CONGESTIVE_DISCARD_THRESHOLD),
        total: buffers,
    }
}

/// Returns the queue of a class without priority. `bandwidth_kbps` is that of the interface, and milliseconds of the
/// class's limit are of `rate_bps`, if known; `weight` is that of the class in the classic generation.
pub(crate) fn class_queue(
    class: &PolicyClass,
    (bandwidth_kbps, rate_bps): (Option<u64>, Option<u64>),
    properties: &Properties,
    weight: Option<u64>,
) -> Result<QueuePlan, ConfigError> {
    let asked = class.fair_queue.is_some();
    let separate = properties.class_queues == ClassQueues::Separate;
    if separate && (asked && mistaken!(FairQueueMissing) || !asked && !mistaken!(FairQueueUnasked)) {
        return queue_limit::fifo(class, rate_bps, properties);
    }
    let limit = queue_limit::packets(class)?;
    let flows = match class.fair_queue {
        None => None,
        Some(fair) => Some(fair.queues.map(|queues| flow_queues("fair_queue.queues", queues)).transpose()?),
    };
    let fair = flows.is_some();
    let flows = flows.flatten();
    Ok(match properties.class_queues {
        // A classic shaper always has weighted fair queueing, and so have packets that no class matches; class-default
        // with a bandwidth is a class like others.
        ClassQueues::Conversations
            if fair || class.shape.is_some() || (class.name == CLASS_DEFAULT && class.bandwidth.is_none()) =>
        {
            let buffers = class.shape_buffers.unwrap_or(defaults::GTS_BUFFERS);
            in_range("shape_buffers", u64::from(buffers), &SHAPE_BUFFERS, "packets")?;
            flow_queueing(flows, limit, bandwidth_kbps, class.shape.is_some().then_some(buffers))
        }
        ClassQueues::Conversations => QueuePlan::Conversation { limit: limit.unwrap_or(defaults::QUEUE_LIMIT), weight },
        ClassQueues::Separate => {
            let limit = limit.unwrap_or_else(|| properties.queue_limit.packets(rate_bps));
            let given = class.fair_queue.and_then(|fair| fair.queue_limit);
            if let Some(packets) = given {
                in_range("fair_queue.queue_limit", u64::from(packets), &FLOW_LIMITS, "packets")?;
            }
            let limits_flows = class.random_detect.is_none() || properties.flow_limit_with_random_detect;
            QueuePlan::FairQueue {
                flows: if mistaken!(FlowQueuesFew) { 64 } else { flows.unwrap_or(properties.class_flow_queues) },
                // With HQF only the thresholds of early detection apply to all flows together.
                per_flow: given.or_else(|| {
                    limits_flows.then(|| match limit {
                        limit if mistaken!(FlowLimitWhole) => limit,
                        limit => (limit / defaults::FLOW_LIMIT_DIVISOR).max(1),
                    })
                }),
                limit,
                limits_sum: properties.flows_share_limit,
            }
        }
    })
}

/// Returns a queue's values as `resolve` shows them.
pub(crate) fn resolved_queue(plan: &QueuePlan) -> (ShownLimit, Option<ResolvedFairQueue>) {
    let fair = match *plan {
        QueuePlan::Fifo { .. } | QueuePlan::Limited(_) | QueuePlan::Conversation { .. } | QueuePlan::Managed(_) => None,
        QueuePlan::WeightedFair { flows, threshold, .. } => Some(ResolvedFairQueue {
            discipline: DisciplineName::WeightedFair,
            queues: flows,
            per_flow_limit: None,
            discard_threshold: Some(threshold),
        }),
        QueuePlan::FairQueue { flows, per_flow, .. } => Some(ResolvedFairQueue {
            discipline: DisciplineName::FairQueue,
            queues: flows,
            per_flow_limit: per_flow,
            discard_threshold: None,
        }),
    };
    (plan.limit(), fair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::generation::properties;
    use crate::config::policy::ShapeMode;
    use crate::config::router::Generation;

    fn shaped(cir: u64, interval: ShapeInterval) -> ResolvedShape {
        let config = ShapeConfig { mode: ShapeMode::Average, rate: RateSpec::Bps(cir), bc: None, be: None };
        shape(&config, None, interval).unwrap()
    }

    fn row(cir: u64, interval: ShapeInterval) -> [u64; 5] {
        let s = shaped(cir, interval);
        [
            s.byte_limit.unwrap(),
            s.bc_bits.unwrap(),
            s.be_bits.unwrap(),
            s.interval_ms.unwrap(),
            s.increment_bytes.unwrap(),
        ]
    }

    #[test]
    fn classic_shaper_prints_the_published_figures() {
        assert_eq!(row(1_000_000, ShapeInterval::CLASSIC), [6250, 25_000, 25_000, 25, 3125]);
        assert_eq!(row(512_000, ShapeInterval::CLASSIC), [3200, 12_800, 12_800, 25, 1600]);
        assert_eq!(row(320_000, ShapeInterval::CLASSIC), [2000, 8_000, 8_000, 25, 1000]);
        assert_eq!(row(256_000, ShapeInterval::CLASSIC), [1984, 7_936, 7_936, 31, 992]);
        assert_eq!(row(128_000, ShapeInterval::CLASSIC), [1984, 7_936, 7_936, 62, 992]);
        assert_eq!(row(64_000, ShapeInterval::CLASSIC), [2000, 8_000, 8_000, 125, 1000]);
        assert_eq!(row(8_000, ShapeInterval::CLASSIC), [2000, 8_000, 8_000, 1000, 1000]);
    }

    #[test]
    fn hqf_shaper_has_an_interval_of_4_ms() {
        for (cir, burst) in
            [(80_000, 320), (500_000, 2_000), (8_000_000, 32_000), (20_000_000, 80_000), (99_872_000, 399_488)]
        {
            let s = shaped(cir, properties(Generation::Hqf).shape_interval);
            assert_eq!((s.bc_bits, s.be_bits, s.interval_ms), (Some(burst), Some(burst), Some(4)));
        }
    }

    #[test]
    fn explicit_shaper_bursts_are_used() {
        let config = ShapeConfig { mode: ShapeMode::Peak, rate: RateSpec::Bps(512_000), bc: None, be: None };
        assert_eq!(shape(&config, None, ShapeInterval::CLASSIC).unwrap().target_bps, Some(1_024_000));
        let config = ShapeConfig {
            mode: ShapeMode::Average,
            rate: RateSpec::Bps(56_000),
            bc: Some(ShapeBurst::Bits(7_000)),
            be: Some(ShapeBurst::Bits(0)),
        };
        let s = shape(&config, None, ShapeInterval::CLASSIC).unwrap();
        assert_eq!(
            (s.byte_limit, s.be_bits, s.interval_ms, s.increment_bytes),
            (Some(875), Some(0), Some(125), Some(875))
        );
    }

    fn policed(cir: RateSpec, pir: Option<RateSpec>, violate: bool) -> PoliceConfig {
        PoliceConfig {
            cir,
            bc: None,
            pir,
            be: None,
            conform: None,
            exceed: None,
            violate: violate.then(|| vec![PoliceAction::Drop {}]),
            form: crate::config::policy::PoliceForm::Cir,
            account: None,
            dynamic: None,
        }
    }

    #[test]
    fn policer_has_default_bursts() {
        for (cir, bc) in [(8_000, 1_500), (1_000_000, 31_250), (50_000_000, 1_562_500)] {
            let r = police(&policed(RateSpec::Bps(cir), None, false), None).unwrap();
            assert_eq!((r.bc_bytes, r.be_bytes, &r.violate), (Some(bc), None, &None));
        }
        let r = police(&policed(RateSpec::Bps(8_000), None, true), None).unwrap();
        assert_eq!((r.bc_bytes, r.be_bytes), (Some(1_500), Some(1_500)));
        let r = police(&policed(RateSpec::Bps(128_000), Some(RateSpec::Bps(256_000)), false), None).unwrap();
        assert_eq!((r.bc_bytes, r.be_bytes), (Some(4_000), Some(8_000)));
        let none = PoliceConfig { be: Some(PoliceBurst::Bytes(0)), ..policed(RateSpec::Bps(8_000), None, true) };
        assert_eq!(police(&none, None).unwrap().be_bytes, Some(0));
        assert_eq!(r.violate, Some(vec![PoliceAction::Drop {}]));
        assert_eq!(police_plan(&r).unwrap().algorithm, Algorithm::TwoRate { pir_bps: 256_000 });
        let r = police(&policed(RateSpec::Percent(50), None, false), None).unwrap();
        assert_eq!((r.cir_bps, r.cir_percent, r.bc_bytes), (None, Some(50), None));
        let r = police(&policed(RateSpec::Percent(50), None, false), Some(2_000_000)).unwrap();
        assert_eq!((r.cir_bps, r.bc_bytes), (Some(1_000_000), Some(31_250)));
    }

    #[test]
    fn impossible_values_are_refused_with_their_path() {
        let error = police(&policed(RateSpec::Bps(7_999), None, false), None).unwrap_err();
        assert_eq!(error.path, "police.cir");
        assert_eq!(error.message, "7999 b/s is out of range: expected 8000 to 100000000000 b/s");
        let error = police(&policed(RateSpec::Bps(128_000), Some(RateSpec::Bps(64_000)), false), None).unwrap_err();
        assert_eq!(error.path, "police.pir");
        let config = PoliceConfig { bc: Some(PoliceBurst::Bytes(10)), ..policed(RateSpec::Bps(8_000), None, false) };
        assert_eq!(police(&config, None).unwrap_err().path, "police.bc");
        let peak = policed(RateSpec::Bps(8_000), Some(RateSpec::Bps(16_000)), false);
        let config = PoliceConfig { be: Some(PoliceBurst::Bytes(0)), ..peak };
        assert_eq!(police(&config, None).unwrap_err().path, "police.be");
        assert_eq!(police(&policed(RateSpec::Percent(0), None, false), None).unwrap_err().path, "police.cir");
    }
}
