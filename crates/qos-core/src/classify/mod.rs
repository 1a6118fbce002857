//! Classifying and marking: access lists, class-maps, and what is written into a packet.

pub(crate) mod access_list;
pub(crate) mod classifier;
pub(crate) mod marking;
pub(crate) mod matcher;
pub(crate) mod steering;
