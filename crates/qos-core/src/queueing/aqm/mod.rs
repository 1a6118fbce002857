//! Queues with active queue management: CoDel, FQ-CoDel, PIE and CAKE.
//!
//! Such a queue decides on a packet when it comes ([`managed::Managed::admit`]) and when it is to leave
//! ([`managed::Managed::stage`]).
//! Both know the time, and both may drop packets that wait. The scheduler asks for the second right before it takes a
//! packet, so that the other disciplines have nothing of it.

pub(crate) mod cake;
pub(crate) mod cake_flows;
pub(crate) mod cobalt;
pub(crate) mod codel;
pub(crate) mod fq_codel;
pub(crate) mod manage;
pub(crate) mod managed;
pub(crate) mod pie;
pub(crate) mod single;
