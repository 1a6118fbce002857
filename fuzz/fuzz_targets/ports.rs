//! Any text as the wiring of the ports: read or refused, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qos_router::ports::parse;

fuzz_target!(|text: &str| {
    if let Ok(wiring) = parse(text) {
        let again = serde_json::to_string(&wiring).unwrap();
        assert_eq!(parse(&again), Ok(wiring));
    }
});
