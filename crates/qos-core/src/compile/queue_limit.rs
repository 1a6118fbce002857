//! Queue limit of a class: its unit, the affected packets, and the resulting thresholds of early detection.
//!
//! A queue's depth is in packets or in bytes; milliseconds are bytes of the class's rate. All limits of a class,
//! and the thresholds of its early detection, have the same unit.

use crate::compile::generation::Properties;
use crate::compile::range::{
    in_range, QUEUE_LIMIT_BYTES, QUEUE_LIMIT_MS, QUEUE_LIMIT_PACKETS, QUEUE_LIMIT_PERCENT, QUEUE_LIMIT_US,
};
use crate::config::policy::PolicyClass;
use crate::config::queueing::{LimitUnit, QueueLimit, QueueThreshold, ThresholdField};
use crate::error::ConfigError;
use crate::plan::queue::{LimitsPlan, QueuePlan};

/// Unit of the depth of a class's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    pub unit: LimitUnit,
    /// Reference rate for limits in milliseconds; without it they cannot be calculated.
    pub rate_bps: Option<u64>,
}

impl Depth {
    /// Returns the unit of a class whose queue is served at `rate_bps`, if known.
    pub fn of(class: &PolicyClass, rate_bps: Option<u64>) -> Result<Depth, ConfigError> {
        let limits = class.queue_limit.map(|limit| ("queue_limit", limit.unit()));
        let thresholds = class.queue_thresholds.iter().map(|each| ("queue_thresholds", each.limit.unit()));
        let red = class.random_detect.as_ref().and_then(|red| Some(("random_detect.unit", red.unit?)));
        // Percentages refer to the limit, in any unit.
        let mut units = limits.into_iter().chain(thresholds).chain(red).filter(|(_, unit)| *unit != LimitUnit::Percent);
        let (first, unit) = units.next().unwrap_or(("", LimitUnit::Packets));
        if let Some((path, other)) = units.find(|(_, other)| *other != unit) {
            let (other, unit) = (other.name(), unit.name());
            let message = format!("in {other}, but {first} is in {unit}: use the same unit for both");
            return Err(ConfigError::new(path, message));
        }
        Ok(Depth { unit, rate_bps })
    }

    /// Returns whether the depth is in bytes.
    pub fn in_bytes(self) -> bool {
        self.unit != LimitUnit::Packets
    }

    /// Returns a limit in packets or bytes; `None` for milliseconds at an unknown rate.
    pub fn amount(self, path: &str, limit: QueueLimit) -> Result<Option<u64>, ConfigError> {
        let (number, range, unit) = match limit {
            QueueLimit::Packets(packets) => (packets, &QUEUE_LIMIT_PACKETS, "packets"),
            QueueLimit::Bytes(bytes) => (bytes, &QUEUE_LIMIT_BYTES, "bytes"),
            QueueLimit::Ms(ms) => (ms, &QUEUE_LIMIT_MS, "ms"),
            QueueLimit::Us(us) => (us, &QUEUE_LIMIT_US, "us"),
            QueueLimit::Percent(_) => return Err(percent_of_limit(path)),
        };
        let number = in_range(path, u64::from(number), range, unit)?;
        let per_byte = match limit {
            QueueLimit::Ms(_) => 8_000,
            QueueLimit::Us(_) => 8_000_000,
            QueueLimit::Packets(_) | QueueLimit::Bytes(_) | QueueLimit::Percent(_) => return Ok(Some(number)),
        };
        let bytes = |bps: u64| u128::from(bps) * u128::from(number) / per_byte;
        Ok(self.rate_bps.map(|bps| bytes(bps).clamp(1, u128::from(u32::MAX)) as u64))
    }

    /// Returns the limit of the class's queue, as configured or by default.
    pub fn limit(self, class: &PolicyClass, properties: &Properties) -> Result<Option<u64>, ConfigError> {
        match class.queue_limit {
            Some(limit) => self.amount("queue_limit", limit),
            None if self.in_bytes() => Ok(Some(properties.queue_limit.bytes(self.rate_bps))),
            None => Ok(Some(u64::from(properties.queue_limit.packets(self.rate_bps)))),
        }
    }
}

/// Returns a limit in packets that applies to all packets, which queues of every generation can have.
pub(crate) fn packets(class: &PolicyClass) -> Result<Option<u32>, ConfigError> {
    match class.queue_limit {
        Some(QueueLimit::Packets(packets)) => {
            in_range("queue_limit.packets", u64::from(packets), &QUEUE_LIMIT_PACKETS, "packets").map(|_| Some(packets))
        }
        Some(QueueLimit::Percent(_)) => Err(percent_of_limit("queue_limit")),
        // Bytes and time are refused for queues that do not support them: `combinations`.
        None | Some(QueueLimit::Bytes(_) | QueueLimit::Ms(_) | QueueLimit::Us(_)) => Ok(None),
    }
}

fn percent_of_limit(path: &str) -> ConfigError {
    ConfigError::new(path, "the limit cannot be a percentage of itself: use packets, bytes, ms or us")
}

/// Returns the first-in-first-out queue of a class of the later generation.
pub(crate) fn fifo(
    class: &PolicyClass,
    rate_bps: Option<u64>,
    properties: &Properties,
) -> Result<QueuePlan, ConfigError> {
    let depth = Depth::of(class, rate_bps)?;
    if class.queue_thresholds.is_empty() && !depth.in_bytes() {
        let limit = packets(class)?.unwrap_or_else(|| properties.queue_limit.packets(rate_bps));
        return Ok(QueuePlan::Fifo { limit });
    }
    // Only `resolve` lacks the rate, and it runs nothing.
    let limit = depth.limit(class, properties)?.unwrap_or(u64::MAX);
    Ok(QueuePlan::Limited(Box::new(LimitsPlan {
        configured: class.queue_limit,
        in_bytes: depth.in_bytes(),
        whole: false,
        limit,
        thresholds: thresholds(&class.queue_thresholds, depth, limit)?,
    })))
}

/// Returns a row for each value of the field that selects the thresholds.
fn thresholds(
    given: &[QueueThreshold],
    depth: Depth,
    limit: u64,
) -> Result<Option<(ThresholdField, Vec<u64>)>, ConfigError> {
    let Some(field) = given.first().map(|first| first.field) else { return Ok(None) };
    let mut rows = vec![limit; usize::from(field.values())];
    for (index, each) in given.iter().enumerate() {
        let path = format!("queue_thresholds[{index}]");
        if each.field != field {
            let message = "a different field from the first: the limits of a queue use one field";
            return Err(ConfigError::new(format!("{path}.field"), message));
        }
        let Some(row) = rows.get_mut(usize::from(each.value)) else {
            let message = format!("{} is out of range: expected 0 to {}", each.value, field.values() - 1);
            return Err(ConfigError::out_of_range(format!("{path}.value"), message));
        };
        *row = match each.limit {
            QueueLimit::Percent(percent) => {
                let percent = in_range(&format!("{path}.limit"), u64::from(percent), &QUEUE_LIMIT_PERCENT, "per cent")?;
                (limit.saturating_mul(percent) / 100).max(1)
            }
            given => depth.amount(&format!("{path}.limit"), given)?.unwrap_or(u64::MAX).min(limit),
        };
    }
    Ok(Some((field, rows)))
}
