//! UDP flood without clock and sockets: when its datagrams are due, how long they are, and what a receiver derives from
//! their numbers. The program `flood` adds the sockets; a simulator adds its own time.

pub mod datagram;
pub mod pace;
pub mod sequence;
pub mod source_frames;
