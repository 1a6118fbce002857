//! Frames in the engine: their properties, port and side, drop reason, and output.

pub(crate) mod descriptor;
pub(crate) mod drop_reason;
pub(crate) mod label;
pub(crate) mod output;
pub(crate) mod port_number;

pub use descriptor::{flow_key, header_rest, parse, Descriptor, HeaderRest, Network};
pub use drop_reason::DropReason;
pub use label::Label;
pub use output::{Departure, Dropped, Output};
pub use port_number::{PortId, Side};

pub use crate::wire::ethernet::rewrite_cos;
pub use crate::wire::ip::{rewrite_dscp, rewrite_ecn};
