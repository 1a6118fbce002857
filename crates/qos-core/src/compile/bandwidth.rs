//! Values of bandwidth, priority and random early detection: the configuration with defaults filled in.
//!
//! Errors carry a path relative to the class; the caller puts the class's own in front.

use crate::compile::generation::Properties;
use crate::compile::queue_limit::Depth;
use crate::compile::range::{in_range, PRIORITY_BURSTS, RATES_KBPS};
use crate::config::defaults;
use crate::config::policy::PolicyClass;
use crate::config::queueing::{
    BandwidthConfig, LimitUnit, PriorityConfig, PriorityUnit, QueueLimit, RandomDetectBasis, RandomDetectThreshold,
};
use crate::counters::policy::BandwidthCounters;
use crate::counters::resolved::{ResolvedPriority, ResolvedRandomDetectRow};
use crate::error::ConfigError;
use crate::plan::queue::RandomDetectPlan;

fn kbps_of(percent: u64, base_bps: Option<u64>) -> Option<u64> {
    base_bps.map(|base| u64::try_from(u128::from(base) * u128::from(percent) / 100_000).unwrap_or(u64::MAX))
}

/// Returns the bandwidth of a class; `kbps` is null if it depends on an unknown base.
pub(crate) fn bandwidth(
    config: BandwidthConfig,
    base_bps: Option<u64>,
    properties: &Properties,
) -> Result<BandwidthCounters, ConfigError> {
    let none = BandwidthCounters { kbps: None, percent: None, remaining_percent: None, remaining_ratio: None };
    let per_cent = |percent: u32, path: &str| in_range(path, u64::from(percent), &(1..=100), "per cent");
    Ok(match config {
        BandwidthConfig::Kbps(kbps) => {
            BandwidthCounters { kbps: Some(in_range("bandwidth.kbps", kbps, &RATES_KBPS, "kb/s")?), ..none }
        }
        BandwidthConfig::Percent(percent) => {
            let kbps = kbps_of(per_cent(percent, "bandwidth.percent")?, base_bps);
            BandwidthCounters { kbps, percent: Some(percent), ..none }
        }
        BandwidthConfig::RemainingPercent(percent) => {
            per_cent(percent, "bandwidth.remaining_percent")?;
            BandwidthCounters { remaining_percent: Some(percent), ..none }
        }
        BandwidthConfig::RemainingRatio(ratio) => {
            in_range("bandwidth.remaining_ratio", u64::from(ratio), &(1..=properties.greatest_ratio), "parts")?;
            BandwidthCounters { remaining_ratio: Some(ratio), ..none }
        }
    })
}

/// Returns a priority class's values; those that depend on a base that is not known here are null.
pub(crate) fn priority(
    config: PriorityConfig,
    base_bps: Option<u64>,
    properties: &Properties,
) -> Result<ResolvedPriority, ConfigError> {
    let missing = || ConfigError::new("priority.number", "null: set a rate, or the unit strict");
    let (kbps, percent) = match (config.unit, config.number) {
        (PriorityUnit::Strict, None) => (None, None),
        (PriorityUnit::Strict, Some(number)) => {
            return Err(ConfigError::new("priority.number", format!("{number}: strict priority has no rate: use null")))
        }
        (PriorityUnit::Kbps, number) => {
            (Some(in_range("priority.number", number.ok_or_else(missing)?, &RATES_KBPS, "kb/s")?), None)
        }
        (PriorityUnit::Percent, number) => {
            let percent = in_range("priority.number", number.ok_or_else(missing)?, &(1..=100), "per cent")?;
            (kbps_of(percent, base_bps), Some(percent as u32))
        }
    };
    let burst_bytes = match config.burst_bytes {
        Some(burst) if config.unit == PriorityUnit::Strict => {
            let message = format!("{burst}: strict priority is not policed: use null");
            return Err(ConfigError::new("priority.burst_bytes", message));
        }
        Some(burst) => Some(in_range("priority.burst_bytes", burst, &PRIORITY_BURSTS, "bytes")?),
        None => kbps.map(|kbps| {
            let step = properties.priority_burst_step_kbps;
            kbps / step * step * defaults::PRIORITY_BURST_MS / 8
        }),
    };
    let level = config.level.unwrap_or(1);
    in_range("priority.level", u64::from(level), &(1..=2), "")?;
    Ok(ResolvedPriority { unit: config.unit, kbps, percent, burst_bytes, level })
}

/// Returns the random early detection of a class, with the generation's defaults. Milliseconds are of `rate_bps`;
/// without it, thresholds in milliseconds have no rows.
pub(crate) fn random_detect(
    class: &PolicyClass,
    properties: &Properties,
    rate_bps: Option<u64>,
) -> Result<Option<RandomDetectPlan>, ConfigError> {
    let Some(config) = &class.random_detect else { return Ok(None) };
    let exponential_weight = config.exponential_weight.unwrap_or(defaults::RANDOM_DETECT_WEIGHT);
    in_range("random_detect.exponential_weight", u64::from(exponential_weight), &(1..=16), "")?;
    let depth = Depth::of(class, rate_bps)?;
    let limit = depth.limit(class, properties)?;
    let unit = config.unit.filter(|unit| *unit == LimitUnit::Percent).unwrap_or(depth.unit);
    let values = match config.basis {
        RandomDetectBasis::Dscp => 64,
        RandomDetectBasis::Precedence | RandomDetectBasis::Cos | RandomDetectBasis::DiscardClass => 8,
    };
    let by_limit = depth.in_bytes() || properties.random_detect_by_limit;
    let default = |value| default_row(config.basis, value, properties, limit.filter(|_| by_limit));
    let mut rows: Vec<_> = (0..values).map(default).collect();
    for (index, given) in config.thresholds.iter().enumerate() {
        let path = format!("random_detect.thresholds[{index}]");
        let Some(row) = rows.get_mut(usize::from(given.value)) else {
            let message = format!("{} is out of range: expected 0 to {}", given.value, values - 1);
            return Err(ConfigError::out_of_range(format!("{path}.value"), message));
        };
        let (min, max) = thresholds(given, Depth { unit, ..depth }, (limit, properties), &path)?;
        let denominator = given.denominator.unwrap_or(defaults::RANDOM_DETECT_DENOMINATOR);
        in_range(&format!("{path}.denominator"), u64::from(denominator), &(1..=65_536), "")?;
        *row = ResolvedRandomDetectRow { value: given.value, min, max, denominator };
    }
    if matches!(depth.unit, LimitUnit::Ms | LimitUnit::Us) && rate_bps.is_none() {
        rows.clear();
    }
    let (basis, ecn, in_bytes) = (config.basis, config.ecn, depth.in_bytes());
    // IOS-XE prints rows for all typed code points, with or without packets.
    let typed = config.thresholds.iter().fold(0, |set, given| set | (1 << given.value));
    let shown = if properties.random_detect_by_limit { typed } else { 0 };
    Ok(Some(RandomDetectPlan { basis, exponential_weight, ecn, in_bytes, shown, rows }))
}

/// Returns the thresholds of a value without explicit ones; in a queue with a `limit` they follow from it.
fn default_row(
    basis: RandomDetectBasis,
    value: u8,
    properties: &Properties,
    limit: Option<u64>,
) -> ResolvedRandomDetectRow {
    let (by_precedence, by_drop) = (properties.random_detect_min, properties.random_detect_min_by_dscp);
    let (min, max) = match (limit, basis) {
        (Some(limit), _) => defaults::random_detect_by_limit(value, basis == RandomDetectBasis::Dscp, limit),
        (None, RandomDetectBasis::Dscp) => {
            (defaults::random_detect_min_by_dscp(value, by_precedence, by_drop), defaults::RANDOM_DETECT_MAX)
        }
        // The use of precedence rows for classes of service and discard classes is inferred.
        (None, RandomDetectBasis::Precedence | RandomDetectBasis::Cos | RandomDetectBasis::DiscardClass) => {
            (by_precedence[usize::from(value)], defaults::RANDOM_DETECT_MAX)
        }
    };
    ResolvedRandomDetectRow { value, min, max, denominator: defaults::RANDOM_DETECT_DENOMINATOR }
}

/// Returns the configured minimum and maximum threshold, in packets or bytes.
fn thresholds(
    given: &RandomDetectThreshold,
    depth: Depth,
    (limit, properties): (Option<u64>, &Properties),
    path: &str,
) -> Result<(u32, u32), ConfigError> {
    let most_packets = if properties.random_detect_by_limit { 8_192_000 } else { 4_096 };
    let amount = |name: &str, number: u32| {
        let path = format!("{path}.{name}");
        let found = match depth.unit {
            LimitUnit::Packets => Some(in_range(&path, u64::from(number), &(1..=most_packets), "packets")?),
            LimitUnit::Bytes => depth.amount(&path, QueueLimit::Bytes(number))?,
            LimitUnit::Ms => depth.amount(&path, QueueLimit::Ms(number))?,
            LimitUnit::Us => depth.amount(&path, QueueLimit::Us(number))?,
            LimitUnit::Percent => {
                let percent = in_range(&path, u64::from(number), &(1..=100), "per cent")?;
                limit.map(|limit| limit.saturating_mul(percent) / 100)
            }
        };
        // Without a rate the row is taken out again.
        Ok(found.map_or(0, |found| u32::try_from(found).unwrap_or(u32::MAX)))
    };
    let (min, max) = (amount("min", given.min)?, amount("max", given.max)?);
    if given.min > given.max {
        let unit = depth.unit.name();
        let message = format!("{} {unit} is below the minimum threshold of {}", given.max, given.min);
        return Err(ConfigError::out_of_range(format!("{path}.max"), message));
    }
    Ok((min, max))
}
