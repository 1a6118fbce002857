//! JSON parsing of configurations.

use serde::Deserialize;

use crate::error::ConfigError;

/// Parses a document of any type from JSON text.
///
/// # Errors
/// The path and reason if the text is not JSON or does not have the shape of that type.
pub fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| path_error(&error))?;
    deserializer.end().map_err(|error| ConfigError::shape("", error.to_string()))?;
    Ok(value)
}

fn path_error(error: &serde_path_to_error::Error<serde_json::Error>) -> ConfigError {
    let path = error.path().to_string();
    ConfigError::shape(if path == "." { String::new() } else { path }, error.inner().to_string())
}
