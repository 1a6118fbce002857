//! The figures of bandwidth, priority and random early detection: what was configured, with defaults filled in.
//!
//! Errors carry a path relative to the class; the caller puts the class's own in front.

use crate::compile::parameters::in_range;
use crate::config::defaults;
use crate::config::queueing::{BandwidthConfig, PriorityConfig, PriorityUnit, RandomDetectBasis, RandomDetectConfig};
use crate::config::router::Generation;
use crate::counters::policy::BandwidthCounters;
use crate::counters::resolved::{ResolvedPriority, ResolvedRandomDetectRow};
use crate::error::ConfigError;
use crate::plan::queue::RandomDetectPlan;

const PRIORITY_BURSTS: std::ops::RangeInclusive<u64> = 32..=2_000_000;

const RATES_KBPS: std::ops::RangeInclusive<u64> = 1..=64_000_000;

fn kbps_of(percent: u64, base_bps: Option<u64>) -> Option<u64> {
    base_bps.map(|base| u64::try_from(u128::from(base) * u128::from(percent) / 100_000).unwrap_or(u64::MAX))
}

/// A class's bandwidth; `kbps` is null where it depends on a base that is not known here.
pub(crate) fn bandwidth(config: BandwidthConfig, base_bps: Option<u64>) -> Result<BandwidthCounters, ConfigError> {
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
            in_range("bandwidth.remaining_ratio", u64::from(ratio), &(1..=1_000), "parts")?;
            BandwidthCounters { remaining_ratio: Some(ratio), ..none }
        }
    })
}

/// A priority class's figures; those that depend on a base that is not known here are null.
pub(crate) fn priority(config: PriorityConfig, base_bps: Option<u64>) -> Result<ResolvedPriority, ConfigError> {
    let missing = || ConfigError::new("priority.number", "null: give the rate, or the unit strict");
    let (kbps, percent) = match (config.unit, config.number) {
        (PriorityUnit::Strict, None) => (None, None),
        (PriorityUnit::Strict, Some(number)) => {
            return Err(ConfigError::new(
                "priority.number",
                format!("{number}: strict priority has no rate, give null"),
            ))
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
            let message = format!("{burst}: strict priority is not policed, give null");
            return Err(ConfigError::new("priority.burst_bytes", message));
        }
        Some(burst) => Some(in_range("priority.burst_bytes", burst, &PRIORITY_BURSTS, "bytes")?),
        None => kbps.map(|kbps| kbps * defaults::PRIORITY_BURST_MS / 8),
    };
    let level = config.level.unwrap_or(1);
    in_range("priority.level", u64::from(level), &(1..=2), "")?;
    Ok(ResolvedPriority { unit: config.unit, kbps, percent, burst_bytes, level })
}

/// Random early detection with the generation's defaults.
pub(crate) fn random_detect(
    config: &RandomDetectConfig,
    generation: Generation,
) -> Result<RandomDetectPlan, ConfigError> {
    let exponential_weight = config.exponential_weight.unwrap_or(defaults::RANDOM_DETECT_WEIGHT);
    in_range("random_detect.exponential_weight", u64::from(exponential_weight), &(1..=16), "")?;
    let (values, least): (u8, fn(Generation, u8) -> u32) = match config.basis {
        RandomDetectBasis::Precedence => (8, |generation, value| match generation {
            Generation::Classic => defaults::CLASSIC_RANDOM_DETECT_MIN[usize::from(value)],
            Generation::Hqf => defaults::HQF_RANDOM_DETECT_MIN[usize::from(value)],
        }),
        RandomDetectBasis::Dscp => (64, |generation, value| {
            let (by_precedence, by_drop) = match generation {
                Generation::Classic => {
                    (defaults::CLASSIC_RANDOM_DETECT_MIN, defaults::CLASSIC_RANDOM_DETECT_MIN_BY_DSCP)
                }
                Generation::Hqf => (defaults::HQF_RANDOM_DETECT_MIN, defaults::HQF_RANDOM_DETECT_MIN_BY_DSCP),
            };
            defaults::random_detect_min_by_dscp(value, by_precedence, by_drop)
        }),
    };
    let mut rows: Vec<_> = (0..values)
        .map(|value| ResolvedRandomDetectRow {
            value,
            min: least(generation, value),
            max: defaults::RANDOM_DETECT_MAX,
            denominator: defaults::RANDOM_DETECT_DENOMINATOR,
        })
        .collect();
    for (index, given) in config.thresholds.iter().enumerate() {
        let path = format!("random_detect.thresholds[{index}]");
        let Some(row) = rows.get_mut(usize::from(given.value)) else {
            let message = format!("{} is out of range: give 0 to {}", given.value, values - 1);
            return Err(ConfigError::out_of_range(format!("{path}.value"), message));
        };
        in_range(&format!("{path}.min"), u64::from(given.min), &(1..=4_096), "packets")?;
        in_range(&format!("{path}.max"), u64::from(given.max), &(1..=4_096), "packets")?;
        if given.min > given.max {
            let message = format!("{} packets is less than the least threshold of {}", given.max, given.min);
            return Err(ConfigError::out_of_range(format!("{path}.max"), message));
        }
        let denominator = given.denominator.unwrap_or(defaults::RANDOM_DETECT_DENOMINATOR);
        in_range(&format!("{path}.denominator"), u64::from(denominator), &(1..=65_536), "")?;
        *row = ResolvedRandomDetectRow { value: given.value, min: given.min, max: given.max, denominator };
    }
    Ok(RandomDetectPlan { basis: config.basis, exponential_weight, ecn: config.ecn, rows })
}
