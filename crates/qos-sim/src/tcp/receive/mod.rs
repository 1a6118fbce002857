//! The receiving half.

pub(crate) mod ack_policy;
pub(crate) mod receiver;
