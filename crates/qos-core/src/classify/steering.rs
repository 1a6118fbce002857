//! Selection of a queue by an interface without a queueing policy.

use crate::classify::access_list::AccessList;
use crate::config::interface_queueing::QueuedProtocol;
use crate::frame::descriptor::{Descriptor, Network};
use crate::plan::interface_queueing::{Steering, Wanted};

impl Steering {
    /// Returns the node of the queue.
    pub fn leaf(&self, descriptor: &Descriptor, lists: &mut [AccessList]) -> usize {
        let found = self.rules.iter().find(|(wanted, _)| wanted.is(descriptor, lists));
        found.map_or(self.other, |(_, leaf)| *leaf)
    }
}

impl Wanted {
    fn is(&self, descriptor: &Descriptor, lists: &mut [AccessList]) -> bool {
        let protocol = self.protocol.is_none_or(|protocol| {
            let network = match protocol {
                QueuedProtocol::Ip => Network::Ipv4,
                QueuedProtocol::Ipv6 => Network::Ipv6,
                QueuedProtocol::Other => Network::Other,
            };
            descriptor.network == network
        });
        protocol
            && self.input.is_none_or(|port| descriptor.input_port == Some(port))
            && self.larger_than.is_none_or(|bytes| descriptor.counted_len > bytes)
            && self.smaller_than.is_none_or(|bytes| descriptor.counted_len < bytes)
            && (!self.fragments || descriptor.later_fragment)
            && self.port.is_none_or(|port| {
                descriptor.protocol == port.protocol
                    && [descriptor.source_port, descriptor.destination_port].contains(&Some(port.number))
            })
            && self.access_list.is_none_or(|list| lists[list].permits(descriptor))
    }
}
