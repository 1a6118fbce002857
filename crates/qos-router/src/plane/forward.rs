//! Packets in transit, from their input link to their output port.

use std::os::fd::RawFd;

use qos_core::frame::parse;
use qos_core::wire::tcp_options::lower_mss;
use qos_core::{Descriptor, Time};

use super::port::{Arrival, Held, Port};
use super::Dataplane;
use crate::bridge::retag;
use crate::forwarding::packet::rewrite;
use crate::forwarding::Inside;
use crate::frame_pool::Frame;

impl Dataplane {
    /// Returns the descriptor for notifications of the router's kernel.
    pub fn kernel_descriptor(&self) -> Option<RawFd> {
        self.forwarding.descriptor()
    }

    /// Reads the messages of the router's kernel.
    pub fn follow_kernel(&mut self) {
        self.forwarding.follow();
    }

    /// Passes the ports' insides to the forwarding.
    pub(super) fn attach_insides(&mut self) {
        self.forwarding.follow();
        self.forwarding.attach(self.ports.iter().flat_map(Port::insides));
    }

    /// Forwards a frame that left the input side at `time`, with its stored properties; returns the frame if the kernel
    /// must forward it.
    pub(super) fn forward(
        &mut self,
        input: Inside,
        time: Time,
        descriptor: &Descriptor,
        mut frame: Frame,
    ) -> Option<Frame> {
        let Some((output, packet, way)) = self.forwarding.way(input, self.pool.get(&frame)) else { return Some(frame) };
        let length = rewrite(self.pool.get_mut(&frame), &packet, &way.header);
        self.pool.truncate(&mut frame, length);
        let port = &mut self.ports[usize::from(output.port)];
        let (tag, adjust_mss) = match output.subinterface.map(|index| &port.subinterfaces[usize::from(index)]) {
            Some(subinterface) => (subinterface.tag(), subinterface.adjust_mss),
            None => (None, port.adjust_mss),
        };
        if let Some(most) = adjust_mss {
            lower_mss(self.pool.get_mut(&frame), most);
        }
        let descriptor = if tag.is_none() && descriptor.tags == 0 {
            // A class of service set by a policy needs a tag, and is lost without one.
            Descriptor { cos: 0, ..descriptor.framed(port.framing) }
        } else {
            retag(self.pool.get(&frame), tag, &mut self.bytes);
            let tagged = self.pool.put(&self.bytes);
            self.pool.free(std::mem::replace(&mut frame, tagged));
            let Descriptor { qos_group, discard_class, label, input_port, .. } = *descriptor;
            Descriptor { qos_group, discard_class, label, input_port, ..parse(&self.bytes, port.framing) }
        };
        let held = Held { frame, dscp: descriptor.dscp, ecn: descriptor.ecn, cos: descriptor.cos };
        port.arrivals.push(Arrival { event: time, descriptor, held });
        None
    }
}
