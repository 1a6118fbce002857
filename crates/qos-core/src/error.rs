//! The error of a configuration that cannot be used.

use std::fmt;

/// Place and reason of an invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Kind of error.
    pub kind: ConfigErrorKind,
    /// Position in the configuration, e.g. `policy_maps.Police.classes[0].police.bc`; empty for the whole.
    pub path: String,
    /// Message with the found and expected value and the remedy.
    pub message: String,
}

/// Kind of error in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The text is not of the configuration's shape: no JSON, an unknown key, a value of another type.
    Shape,
    /// A number is out of its range.
    OutOfRange,
    /// A name refers to nothing.
    Unknown,
    /// More is asked for than there is or can be.
    TooMuch,
    /// A value, or a combination of them, that is not possible here.
    Impossible,
}

impl ConfigError {
    /// Returns the value at `path` is impossible.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError { kind: ConfigErrorKind::Impossible, path: path.into(), message: message.into() }
    }

    /// Returns the same of another kind.
    #[must_use]
    pub fn of_kind(self, kind: ConfigErrorKind) -> ConfigError {
        ConfigError { kind, ..self }
    }

    /// Returns a text that is not of the configuration's shape.
    #[cfg(feature = "serde")]
    pub(crate) fn shape(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::Shape)
    }

    /// Returns a number that is out of its range.
    pub(crate) fn out_of_range(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::OutOfRange)
    }

    /// Returns a name that refers to nothing.
    pub(crate) fn unknown(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::Unknown)
    }

    /// Returns the error for a value that exceeds the available amount.
    pub(crate) fn too_much(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError::new(path, message).of_kind(ConfigErrorKind::TooMuch)
    }

    /// Returns the same error of a part of the configuration that is at `path`.
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
