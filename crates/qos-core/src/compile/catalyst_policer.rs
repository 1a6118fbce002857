//! Compiler from the policer of a class on a switch to its plan.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::config::catalyst::ExceedAction;
use crate::config::catalyst_constants::{POLICE_BURSTS, POLICE_RATES};
use crate::config::policy::{PoliceAction, PoliceBurst, PoliceConfig, RateSpec};
use crate::error::ConfigError;
use crate::plan::catalyst::PolicerPlan;

/// Returns the refusal of a value.
pub(crate) fn wrong<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new(path, message))
}

/// Refuses a value outside of its range.
pub(crate) fn within<T: PartialOrd + Display + Copy>(
    path: &str,
    value: T,
    range: &RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ConfigError::out_of_range(
        path,
        format!("{value} is out of range: expected {} to {}", range.start(), range.end()),
    ))
}

/// Returns a class's own policer.
pub(crate) fn policer(police: &PoliceConfig) -> Result<PolicerPlan, ConfigError> {
    let RateSpec::Bps(rate_bps) = police.cir else {
        return wrong("police.cir", "a switch's policer has a rate in bits per second");
    };
    let Some(PoliceBurst::Bytes(burst_bytes)) = police.bc else {
        return wrong("police.bc", "a switch's policer has a burst in bytes");
    };
    within("police.cir.bps", rate_bps, &POLICE_RATES)?;
    within("police.bc.bytes", burst_bytes, &POLICE_BURSTS)?;
    for (field, given) in [
        ("pir", police.pir.is_some()),
        ("be", police.be.is_some()),
        ("violate", police.violate.is_some()),
        ("account", police.account.is_some()),
        ("dynamic", police.dynamic.is_some()),
    ] {
        if given {
            return wrong(format!("police.{field}"), "a switch's policer has one bucket: use null");
        }
    }
    if !matches!(police.conform.as_deref(), None | Some([PoliceAction::Transmit {}])) {
        return wrong("police.conform", "a switch always transmits conforming packets: use transmit or null");
    }
    let exceed = match police.exceed.as_deref() {
        None | Some([PoliceAction::Drop {}]) => ExceedAction::Drop,
        Some([PoliceAction::PolicedDscpTransmit {}]) => ExceedAction::PolicedDscpTransmit,
        Some(_) => return wrong("police.exceed", "a switch drops or marks down: use drop or policed-dscp-transmit"),
    };
    Ok(PolicerPlan { rate_bps, burst_bytes, exceed })
}
