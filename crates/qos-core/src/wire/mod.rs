//! Wire formats: Ethernet, VLAN tags, IPv4 and IPv6, and framings with their overheads.
//!
//! Frames come from a network, so they are not trusted: any bytes are safe input.

pub mod bytes;
pub(crate) mod checksum;
pub mod ethernet;
pub(crate) mod framing;
pub mod ip;
pub mod tcp_options;

pub use framing::{counted_header, Framing};
pub use ip::protocol;
