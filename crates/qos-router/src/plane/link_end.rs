//! End of a link: its frames, and the state of a link in memory.

use std::os::fd::OwnedFd;

use qos_core::Time;

use crate::frame_pool::Frame;

/// A frame to send on an interface.
#[derive(Debug)]
pub(super) struct Sending {
    pub time: Time,
    pub frame: Frame,
}

/// The end of a link to another router of this process.
#[derive(Debug)]
pub(super) struct Memory {
    /// State of the interface that stands for the link.
    pub name: String,
    pub index: u32,
    pub state: WireState,
    /// Socket for copies of frames, while the interface of either end is captured.
    pub tap: Option<OwnedFd>,
    pub copies: Vec<Sending>,
}

impl Memory {
    pub fn new(name: &str, index: u32) -> Self {
        Self { name: name.to_owned(), index, state: WireState::default(), tap: None, copies: Vec::new() }
    }
}

/// State of the interface at an end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireState {
    /// Whether frames pass: both ends are up.
    pub up: bool,
    /// Somebody captures there.
    pub captured: bool,
}

/// A frame that leaves for another router of this process.
#[derive(Debug)]
pub struct Crossing {
    /// Index of the port by which it leaves.
    pub port: usize,
    /// Time at which it is on the wire.
    pub time: Time,
    pub(super) frame: Frame,
}
