//! Integration tests of the simulator in one program: each file is a module; `common` and `scene` are shared.

mod bursts;
mod command;
mod common;
mod congestion_notification;
mod datagrams;
mod explain;
mod golden;
mod interface_edges;
mod invariants;
mod ipv6;
mod policed;
mod probes;
mod receiving;
mod recovery;
mod refusals;
mod response;
mod scene;
mod schema;
mod transfers;
mod vectors;
mod whole_network;
