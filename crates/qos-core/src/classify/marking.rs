//! Marking of packets by `set` commands and policers.

use crate::config::policy::{MapAction, PoliceAction, SetField};
use crate::config::queueing::ThresholdField;
use crate::frame::descriptor::{Descriptor, Network};
use crate::plan::field;

/// Writes `value` into the field. Returns false if the packet has no such field (then nothing is counted as marked).
pub(crate) fn set(descriptor: &mut Descriptor, field: SetField, value: u16) -> bool {
    let applies = match field {
        SetField::Dscp | SetField::Precedence => descriptor.is_ip(),
        SetField::IpDscp | SetField::IpPrecedence => descriptor.network == Network::Ipv4,
        SetField::Cos | SetField::QosGroup | SetField::DiscardClass => true,
    };
    if applies && !mistaken!(MarkingMissing) {
        // Ranges were checked with the configuration.
        match field {
            SetField::Dscp | SetField::IpDscp => descriptor.dscp = value as u8 & 0x3f,
            // The three low bits of the code point are not part of the precedence and stay.
            SetField::Precedence | SetField::IpPrecedence => {
                descriptor.dscp = ((value as u8 & 0x07) << 3) | descriptor.dscp & 0x07;
            }
            SetField::Cos => descriptor.cos = value as u8 & 0x07,
            SetField::QosGroup => descriptor.qos_group = value,
            SetField::DiscardClass => descriptor.discard_class = value as u8 & 0x07,
        }
    }
    applies
}

/// Returns the value that a map gives a packet, as it arrived at the class.
pub(crate) fn mapped(came: &Descriptor, map: &MapAction) -> Option<u16> {
    let is_ip = !matches!(map.source, ThresholdField::Dscp | ThresholdField::Precedence) || came.is_ip();
    map.values.get(field::value(map.source, came)).copied().flatten().filter(|_| is_ip)
}

/// Applies a policer's actions to packets of one colour. Returns false to drop the packet.
pub(crate) fn police(descriptor: &mut Descriptor, actions: &[PoliceAction]) -> bool {
    let mut transmit = true;
    for action in actions {
        match *action {
            // Marking down needs a switch's map: its own policers do that.
            PoliceAction::Transmit {} | PoliceAction::PolicedDscpTransmit {} => {}
            PoliceAction::Drop {} => transmit = false,
            PoliceAction::SetDscpTransmit { value } => drop(set(descriptor, SetField::Dscp, value)),
            PoliceAction::SetPrecTransmit { value } => drop(set(descriptor, SetField::Precedence, value)),
            PoliceAction::SetQosTransmit { value } => drop(set(descriptor, SetField::QosGroup, value)),
            PoliceAction::SetCosTransmit { value } => drop(set(descriptor, SetField::Cos, value)),
            PoliceAction::SetDiscardClassTransmit { value } => drop(set(descriptor, SetField::DiscardClass, value)),
        }
    }
    transmit
}
