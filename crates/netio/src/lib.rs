//! What the programs share on the side of the system: waiting for descriptors, signals and moments, the clocks, sockets
//! with the kernel's time stamps, and how a program ends.

pub mod clock;
pub mod program;
pub mod socket;
pub mod wait;
