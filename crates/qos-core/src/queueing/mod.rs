//! Queueing: the disciplines, random early detection, shapers, and the scheduler of an interface's tree of queues.

pub(crate) mod aqm;
pub(crate) mod discipline;
pub(crate) mod fair_queue;
pub(crate) mod fifo;
pub(crate) mod limited_fifo;
pub(crate) mod queue;
pub(crate) mod queue_counters;
pub(crate) mod random_detect;
pub(crate) mod scheduler;
pub(crate) mod shaper;
pub(crate) mod turns;
pub(crate) mod weighted_fair;
