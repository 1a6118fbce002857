//! Routers of one process (`--lab FILE`): the ports, kernel and control socket of each router, and the links between
//! them in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qos_core::{ConfigError, PortsConfig};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ports::{self, WiringError};

/// Routers that one process runs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabConfig {
    /// Routers by their names.
    pub routers: BTreeMap<String, RouterPlace>,
    /// Links in memory between ports of two routers.
    #[serde(default)]
    pub links: Vec<MemoryLink>,
}

/// Location of a router.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterPlace {
    /// Ports, like in a wiring file.
    pub wiring: PortsConfig,
    /// Path of its control socket. The end of a stopped router is written next to it, under the same name with
    /// `.ended`.
    pub control: PathBuf,
    /// The network namespace of its ports' interfaces.
    pub netns: PathBuf,
    /// Network namespace of its IP stack; without it there is no IP SLA, and the kernel forwards everything.
    pub kernel_netns: Option<PathBuf>,
}

/// A link in memory.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryLink {
    /// Both ends.
    pub ends: [MemoryLinkEnd; 2],
}

/// An end of a link in memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryLinkEnd {
    /// Name of the router.
    pub router: String,
    /// IOS name of its port.
    pub port: String,
}

/// Reads and checks the file at `path`.
///
/// # Errors
/// The file cannot be read, does not have the documented form, or describes an impossible lab.
pub fn load(path: &Path) -> Result<LabConfig, WiringError> {
    let text = std::fs::read_to_string(path).map_err(|source| WiringError::Unreadable {
        what: "lab",
        path: path.display().to_string(),
        source,
        option: "--lab",
    })?;
    parse(&text).map_err(|error| WiringError::Unusable { what: "lab", error })
}

/// Parses and checks the text of such a file.
///
/// # Errors
/// The path in the file and the reason.
pub fn parse(text: &str) -> Result<LabConfig, ConfigError> {
    let lab: LabConfig = qos_core::config::from_json(text)?;
    if lab.routers.is_empty() {
        return Err(ConfigError::new("routers", "empty; a lab needs at least one router"));
    }
    let mut controls: BTreeMap<&Path, &str> = BTreeMap::new();
    for (name, place) in &lab.routers {
        ports::check(&place.wiring).map_err(|error| {
            let path = format!("routers.{name}.wiring.{}", error.path);
            ConfigError::new(path, error.message)
        })?;
        if let Some(other) = controls.insert(&place.control, name) {
            let message = format!("router {other} has the same control socket; give each router its own");
            return Err(ConfigError::new(format!("routers.{name}.control"), message));
        }
    }
    let mut used: BTreeMap<&MemoryLinkEnd, usize> = BTreeMap::new();
    for (number, link) in lab.links.iter().enumerate() {
        for (side, end) in link.ends.iter().enumerate() {
            let refuse = |field: &str, message: String| {
                Err(ConfigError::new(format!("links[{number}].ends[{side}]{field}"), message))
            };
            let Some(place) = lab.routers.get(&end.router) else {
                let known: Vec<_> = lab.routers.keys().map(String::as_str).collect();
                return refuse(".router", format!("no router {:?}; expected one of {}", end.router, known.join(", ")));
            };
            let Some(port) = place.wiring.ports.get(&end.port) else {
                let known: Vec<_> = place.wiring.ports.keys().map(String::as_str).collect();
                return refuse(".port", format!("no port {:?}; expected one of {}", end.port, known.join(", ")));
            };
            if !port.paced_by_peer {
                let message = "the port's frames would be serialised twice: set its \"paced_by_peer\" to true";
                return refuse(".port", message.to_owned());
            }
            if let Some(other) = used.insert(end, number) {
                return refuse("", format!("links[{other}] has this port; a port has one link"));
            }
        }
        if link.ends[0].router == link.ends[1].router {
            let message = "both ends are on the same router; such a link needs a pair of interfaces";
            return Err(ConfigError::new(format!("links[{number}].ends"), message));
        }
    }
    Ok(lab)
}

impl LabConfig {
    /// Returns the groups of routers joined by links, each in the order of names.
    pub fn parts(&self) -> Vec<Vec<&str>> {
        let mut part: BTreeMap<&str, usize> =
            self.routers.keys().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        for MemoryLink { ends: [near, far] } in &self.links {
            let (one, other) = (part[near.router.as_str()], part[far.router.as_str()]);
            part.values_mut().filter(|number| **number == other).for_each(|number| *number = one);
        }
        let mut parts: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (name, number) in part {
            parts.entry(number).or_default().push(name);
        }
        parts.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{json, Value};

    /// Returns the routers `R0`, `R1`, …, each with ports `A` and `B`, and links from B to the next one's A.
    fn chain(count: usize, links: &[usize]) -> Value {
        let port = |name: &str| {
            json!({"inside": format!("{name}.in"), "wire": name, "paced_by_peer": true,
                   "link": {"rate_bps": 1_000_000, "framing": "ethernet"}})
        };
        let router = |number: usize| {
            json!({"wiring": {"ports": {"A": port("a"), "B": port("b")}}, "netns": "/n",
                   "control": format!("/run/R{number}")})
        };
        let routers: BTreeMap<_, _> = (0..count).map(|number| (format!("R{number}"), router(number))).collect();
        let link = |near: &usize| {
            json!({"ends": [{"router": format!("R{near}"), "port": "B"},
                            {"router": format!("R{}", near + 1), "port": "A"}]})
        };
        json!({"routers": routers, "links": links.iter().map(link).collect::<Vec<_>>()})
    }

    fn error(lab: &Value) -> String {
        parse(&lab.to_string()).expect_err("it is wrong").to_string()
    }

    #[test]
    fn joined_routers_are_in_one_group() {
        let lab = parse(&chain(6, &[3, 0, 4]).to_string()).unwrap();
        assert_eq!(lab.parts(), [vec!["R0", "R1"], vec!["R2"], vec!["R3", "R4", "R5"]]);
    }

    #[test]
    fn errors_name_the_place() {
        let good = chain(3, &[0, 1]);
        let change = |pointer: &str, value: Value| {
            let mut lab = good.clone();
            *lab.pointer_mut(pointer).unwrap() = value;
            error(&lab)
        };
        for (pointer, value, place, what) in [
            ("/routers", json!({}), "routers", "at least one router"),
            ("/links/0/ends/1/router", json!("R9"), "links[0].ends[1].router", "expected one of R0, R1, R2"),
            ("/links/1/ends/0/port", json!("C"), "links[1].ends[0].port", "expected one of A, B"),
            ("/links/1/ends/0", json!({"router": "R0", "port": "B"}), "links[1].ends[0]", "links[0] has this port"),
            (
                "/links/0/ends/1",
                json!({"router": "R0", "port": "A"}),
                "links[0].ends",
                "both ends are on the same router",
            ),
            ("/routers/R1/control", json!("/run/R0"), "routers.R1.control", "router R0 has the same control socket"),
            ("/routers/R2/wiring/ports/A/wire", json!(""), "routers.R2.wiring.ports.A.wire", "Linux interface"),
            ("/routers/R1/wiring/ports/A/paced_by_peer", json!(false), "links[0].ends[1].port", "serialised twice"),
        ] {
            let message = change(pointer, value);
            assert!(message.starts_with(&format!("{place}: ")) && message.contains(what), "{message}");
        }
        assert!(error(&json!({"routers": {}, "link": []})).contains("link"));
    }

    proptest! {
        #[test]
        fn damaged_file_never_panics(at in 0..1000usize, byte in 0u8..128) {
            let mut text = chain(2, &[0]).to_string().into_bytes();
            let at = at % text.len();
            text[at] = byte;
            let _ = parse(std::str::from_utf8(&text).unwrap());
        }
    }
}
