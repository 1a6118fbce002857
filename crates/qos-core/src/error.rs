//! Error of an invalid configuration.

use std::fmt;

/// Place and reason of an invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Kind of error.
    pub kind: ConfigErrorKind,
    /// Path of the position in the configuration, e.g. `policy_maps.Police.classes[0].police.bc`; empty for the whole.
    pub path: String,
    /// Message with the found and expected value and the remedy.
    pub message: String,
}

/// Kind of error in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The text does not have the form of a configuration: invalid JSON, an unknown key, or a value of another type.
    Shape,
    /// A number is out of its range.
    OutOfRange,
    /// A name refers to nothing.
    Unknown,
    /// The requested amount exceeds the available or possible one.
    TooMuch,
    /// A value or a combination of values is not possible.
    Impossible,
}

impl ConfigError {
    /// Returns an error for an impossible value at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError { kind: ConfigErrorKind::Impossible, path: path.into(), message: message.into() }
    }

    /// Returns an error of any kind.
    #[must_use]
    pub fn of_kind(self, kind: ConfigErrorKind) -> ConfigError {
        ConfigError { kind, ..self }
    }

    /// Returns an error for a text that does not have the form of a configuration.
    #[cfg(feature = "serde")]
    pub(crate) fn shape(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::Shape)
    }

    /// Returns an error for a number that is out of range.
    pub(crate) fn out_of_range(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::OutOfRange)
    }

    /// Returns an error for a name that refers to nothing.
    pub(crate) fn unknown(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::Unknown)
    }

    /// Returns the error for a value that exceeds the available amount.
    pub(crate) fn too_much(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::TooMuch)
    }

    /// Returns the error with its path below `path`.
    pub(crate) fn under(&self, path: &str) -> ConfigError {
        ConfigError { path: format!("{path}.{}", self.path), ..self.clone() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for ConfigError {}
