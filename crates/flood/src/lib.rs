//! UDP flood without a clock or sockets: due times and lengths of its datagrams, and the results that a receiver
//! derives from their numbers. The program `flood` adds the sockets; a simulator adds its own time.

pub mod datagram;
pub mod pace;
pub mod sequence;
pub mod source_frames;
pub mod starts;
