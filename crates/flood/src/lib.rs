//! What a UDP flood is, without clock and sockets: when its datagrams are due, how long they are, and what a receiver
//! learns from their numbers. The program `flood` brings the sockets; a simulator brings its own time.

pub mod datagram;
pub mod frames;
pub mod pace;
pub mod sequence;
