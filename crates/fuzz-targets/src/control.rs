//! Any bytes on the control socket: split into lines of bounded length, read as requests, refused in one line of JSON.

use qos_router::control::{Line, Lines};
use qos_router::requests::{parse, refusal};

/// Separator between chunks that are read at once; not a byte of UTF-8.
const SEPARATOR: u8 = 0xff;

/// Panics if a property is violated.
pub fn run(bytes: &[u8]) {
    let mut lines = Lines::default();
    for piece in bytes.split(|byte| *byte == SEPARATOR) {
        lines.push(piece);
        while let Line::Whole(line) = lines.pull() {
            if let Err(refused) = parse(&line) {
                let reply = refusal(&refused);
                assert!(!reply.contains(&b'\n'));
                assert_eq!(serde_json::from_slice::<serde_json::Value>(&reply).unwrap()["ok"], false);
            }
        }
    }
}
