//! Pairs of policer values, the first of which is at most the second, as a table.
//!
//! `policy_rules` prints it for the IOS command line, which refuses the same values.

use crate::config::defaults;
use crate::counters::resolved::ResolvedPolice;
use crate::error::ConfigError;

/// A value of a policer.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) struct Value {
    /// Key in the configuration of a class.
    pub key: &'static str,
    /// Value if the key is absent; none: the value is not compared.
    #[cfg_attr(not(feature = "serde"), allow(dead_code))]
    pub default: Option<u64>,
    #[cfg_attr(feature = "serde", serde(skip))]
    unit: &'static str,
    #[cfg_attr(feature = "serde", serde(skip))]
    of: fn(&ResolvedPolice) -> Option<u64>,
}

/// Two values of a policer: the first is at most the second.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) struct Order {
    pub least: Value,
    pub greatest: Value,
}

const CIR: Value = Value { key: "police.cir", default: None, unit: "b/s", of: |police| police.cir_bps };
const PIR: Value = Value { key: "police.pir", default: None, unit: "b/s", of: |police| police.pir_bps };
const MINIMUM: Value = Value {
    key: "police.dynamic.minimum_bytes",
    default: Some(defaults::DYNAMIC_MINIMUM_BYTES),
    unit: "bytes",
    of: |police| police.dynamic?.minimum_bytes,
};
const INITIAL: Value = Value {
    key: "police.dynamic.initial_bytes",
    default: Some(defaults::DYNAMIC_INITIAL_BYTES),
    unit: "bytes",
    of: |police| police.dynamic?.initial_bytes,
};
const MAXIMUM: Value = Value {
    key: "police.dynamic.maximum_bytes",
    default: None,
    unit: "bytes",
    of: |police| police.dynamic?.maximum_bytes,
};

pub(crate) const ORDERED: &[Order] = &[
    Order { least: CIR, greatest: PIR },
    Order { least: MINIMUM, greatest: INITIAL },
    Order { least: INITIAL, greatest: MAXIMUM },
];

/// Refuses values that are not in order; those that depend on an unknown rate are not compared.
pub(crate) fn check_order(police: &ResolvedPolice) -> Result<(), ConfigError> {
    for Order { least, greatest } in ORDERED {
        let (Some(low), Some(high)) = ((least.of)(police), (greatest.of)(police)) else { continue };
        if high < low {
            let (unit, key) = (greatest.unit, least.key);
            let message = format!("{high} {unit} is below {key} of {low} {unit}: use at least this value");
            return Err(ConfigError::out_of_range(greatest.key, message));
        }
    }
    Ok(())
}
