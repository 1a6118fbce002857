//! Output of the engine: frames that leave, and frames that were dropped.

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::port_number::{PortId, Side};
use crate::time::Time;

/// A frame that leaves the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// Departure time by the link's own clock. [`Side::Wire`]: the last bit has reached the other end.
    /// [`Side::Inside`]: the last bit has arrived here.
    pub time: Time,
    /// Port of the frame.
    pub port: PortId,
    /// Side of the port.
    pub side: Side,
    /// Description of the frame on output. If its `dscp` or `cos` differs from the frame's, the caller rewrites the
    /// bytes.
    pub descriptor: Descriptor,
    /// Payload given by the caller.
    pub payload: P,
}

/// A frame that the engine dropped, returned so that its buffer can be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// Time of the output.
    pub time: Time,
    /// Port of the frame.
    pub port: PortId,
    /// Direction: input (`Side::Inside`) or output (`Side::Wire`).
    pub towards: Side,
    /// Reason.
    pub reason: DropReason,
    /// Payload given by the caller.
    pub payload: P,
}

/// Output of [`Engine::poll`](crate::Engine::poll).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A frame leaves.
    Departure(Departure<P>),
    /// A frame was dropped.
    Dropped(Dropped<P>),
}
