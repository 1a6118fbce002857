//! What is on the wire: framings and their overheads.

pub(crate) mod framing;

pub use framing::{counted_header, Framing};
