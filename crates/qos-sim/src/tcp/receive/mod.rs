//! The receiving half.

pub(crate) mod ack_policy;
pub(crate) mod congestion_echo;
pub(crate) mod receiver;
