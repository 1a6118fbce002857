//! Compiler from configured `rate-limit` lines to their plans.

use crate::compile::class_maps;
use crate::compile::context::Context;
use crate::compile::range::in_range;
use crate::config::interface::InterfaceConfig;
use crate::config::policy::{greatest, SetField};
use crate::config::rate_limit::{RateLimitAction, RateLimitConfig};
use crate::error::ConfigError;
use crate::plan::rate_limit::RateLimitPlan;

/// Maximum number of lines in one direction.
const MAX_LINES: usize = 100;

/// Returns the lines of an interface in one direction; `path` is that of the interface.
pub(crate) fn plans(
    context: &Context<'_>,
    config: &InterfaceConfig,
    output: bool,
    path: &str,
) -> Result<Vec<RateLimitPlan>, ConfigError> {
    let field = if output { "rate_limit_output" } else { "rate_limit_input" };
    let lines = if output { &config.rate_limit_output } else { &config.rate_limit_input };
    if lines.len() > MAX_LINES {
        let message = format!("{} lines: at most {MAX_LINES} are possible", lines.len());
        return Err(ConfigError::too_much(format!("{path}.{field}"), message));
    }
    let path = |index: usize| format!("{path}.{field}[{index}]");
    lines.iter().enumerate().map(|(index, line)| plan(context, line, &path(index))).collect()
}

fn plan(context: &Context<'_>, line: &RateLimitConfig, path: &str) -> Result<RateLimitPlan, ConfigError> {
    let only =
        line.only.as_ref().map(|only| class_maps::single(context, only, &format!("{path}.match"))).transpose()?;
    in_range(&format!("{path}.rate_bps"), line.rate_bps, &(8_000..=2_000_000_000), "b/s")?;
    in_range(&format!("{path}.normal_burst_bytes"), line.normal_burst_bytes, &(1_000..=512_000_000), "bytes")?;
    in_range(&format!("{path}.extended_burst_bytes"), line.extended_burst_bytes, &(2_000..=1_024_000_000), "bytes")?;
    check_action(&line.conform, &format!("{path}.conform"))?;
    check_action(&line.exceed, &format!("{path}.exceed"))?;
    Ok(RateLimitPlan {
        only,
        rate_bps: line.rate_bps,
        normal_bytes: line.normal_burst_bytes,
        extended_bytes: line.extended_burst_bytes,
        conform: line.conform,
        exceed: line.exceed,
    })
}

fn check_action(action: &RateLimitAction, path: &str) -> Result<(), ConfigError> {
    let Some(set) = action.set else { return Ok(()) };
    if matches!(set.field, SetField::Cos | SetField::DiscardClass) {
        return Err(ConfigError::new(format!("{path}.set.field"), "rate-limit cannot set the class of service"));
    }
    if set.value > greatest(set.field) {
        let message = format!("{} is out of range: expected 0 to {}", set.value, greatest(set.field));
        return Err(ConfigError::out_of_range(format!("{path}.set.value"), message));
    }
    Ok(())
}
