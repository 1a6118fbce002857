//! The wiring of the router's ports (`--ports ports.json`): hardware, not configuration.

use std::collections::BTreeMap;
use std::path::Path;

use qos_core::config::PortConfig;
use qos_core::{ConfigError, PortsConfig};

/// Longest Linux interface name (`IFNAMSIZ` less the final zero).
const LONGEST_NAME: usize = 15;

/// Errors in the wiring file. The message contains the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum WiringError {
    /// The file cannot be read.
    #[error("cannot read the {what} file {path}: {source}; give the path of a readable file with {option}")]
    Unreadable {
        /// Kind of the file: of ports, or of a lab.
        what: &'static str,
        /// The path as given.
        path: String,
        /// The system's reason.
        source: std::io::Error,
        /// The option that names it.
        option: &'static str,
    },
    /// Not a usable wiring.
    #[error("{what} file: {error}")]
    Unusable {
        /// Kind of the file.
        what: &'static str,
        /// The place in it and the reason.
        error: ConfigError,
    },
}

/// Reads and checks the file at `path`.
///
/// # Errors
/// When it cannot be read, is not of the documented form, or names interfaces that cannot exist.
pub fn load(path: &Path) -> Result<PortsConfig, WiringError> {
    let text = std::fs::read_to_string(path).map_err(|source| WiringError::Unreadable {
        what: "ports",
        path: path.display().to_string(),
        source,
        option: "--ports",
    })?;
    parse(&text).map_err(|error| WiringError::Unusable { what: "ports", error })
}

/// Parses and checks the text of a wiring file.
///
/// # Errors
/// The path in the file and the reason.
pub fn parse(text: &str) -> Result<PortsConfig, ConfigError> {
    let wiring = PortsConfig::from_json(text)?;
    check(&wiring)?;
    Ok(wiring)
}

/// Checks a wiring.
///
/// # Errors
/// The path in it and the reason.
pub fn check(wiring: &PortsConfig) -> Result<(), ConfigError> {
    if wiring.ports.is_empty() {
        return Err(ConfigError::new("ports", "empty; a router needs at least one port"));
    }
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    for (name, port) in &wiring.ports {
        let sides = [("inside", &port.inside), ("wire", &port.wire)];
        // The end of a line has no interface inside.
        for (key, interface) in sides.into_iter().skip(usize::from(other_end(wiring, name).is_some())) {
            let place = format!("ports.{name}.{key}");
            let strange = |c: char| c == '/' || c == '\0' || c.is_whitespace();
            if interface.is_empty() || interface.len() > LONGEST_NAME || interface.contains(strange) {
                let message =
                    format!("found {interface:?}; expected the name of a Linux interface (1 to {LONGEST_NAME} bytes)");
                return Err(ConfigError::new(place, message));
            }
            if let Some(other) = seen.insert(interface, place.clone()) {
                let message =
                    format!("{interface:?} is already used by {other}; give each side of a port its own interface");
                return Err(ConfigError::new(place, message));
            }
        }
    }
    Ok(())
}

/// Returns the other end of the line that ends at port `name`: the port whose `inside` is this one's `wire`, and vice
/// versa.
pub fn other_end<'a>(wiring: &'a PortsConfig, name: &str) -> Option<&'a str> {
    let port = &wiring.ports[name];
    let ends = |(other, peer): &(&'a String, &PortConfig)| {
        *other != name && peer.inside == port.wire && peer.wire == port.inside
    };
    wiring.ports.iter().find(ends).map(|(other, _)| other.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{"ports": {"FastEthernet0/1": {"inside": "Fa0-1.in", "wire": "Fa0-1",
        "link": {"rate_bps": 100000000, "framing": "ethernet", "delay_ns": 0}, "paced_by_peer": false}}}"#;

    fn error(text: &str) -> String {
        parse(text).expect_err("the text is wrong").to_string()
    }

    #[test]
    fn the_documented_example_is_read() {
        let wiring = parse(GOOD).unwrap();
        let port = &wiring.ports["FastEthernet0/1"];
        assert_eq!((port.inside.as_str(), port.wire.as_str()), ("Fa0-1.in", "Fa0-1"));
    }

    #[test]
    fn two_ports_that_lead_to_each_others_link_are_a_line() {
        let end = |inside: &str, wire: &str| {
            format!(
                r#"{{"inside": "{inside}", "wire": "{wire}", "paced_by_peer": false,
                    "link": {{"rate_bps": 1000000, "framing": "ethernet"}}}}"#
            )
        };
        let both = |near: String, far: String| format!(r#"{{"ports": {{"near": {near}, "far": {far}}}}}"#);
        let line = parse(&both(end("b", "a"), end("a", "b"))).unwrap();
        assert_eq!((other_end(&line, "near"), other_end(&line, "far")), (Some("far"), Some("near")));
        assert_eq!(other_end(&parse(GOOD).unwrap(), "FastEthernet0/1"), None);
        // Only one of them leads to the other.
        let half = error(&both(end("b", "a"), end("c", "b")));
        assert!(half.contains("already used by"), "{half}");
    }

    #[test]
    fn errors_name_the_place() {
        let same = error(&GOOD.replace("Fa0-1.in", "Fa0-1"));
        assert!(same.contains("already used by ports.FastEthernet0/1.inside"), "{same}");
        let long = error(&GOOD.replace("Fa0-1.in", "a-name-of-17-byte"));
        assert!(long.contains("ports.FastEthernet0/1.inside"), "{long}");
        let key = error(&GOOD.replace("paced_by_peer", "paced"));
        assert!(key.contains("paced"), "{key}");
        assert!(error(r#"{"ports": {}}"#).contains("at least one port"));
    }

    proptest! {
        #[test]
        fn any_text_never_panics(text in ".{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn damaged_file_never_panics(at in 0..GOOD.len(), byte in 0u8..128) {
            let mut text = GOOD.as_bytes().to_vec();
            text[at] = byte;
            let _ = parse(std::str::from_utf8(&text).unwrap());
        }
    }
}
