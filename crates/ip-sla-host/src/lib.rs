//! IP SLA over ordinary sockets with the kernel's time stamps.
//!
//! `qos-router` has the sockets in the network namespace of its router's IP stack and, for packets through its ports,
//! time stamps that are closer to the line. On a host the program `sla` runs the same operations and the same responder
//! with the kernel's stamps alone: a packet's T1 is the time at which the driver takes it (after the host's queue), T4
//! its arrival from the driver.

pub mod responder;
pub mod sender;

pub use responder::Responder;
pub use sender::Sender;
