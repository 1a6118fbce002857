//! Plans: the complete settings of a port, with all defaults filled in. The compiler creates this plain data for the
//! run time.

pub(crate) mod access_groups;
pub(crate) mod admission;
pub(crate) mod aqm;
pub(crate) mod catalyst;
pub(crate) mod classes;
pub(crate) mod field;
pub(crate) mod interface_queueing;
pub(crate) mod police;
pub(crate) mod port;
pub(crate) mod queue;
pub(crate) mod rate_limit;
pub(crate) mod shape;
pub(crate) mod tree;
