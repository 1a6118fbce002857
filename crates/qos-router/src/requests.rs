//! The control protocol: a line to a reply. `docs/internals/control-protocol.md` describes it.

use std::path::PathBuf;

use netio::capture_file::About;
use qos_core::{config, PortId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::capture::Wanted;
use crate::config::DataPlaneConfig;
use crate::control::LONGEST_LINE;
use crate::plane::Dataplane;
use crate::schema::CountersReply;

/// Operations that there are, for messages.
const OPERATIONS: &str = "hello, configure, config, counters, resolve, clear, health, ip_sla, capture, end_capture, \
                          shutdown";

/// A request in the form of a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    op: String,
    config: Option<Box<RawValue>>,
    interface: Option<String>,
    operation: Option<u32>,
    samples: Option<bool>,
    file: Option<PathBuf>,
    snaplen: Option<u32>,
    filter: Option<Vec<(u16, u8, u8, u32)>>,
    comment: Option<String>,
}

impl Wire {
    /// Returns the first key that does not go with the operation.
    fn unexpected(&self) -> Option<&'static str> {
        let op = self.op.as_str();
        let keys = [
            ("config", self.config.is_some(), op == "configure"),
            ("interface", self.interface.is_some(), matches!(op, "counters" | "clear" | "capture")),
            ("operation", self.operation.is_some(), op == "ip_sla"),
            ("samples", self.samples.is_some(), op == "ip_sla"),
            ("file", self.file.is_some(), matches!(op, "capture" | "end_capture")),
            ("snaplen", self.snaplen.is_some(), op == "capture"),
            ("filter", self.filter.is_some(), op == "capture"),
            ("comment", self.comment.is_some(), op == "capture"),
        ];
        keys.into_iter().find(|(_, given, takes)| *given && !takes).map(|(key, ..)| key)
    }
}

/// A request.
#[derive(Debug)]
pub enum Request {
    /// Identification of the daemon.
    Hello,
    /// Put this configuration in force.
    Configure(Box<RawValue>),
    /// Active configuration.
    Config,
    /// Counters, of one interface or all.
    Counters(Option<String>),
    /// Policy-maps with all defaults.
    Resolve,
    /// Zero the counters of one interface or all.
    Clear(Option<String>),
    /// Health of the daemon.
    Health,
    /// Measurements of IP SLA, of one operation or all, with the stamps of each packet.
    IpSla(Option<u32>, bool),
    /// Capture of the frames at the interface of that name.
    Capture(Wanted),
    /// End the capture to this file.
    EndCapture(PathBuf),
    /// Stop.
    Shutdown,
}

/// Reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// `bad_json`, `bad_request`, `bad_config` or `internal`.
    pub code: &'static str,
    /// Message with the found and expected value and the remedy.
    pub message: String,
}

impl Refusal {
    fn request(message: impl Into<String>) -> Self {
        Self { code: "bad_request", message: message.into() }
    }

    /// Returns the refusal of a line that is too long.
    pub fn too_long() -> Self {
        Self::request(format!("the line is longer than {LONGEST_LINE} bytes; the connection is closed"))
    }
}

/// Reads a request from a line.
///
/// # Errors
/// When it is not JSON, or not a request.
pub fn parse(line: &[u8]) -> Result<Request, Refusal> {
    // Bytes that are not UTF-8 cannot be JSON; the raw configuration must be text.
    let text = std::str::from_utf8(line)
        .map_err(|e| Refusal { code: "bad_json", message: format!("not UTF-8: {e}; send one JSON object per line") })?;
    let wire: Wire = serde_json::from_str(text).map_err(|e| {
        let code = if e.is_data() { "bad_request" } else { "bad_json" };
        Refusal { code, message: format!("{e}; send one JSON object per line, with a key \"op\"") }
    })?;
    if let Some(key) = wire.unexpected() {
        return Err(Refusal::request(format!("{:?} takes no key {key:?}; leave it out", wire.op)));
    }
    let Wire { op, config, interface, operation, samples, file, snaplen, filter, comment } = wire;
    let lacks = |key: &str, what: &str| Refusal::request(format!("{op:?} lacks the key {key:?}; give {what}"));
    match op.as_str() {
        "hello" => Ok(Request::Hello),
        "configure" => config.map(Request::Configure).ok_or_else(|| lacks("config", "the complete configuration")),
        "config" => Ok(Request::Config),
        "counters" => Ok(Request::Counters(interface)),
        "resolve" => Ok(Request::Resolve),
        "clear" => Ok(Request::Clear(interface)),
        "health" => Ok(Request::Health),
        "ip_sla" => Ok(Request::IpSla(operation, samples.unwrap_or(false))),
        "capture" => {
            let interface = interface.ok_or_else(|| lacks("interface", "the interface to capture on"))?;
            let file = file.ok_or_else(|| lacks("file", "the path of the file to write"))?;
            let snaplen = snaplen.filter(|bytes| *bytes > 0);
            let snaplen =
                snaplen.ok_or_else(|| lacks("snaplen", "the number of bytes to keep of each frame, at least 1"))?;
            let about = About { interface, snaplen, comment: comment.unwrap_or_default() };
            Ok(Request::Capture(Wanted { file, about, filter: filter.unwrap_or_default() }))
        }
        "end_capture" => file.map(Request::EndCapture).ok_or_else(|| lacks("file", "the path of its file")),
        "shutdown" => Ok(Request::Shutdown),
        _ => Err(Refusal::request(format!("unknown op {op:?}; expected one of {OPERATIONS}"))),
    }
}

/// Returns a reply line, without its newline.
fn reply<T: Serialize>(body: T) -> Vec<u8> {
    #[derive(Serialize)]
    struct Reply<T> {
        ok: bool,
        #[serde(flatten)]
        body: T,
    }
    serde_json::to_vec(&Reply { ok: true, body }).unwrap_or_else(|e| {
        refusal(&Refusal { code: "internal", message: format!("the reply cannot be written as JSON: {e}") })
    })
}

/// Returns the reply line to a request that is refused, without its newline.
pub fn refusal(refusal: &Refusal) -> Vec<u8> {
    serde_json::json!({"ok": false, "error": refusal}).to_string().into_bytes()
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Hello<'a> {
    program: &'static str,
    version: &'static str,
    format: u32,
    router: &'a str,
}

#[derive(Serialize)]
struct InForce<'a> {
    config: Option<&'a RawValue>,
}

/// Handler of requests: the data plane and the state of the protocol.
pub struct Service {
    /// The data plane.
    pub plane: Dataplane,
    /// Name of the router.
    pub name: String,
    /// The active configuration, in its original text.
    config: Option<Box<RawValue>>,
    /// Whether a client has requested the end.
    pub stopping: bool,
    /// Reason why the data plane has failed, if it has.
    pub failure: Option<String>,
}

impl Service {
    /// Returns a service for the router `name`, not yet configured.
    pub fn new(name: String, plane: Dataplane) -> Self {
        Self { plane, name, config: None, stopping: false, failure: None }
    }

    /// Answers one line.
    pub fn answer(&mut self, line: &[u8]) -> Vec<u8> {
        parse(line).and_then(|request| self.carry_out(request)).unwrap_or_else(|r| refusal(&r))
    }

    fn carry_out(&mut self, request: Request) -> Result<Vec<u8>, Refusal> {
        if let (Some(failure), false) = (&self.failure, matches!(request, Request::Shutdown)) {
            return Err(Refusal { code: "internal", message: failure.clone() });
        }
        Ok(match request {
            Request::Hello => reply(Hello {
                program: "qos-router",
                version: env!("CARGO_PKG_VERSION"),
                format: config::FORMAT,
                router: &self.name,
            }),
            Request::Configure(config) => {
                self.configure(config)?;
                reply(Nothing {})
            }
            Request::Config => reply(InForce { config: self.config.as_deref() }),
            Request::Counters(interface) => {
                let port = self.port(interface.as_deref())?;
                let counters = self.plane.counters(port);
                reply(CountersReply { counters, health: self.plane.health() })
            }
            Request::Resolve => reply(self.plane.resolve()),
            Request::Clear(interface) => {
                let port = self.port(interface.as_deref())?;
                self.plane.clear(port);
                reply(Nothing {})
            }
            Request::Health => reply(self.plane.health()),
            Request::IpSla(operation, samples) => reply(self.plane.ip_sla(operation, samples)),
            Request::Capture(mut wanted) => {
                let port = self.named(&wanted.about.interface)?;
                // A reader of the file does not know its owner.
                wanted.about.interface = format!("{} {}", self.name, wanted.about.interface);
                self.plane.capture(port, &wanted).map_err(|error| Refusal::request(error.to_string()))?;
                reply(Nothing {})
            }
            Request::EndCapture(file) => {
                reply(self.plane.end_capture(&file).map_err(|error| Refusal::request(error.to_string()))?)
            }
            Request::Shutdown => {
                self.stopping = true;
                reply(Nothing {})
            }
        })
    }

    fn configure(&mut self, text: Box<RawValue>) -> Result<(), Refusal> {
        let bad = |message: String| Refusal { code: "bad_config", message };
        let config = DataPlaneConfig::from_json(text.get()).map_err(|e| bad(e.to_string()))?;
        if config.engine.router != self.name {
            return Err(bad(format!(
                "router: found {:?}, but this is {:?}; send the configuration to its own router",
                config.engine.router, self.name
            )));
        }
        self.plane.configure(&config).map_err(|e| bad(e.to_string()))?;
        self.config = Some(text);
        Ok(())
    }

    fn port(&self, interface: Option<&str>) -> Result<Option<PortId>, Refusal> {
        interface.map(|name| self.named(name)).transpose()
    }

    fn named(&self, name: &str) -> Result<PortId, Refusal> {
        self.plane.port(name).ok_or_else(|| {
            let names: Vec<_> = self.plane.port_names().collect();
            Refusal::request(format!("interface: no port {name:?}; expected one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(line: &str) -> &'static str {
        parse(line.as_bytes()).expect_err("the request is wrong").code
    }

    #[test]
    fn requests_are_read() {
        assert!(matches!(parse(br#"{"op": "hello"}"#), Ok(Request::Hello)));
        assert!(matches!(parse(br#"{"op": "clear", "interface": "P"}"#), Ok(Request::Clear(Some(p))) if p == "P"));
        let configure = parse(br#"{"op": "configure", "config": { "z": 1,  "a": 2}}"#);
        assert!(matches!(configure, Ok(Request::Configure(c)) if c.get() == r#"{ "z": 1,  "a": 2}"#));
    }

    #[test]
    fn refusals_distinguish_bad_json_and_bad_requests() {
        assert_eq!(code("{"), "bad_json");
        assert_eq!(code("nonsense"), "bad_json");
        assert_eq!(parse(b"\xff").unwrap_err().code, "bad_json");
        assert_eq!(code("{}"), "bad_request");
        assert_eq!(code("[]"), "bad_request");
        assert_eq!(code(r#"{"op": "dance"}"#), "bad_request");
        assert_eq!(code(r#"{"op": "hello", "interface": "P"}"#), "bad_request");
        assert_eq!(code(r#"{"op": "hello", "other": 1}"#), "bad_request");
        assert_eq!(code(r#"{"op": "configure"}"#), "bad_request");
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(r) = parse(&bytes) {
                let line = refusal(&r);
                prop_assert!(!line.contains(&b'\n'));
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&line).is_ok());
            }
        }
    }
}
