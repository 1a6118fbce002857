//! Congestion control: the window, who lets it grow, and how it shrinks.

mod controller;
mod cubic;
mod hystart;
mod prr;
mod reno;
mod window;

pub(crate) use controller::Congestion;
pub(crate) use window::Progress;
