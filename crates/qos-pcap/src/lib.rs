//! Packet captures as columns: [`capture::Capture`] gives the packets of a file, one after the other,
//! [`packet::describe`] extracts the properties for the analysis, and [`columns::Columns`] collects them.
//!
//! Captures are not trusted. Frame headers are read by `qos_core`.

pub mod capture;
pub mod columns;
pub mod input;
pub mod link;
pub mod packet;
mod pcap;
mod pcapng;
mod record;
