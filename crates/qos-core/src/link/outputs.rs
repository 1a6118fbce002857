//! Output that was not yet collected.

use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::frame::output::{Departure, Dropped, Output};
use crate::frame::port_number::{PortId, Side};
use crate::time::Time;

/// Output that was not yet collected.
#[derive(Debug)]
pub(crate) struct Outputs<P>(pub Vec<Output<P>>);

impl<P> Outputs<P> {
    #[inline]
    pub fn depart_inside(&mut self, time: Time, port: PortId, descriptor: Descriptor, payload: P) {
        self.0.push(Output::Departure(Departure { time, port, side: Side::Inside, descriptor, payload }));
    }

    #[inline]
    pub fn depart_wire(&mut self, time: Time, port: PortId, descriptor: Descriptor, payload: P) {
        self.0.push(Output::Departure(Departure { time, port, side: Side::Wire, descriptor, payload }));
    }

    #[inline]
    pub fn drop_inside(&mut self, time: Time, port: PortId, reason: DropReason, payload: P) {
        self.0.push(Output::Dropped(Dropped { time, port, towards: Side::Inside, reason, payload }));
    }

    #[inline]
    pub fn drop_wire(&mut self, time: Time, port: PortId, reason: DropReason, payload: P) {
        self.0.push(Output::Dropped(Dropped { time, port, towards: Side::Wire, reason, payload }));
    }
}
