//! System functions shared by the programs: waiting for descriptors, signals and times, clocks, sockets with kernel
//! time stamps, capture files, and the end of a program.
//!
//! Files and programs are the same on every system; everything else is specific to Linux.

pub mod capture_file;
#[cfg(target_os = "linux")]
pub mod clock;
pub mod program_end;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod tcp_info;
#[cfg(target_os = "linux")]
pub mod wait;
