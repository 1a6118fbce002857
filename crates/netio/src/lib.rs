//! What the programs share on the side of the system: waiting for descriptors, signals and moments, the clocks, sockets
//! with the kernel's time stamps, files of captured packets, and how a program ends.

pub mod capture_file;
pub mod clock;
pub mod program;
pub mod socket;
pub mod wait;
