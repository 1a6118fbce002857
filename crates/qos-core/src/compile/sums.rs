//! Limited sums over the classes of a policy-map, as a table.
//!
//! `policy_rules` prints it for the IOS command line, which refuses the same values.

use crate::compile::combinations::{property, Property};
use crate::compile::context::PathClass;
use crate::config::policy::PolicyClass;
use crate::config::queueing::{BandwidthConfig, PriorityUnit};
use crate::plan::classes::CLASS_DEFAULT;

/// A number of a class that is part of a sum.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) struct Amount {
    /// Key in the configuration of a class.
    #[cfg_attr(not(feature = "serde"), allow(dead_code))]
    key: &'static str,
    /// Another key and its word; without them the number is not added.
    #[cfg_attr(not(feature = "serde"), allow(dead_code))]
    when: Option<(&'static str, &'static str)>,
    /// Key of the action.
    #[cfg_attr(feature = "serde", serde(skip))]
    field: &'static str,
    #[cfg_attr(feature = "serde", serde(skip))]
    of: fn(&PolicyClass) -> Option<u64>,
}

/// A sum of percentages, with its limit.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) struct Sum {
    of: &'static [Amount],
    /// Greatest sum in per cent; none: the share that classes may reserve. With class-default it is 100.
    pub most: Option<u32>,
    /// Property of the generations that have the limit; none: all have it.
    pub only: Option<Property>,
    /// Texts of a refusal before and after the greatest sum.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub words: (&'static str, &'static str),
}

const BANDWIDTH_PERCENT: Amount = Amount {
    key: "bandwidth.percent",
    when: None,
    field: "bandwidth",
    of: |class| match class.bandwidth {
        Some(BandwidthConfig::Percent(percent)) => Some(percent.into()),
        _ => None,
    },
};
const PRIORITY_PERCENT: Amount = Amount {
    key: "priority.number",
    when: Some(("priority.unit", "percent")),
    field: "priority",
    of: |class| class.priority.filter(|priority| priority.unit == PriorityUnit::Percent)?.number,
};
const REMAINING_PERCENT: Amount = Amount {
    key: "bandwidth.remaining_percent",
    when: None,
    field: "bandwidth",
    of: |class| match class.bandwidth {
        Some(BandwidthConfig::RemainingPercent(percent)) => Some(percent.into()),
        _ => None,
    },
};

/// Sums of a policy-map, independent of its attachment.
pub(crate) const SUMS: &[Sum] = &[
    Sum {
        of: &[BANDWIDTH_PERCENT, PRIORITY_PERCENT],
        most: None,
        only: Some(property!(adds_percentages)),
        words: ("percentages of the classes", " can be given"),
    },
    Sum {
        of: &[REMAINING_PERCENT],
        most: Some(100),
        only: None,
        words: ("percentages of the remaining bandwidth", ""),
    },
];

impl Sum {
    /// Returns the value of a class in the sum, with the key of its action.
    pub fn amount(&self, class: &PolicyClass) -> Option<(&'static str, u64)> {
        self.of.iter().find_map(|each| Some((each.field, (each.of)(class)?)))
    }
}

/// A sum above its limit.
pub(crate) struct Excess {
    /// Path of the key that exceeds it.
    pub path: String,
    pub sum: u64,
    pub most: u64,
    /// Percentage of the whole.
    pub percent: u32,
}

/// Adds the values of classes in order, up to a percentage of the total; class-default may use the remainder.
pub(crate) fn excess<'a>(
    whole: u64,
    percent: u32,
    amounts: impl IntoIterator<Item = (&'a PathClass, Option<(&'static str, u64)>)>,
) -> Option<Excess> {
    let mut sum = 0u64;
    for ((path, class), amount) in amounts {
        let Some((field, amount)) = amount.filter(|(_, amount)| *amount > 0) else { continue };
        sum = sum.saturating_add(amount);
        let percent = if class.name == CLASS_DEFAULT { 100 } else { percent };
        let most = (u128::from(whole) * u128::from(percent) / 100) as u64;
        if sum > most {
            return Some(Excess { path: format!("{path}.{field}"), sum, most, percent });
        }
    }
    None
}
