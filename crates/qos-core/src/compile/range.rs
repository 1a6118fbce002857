//! The ranges of values of a configuration: the widest of all generations.

use std::ops::RangeInclusive;

use crate::error::ConfigError;

pub(crate) const POLICE_RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;

pub(crate) const POLICE_BURSTS: RangeInclusive<u64> = 1_000..=512_000_000;

/// Sizes of a dynamic bucket: it must hold the longest frame with a tag, which would otherwise never pass.
pub(crate) const DYNAMIC_SIZES: RangeInclusive<u64> = 1_518..=512_000_000;

pub(crate) const DYNAMIC_TIMES_MS: RangeInclusive<u64> = 1..=60_000;

/// Growth of a dynamic bucket, per cent.
pub(crate) const DYNAMIC_GROWTHS: RangeInclusive<u64> = 1..=1_000;

/// First growths of a dynamic bucket, per cent.
pub(crate) const DYNAMIC_FIRST_GROWTHS: RangeInclusive<u64> = 0..=1_000;

/// Shares of the size of a dynamic bucket, per cent.
pub(crate) const DYNAMIC_SHARES: RangeInclusive<u64> = 1..=99;

pub(crate) const SHAPE_BURSTS: RangeInclusive<u64> = 256..=154_400_000;

pub(crate) const SHAPE_BURST_MS: RangeInclusive<u64> = 10..=2_000;

/// Rates of a shaper; the minimum is the lowest published one.
pub(crate) const SHAPE_RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;

pub(crate) const SHAPE_BUFFERS: RangeInclusive<u64> = 1..=4_096;

/// Packets of a flow queue.
pub(crate) const FLOW_LIMITS: RangeInclusive<u64> = 1..=32_768;

pub(crate) const PRIORITY_BURSTS: RangeInclusive<u64> = 32..=2_000_000;

pub(crate) const RATES_KBPS: RangeInclusive<u64> = 1..=100_000_000;

pub(crate) const QUEUE_LIMIT_PACKETS: RangeInclusive<u64> = 1..=8_192_000;

pub(crate) const QUEUE_LIMIT_BYTES: RangeInclusive<u64> = 1..=64_000_000;

pub(crate) const QUEUE_LIMIT_MS: RangeInclusive<u64> = 1..=3_400;

pub(crate) const QUEUE_LIMIT_PERCENT: RangeInclusive<u64> = 1..=100;

pub(crate) const QUEUE_LIMIT_US: RangeInclusive<u64> = 1..=512_000;

/// The ranges by key.
#[cfg(feature = "serde")]
pub(crate) const RANGES: &[(&str, &RangeInclusive<u64>)] = &[
    ("police.rate_bps", &POLICE_RATES),
    ("police.burst_bytes", &POLICE_BURSTS),
    ("police.dynamic.bytes", &DYNAMIC_SIZES),
    ("police.dynamic.ms", &DYNAMIC_TIMES_MS),
    ("police.dynamic.growth_percent", &DYNAMIC_GROWTHS),
    ("police.dynamic.first_growths", &DYNAMIC_FIRST_GROWTHS),
    ("police.dynamic.share_percent", &DYNAMIC_SHARES),
    ("shape.burst_bits", &SHAPE_BURSTS),
    ("shape.burst_ms", &SHAPE_BURST_MS),
    ("shape.rate_bps", &SHAPE_RATES),
    ("shape_buffers", &SHAPE_BUFFERS),
    ("fair_queue.queue_limit", &FLOW_LIMITS),
    ("priority.burst_bytes", &PRIORITY_BURSTS),
    ("bandwidth.kbps", &RATES_KBPS),
    ("queue_limit.packets", &QUEUE_LIMIT_PACKETS),
    ("queue_limit.bytes", &QUEUE_LIMIT_BYTES),
    ("queue_limit.ms", &QUEUE_LIMIT_MS),
    ("queue_limit.percent", &QUEUE_LIMIT_PERCENT),
    ("queue_limit.us", &QUEUE_LIMIT_US),
];

/// Returns the value if it lies in `range`; the error names its place and the range in its unit.
pub(crate) fn in_range(path: &str, value: u64, range: &RangeInclusive<u64>, unit: &str) -> Result<u64, ConfigError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = (range.start(), range.end());
    Err(ConfigError::out_of_range(path, format!("{value} {unit} is out of range: expected {least} to {most} {unit}")))
}
