//! Ports by number, and their sides.

/// A port, numbered in the order of the ports' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Destination of a frame that leaves a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the router's own IP stack.
    Inside,
    /// Onto the link.
    Wire,
}
