//! The error of a configuration that cannot be used.

use std::fmt;

/// A configuration that cannot be used: where and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where in the configuration, e.g. `policy_maps.Police.classes[0].police.bc`; empty for the whole.
    pub path: String,
    /// What was found, what was expected and what to do.
    pub message: String,
}

impl ConfigError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError { path: path.into(), message: message.into() }
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
