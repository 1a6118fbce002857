//! A router's port: input from the wire through the input policy, and output through output policy, queues and transmit
//! ring onto the wire.

pub(crate) mod access_groups;
pub(crate) mod admission;
pub(crate) mod egress;
pub(crate) mod ingress;
pub(crate) mod port;
pub(crate) mod rate_limits;
pub(crate) mod tx_ring;
pub(crate) mod vlans;
