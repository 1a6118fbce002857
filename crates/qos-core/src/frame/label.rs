//! The label: data of a frame that the ingress side passes to the egress side.

/// Label of a frame inside a switch, independent of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The internal code point, 0 to 63.
    pub dscp: u8,
    /// Class of service if trusted: then it selects the queues instead of the DSCP.
    pub cos: Option<u8>,
    /// DSCP at departure if a policer has marked it down. Its queues do not change, so that packets of a flow stay in
    /// order (3750-X configuration guide OL-21521-01, 39-9).
    pub marked_down: Option<u8>,
}

impl Label {
    /// Returns the code point with which the frame leaves.
    pub fn leaving(self) -> u8 {
        self.marked_down.unwrap_or(self.dscp)
    }
}
