//! Checks of `ip tcp adjust-mss`.

use crate::compile::range::in_range;
use crate::config::interface::InterfaceConfig;
use crate::error::ConfigError;

/// Checks the values of an interface and its subinterfaces; `path` is the interface's own.
pub(crate) fn check(config: &InterfaceConfig, path: &str) -> Result<(), ConfigError> {
    let check = |mss: Option<u16>, path: String| match mss {
        Some(mss) => in_range(&path, u64::from(mss), &(500..=1_460), "bytes").map(drop),
        None => Ok(()),
    };
    check(config.tcp_adjust_mss, format!("{path}.tcp_adjust_mss"))?;
    for (name, each) in &config.subinterfaces {
        check(each.tcp_adjust_mss, format!("{path}.subinterfaces.{name}.tcp_adjust_mss"))?;
    }
    Ok(())
}
