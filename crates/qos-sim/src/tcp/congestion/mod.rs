//! Congestion control: the window, who lets it grow, and how it shrinks.

mod control;
mod cubic;
mod hystart;
mod prr;
mod reno;
mod window;

pub(crate) use control::Congestion;
pub(crate) use window::Progress;
