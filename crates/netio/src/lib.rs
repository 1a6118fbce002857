//! What the programs share on the side of the system: waiting for descriptors, signals and moments, the clocks, sockets
//! with the kernel's time stamps, files of captured packets, and how a program ends.
//!
//! Files and programs are the same on every system; the rest is Linux.

pub mod capture_file;
#[cfg(target_os = "linux")]
pub mod clock;
pub mod program;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod wait;
