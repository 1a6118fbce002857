//! A Catalyst 3750 in place of a router: `mls qos`.
//!
//! Way in: link arrival → trust or input policy (the internal code point, which is the frame's label) → policer →
//! ingress queue (never full). Way out: queue and threshold by the label → weighted tail drop on cells of a shared
//! memory → shaped and shared round robin → rewrite → serialiser → propagation delay.

pub(crate) mod buffer_pool;
pub(crate) mod egress;
pub(crate) mod ingress;
pub(crate) mod port;
pub(crate) mod srr;
