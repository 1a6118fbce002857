//! Any text as the wiring of the ports: parsed or refused, and a parsed wiring can be written and parsed again.

use qos_router::ports::parse;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(wiring) = parse(text) {
        let again = serde_json::to_string(&wiring).unwrap();
        assert_eq!(parse(&again), Ok(wiring));
    }
}
