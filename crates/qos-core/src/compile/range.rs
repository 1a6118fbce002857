//! The range that a value of a configuration must lie in.

use crate::error::ConfigError;

/// The value where it lies in `range`; the error names its place and the range in its unit.
pub(crate) fn in_range(
    path: &str,
    value: u64,
    range: &std::ops::RangeInclusive<u64>,
    unit: &str,
) -> Result<u64, ConfigError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = (range.start(), range.end());
    Err(ConfigError::out_of_range(path, format!("{value} {unit} is out of range: give {least} to {most} {unit}")))
}
