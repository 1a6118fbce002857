//! Any bytes on the control socket: split into lines of bounded length, read as requests, refused in one line of JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qos_router::control::{Line, Lines};
use qos_router::requests::{parse, refusal};

fuzz_target!(|pieces: Vec<&[u8]>| {
    let mut lines = Lines::default();
    for piece in pieces {
        lines.push(piece);
        while let Line::Whole(line) = lines.pull() {
            if let Err(refused) = parse(&line) {
                let reply = refusal(&refused);
                assert!(!reply.contains(&b'\n'));
                assert_eq!(serde_json::from_slice::<serde_json::Value>(&reply).unwrap()["ok"], false);
            }
        }
    }
});
