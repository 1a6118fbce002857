//! Queues with active queue management: CoDel, FQ-CoDel, PIE and CAKE.
//!
//! Such a queue decides on a packet at its arrival ([`managed::Managed::admit`]) and at its departure
//! ([`managed::Managed::stage`]). Both decisions use the time, and both may drop waiting packets. The scheduler
//! requests the second right before it removes a packet, so that the other disciplines have nothing of it.

pub(crate) mod cake;
pub(crate) mod cake_flows;
pub(crate) mod cobalt;
pub(crate) mod codel;
pub(crate) mod fq_codel;
pub(crate) mod manage;
pub(crate) mod managed;
pub(crate) mod pie;
pub(crate) mod single;
