//! Classification and marking: access lists, class-maps, and new field values of a packet.

pub(crate) mod access_list;
pub(crate) mod classifier;
pub(crate) mod marking;
pub(crate) mod matcher;
pub(crate) mod steering;
