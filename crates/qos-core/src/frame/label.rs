//! The label: what the way in tells the way out of a frame.

/// What a frame is inside a switch, whatever its bytes say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The internal code point, 0 to 63.
    pub dscp: u8,
    /// The class of service, where that is trusted: then it picks the queues instead of the code point.
    pub cos: Option<u8>,
}
