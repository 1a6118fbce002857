//! The fields of a packet that select a limit, or are the source of a marking.

use crate::config::queueing::ThresholdField;
use crate::frame::descriptor::Descriptor;

/// Returns the value of the field in a packet.
pub(crate) fn value(field: ThresholdField, descriptor: &Descriptor) -> usize {
    match field {
        ThresholdField::Dscp => usize::from(descriptor.dscp),
        ThresholdField::Precedence => usize::from(descriptor.precedence()),
        ThresholdField::Cos => usize::from(descriptor.cos & 7),
        ThresholdField::DiscardClass => usize::from(descriptor.discard_class),
        ThresholdField::QosGroup => usize::from(descriptor.qos_group),
    }
}
