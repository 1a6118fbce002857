//! IP SLA over ordinary sockets with the kernel's time stamps.
//!
//! `qos-router` has the sockets in the network namespace of its router's IP stack and, for what crosses its ports,
//! stamps of its own that are nearer to the line. On a host the program `sla` runs the same operations and the same
//! responder with the kernel's stamps alone: a packet's T1 is that of the driver taking it (after the host's own
//! queue), T4 that of its arrival from the driver.

pub mod responder;
pub mod sender;

pub use responder::Responder;
pub use sender::Sender;
