//! Congestion control: the window, its growth and its reduction.

mod controller;
mod cubic;
mod hystart;
mod prr;
mod reno;
mod window;

pub(crate) use controller::Congestion;
pub(crate) use window::Progress;
