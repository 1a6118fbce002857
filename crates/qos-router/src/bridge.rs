//! Switching of frames between switched ports by learnt hardware addresses (IEEE 802.1Q, without spanning tree).
//!
//! The kernel takes no part: switching works wherever packet sockets do, and a frame retains its label and event time.

use std::collections::HashMap;

use qos_core::config::{SwitchportConfig, SwitchportMode};
pub use qos_core::wire::ethernet::Tag;
use qos_core::wire::ethernet::{self, TAG};
use qos_core::{PortId, RouterConfig, Time};

/// Time after which an unused address is forgotten (`mac address-table aging-time`, the platform's default).
const AGE_NS: u64 = 300 * 1_000_000_000;
/// Maximum number of addresses: similar to the hardware's table; it limits memory use.
const ADDRESSES: usize = 12_000;

type Address = [u8; 6];

/// Switched ports and the learnt stations behind them.
#[derive(Debug, Default)]
pub struct Bridge {
    /// Switched port by port number; null if it does not switch.
    ports: Vec<Option<SwitchportConfig>>,
    /// Port at which a frame of each station last arrived, by VLAN.
    table: HashMap<(u16, Address), (PortId, Time)>,
}

/// Writes the frame to `into` with another tag, or none, in place of its own. `into` is overwritten.
pub fn retag(frame: &[u8], new: Option<Tag>, into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(&frame[..ethernet::ADDRESSES]);
    if let Some(new) = new {
        into.extend_from_slice(&new.bytes());
    }
    into.extend_from_slice(
        &frame[if Tag::of(frame).is_some() { ethernet::ADDRESSES + TAG } else { ethernet::ADDRESSES }..],
    );
}

/// Returns whether the switch consumes frames to this destination instead of forwarding them: addresses reserved by
/// IEEE 802.1D (spanning tree, pause, LLDP), and Cisco's own protocols.
fn is_for_the_switch(destination: Address) -> bool {
    let [a, b, c, d, e, f] = destination;
    (a, b, c, d, e) == (0x01, 0x80, 0xc2, 0, 0) && f < 0x10 || (a, b, c) == (0x01, 0x00, 0x0c) && (d, e) == (0xcc, 0xcc)
}

impl Bridge {
    /// Sets the switched ports of a configuration, in the order of the ports' numbers. A port that is shut down does
    /// not take part. Learnt addresses stay unless the ports changed.
    pub fn configure<'a>(&mut self, config: &RouterConfig, names: impl Iterator<Item = &'a str>) {
        let switchport = |name: &str| {
            let interface = config.interfaces.get(name).filter(|interface| interface.enabled)?;
            config.switch.as_ref().and(interface.switch.as_ref())?.switchport
        };
        let ports: Vec<_> = names.map(switchport).collect();
        if ports != self.ports {
            self.table.clear();
            self.ports = ports;
        }
    }

    fn switchport(&self, port: PortId) -> Option<&SwitchportConfig> {
        self.ports.get(usize::from(port.0))?.as_ref()
    }

    /// Returns whether a port is switched.
    pub fn switches(&self, port: PortId) -> bool {
        self.switchport(port).is_some()
    }

    /// Calls `to` with each output port of a frame from a switched port, and its tag there.
    pub fn forward(&mut self, now: Time, input: PortId, frame: &[u8], mut to: impl FnMut(PortId, Option<Tag>)) {
        let Some(port) = self.switchport(input) else { return };
        let Some((destination, rest)) = frame.split_first_chunk::<6>() else { return };
        let Some(source) = rest.first_chunk::<6>() else { return };
        let (cos, vlan) = match Tag::of(frame) {
            // A tag with VLAN 0 only carries a class of service.
            None => (0, port.vlan),
            Some(Tag { cos, vlan: 0 }) => (cos, port.vlan),
            Some(Tag { cos, vlan }) if port.mode == SwitchportMode::Trunk || vlan == port.vlan => (cos, vlan),
            Some(_) => return,
        };
        const GROUP: u8 = 1;
        if source[0] & GROUP == 0 {
            self.learn(now, (vlan, *source), input);
        }
        if is_for_the_switch(*destination) {
            return;
        }
        let mut send = |output: PortId| {
            let Some(port) = self.ports.get(usize::from(output.0)).and_then(Option::as_ref) else { return };
            match port.mode {
                _ if output == input => {}
                SwitchportMode::Access if port.vlan == vlan => to(output, None),
                SwitchportMode::Access => {}
                SwitchportMode::Trunk => to(output, (vlan != port.vlan).then_some(Tag { cos, vlan })),
            }
        };
        let known = self.table.get(&(vlan, *destination)).filter(|(_, heard)| now.since(*heard).0 < AGE_NS);
        match known {
            Some((output, _)) => send(*output),
            None => (0..self.ports.len()).for_each(|output| send(PortId(output as u16))),
        }
    }

    fn learn(&mut self, now: Time, station: (u16, Address), port: PortId) {
        if self.table.len() >= ADDRESSES && !self.table.contains_key(&station) {
            self.table.retain(|_, (_, heard)| now.since(*heard).0 < AGE_NS);
            if self.table.len() >= ADDRESSES {
                return;
            }
        }
        self.table.insert(station, (port, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Address = [2, 0, 0, 0, 0, 0xa];
    const B: Address = [2, 0, 0, 0, 0, 0xb];
    const ALL: Address = [0xff; 6];

    fn frame(to: Address, from: Address, tag: Option<Tag>) -> Vec<u8> {
        let plain = [&to[..], &from[..], &[0x08, 0x00], &[7; 46]].concat();
        let mut frame = Vec::new();
        retag(&plain, tag, &mut frame);
        frame
    }

    /// Returns the ports 0 and 1 in VLAN 10, 2 in VLAN 20, 3 routed, 4 and 5 trunks with native VLAN 1 and 10.
    fn bridge() -> Bridge {
        let access = |vlan| Some(SwitchportConfig { mode: SwitchportMode::Access, vlan });
        let trunk = |vlan| Some(SwitchportConfig { mode: SwitchportMode::Trunk, vlan });
        Bridge { ports: vec![access(10), access(10), access(20), None, trunk(1), trunk(10)], table: HashMap::new() }
    }

    fn forward(bridge: &mut Bridge, now: u64, input: u16, frame: &[u8]) -> Vec<(u16, Option<u16>)> {
        let mut out = Vec::new();
        bridge.forward(Time(now), PortId(input), frame, |port, tag| out.push((port.0, tag.map(|tag| tag.vlan))));
        out
    }

    #[test]
    fn unknown_stations_are_flooded_and_known_ones_not() {
        let mut bridge = bridge();
        let everywhere = [(1, None), (4, Some(10)), (5, None)];
        assert_eq!(forward(&mut bridge, 0, 0, &frame(B, A, None)), everywhere);
        assert_eq!(forward(&mut bridge, 1, 1, &frame(A, B, None)), [(0, None)]);
        assert_eq!(forward(&mut bridge, 2, 0, &frame(B, A, None)), [(1, None)]);
        assert_eq!(forward(&mut bridge, 3, 0, &frame(ALL, A, None)), everywhere);
        // On the same port: not sent back.
        assert_eq!(forward(&mut bridge, 4, 0, &frame(A, [2; 6], None)), []);
        // A station that moves is heard on another port.
        forward(&mut bridge, 5, 1, &frame(ALL, A, None));
        assert_eq!(forward(&mut bridge, 6, 5, &frame(A, B, None)), [(1, None)]);
        assert_eq!(forward(&mut bridge, AGE_NS + 6, 0, &frame(A, A, None)), []);
        assert_eq!(forward(&mut bridge, 2 * AGE_NS + 6, 0, &frame(B, A, None)), everywhere);
    }

    #[test]
    fn bridge_isolates_vlans() {
        let mut bridge = bridge();
        forward(&mut bridge, 0, 0, &frame(ALL, A, None));
        assert_eq!(forward(&mut bridge, 1, 2, &frame(A, B, None)), [(4, Some(20)), (5, Some(20))]);
        // Frames of a trunk by their tag; frames without one, or with VLAN 0, belong to its native VLAN.
        let tagged = |vlan| frame(A, B, Some(Tag { cos: 5, vlan }));
        assert_eq!(forward(&mut bridge, 2, 4, &tagged(10)), [(0, None)]);
        assert_eq!(forward(&mut bridge, 3, 4, &tagged(20)), [(2, None), (5, Some(20))]);
        assert_eq!(forward(&mut bridge, 4, 4, &frame(A, B, None)), [(5, Some(1))]);
        assert_eq!(forward(&mut bridge, 5, 5, &tagged(0)), [(0, None)]);
        // An access port accepts only the tag of its own VLAN.
        assert_eq!(forward(&mut bridge, 6, 2, &tagged(10)), []);
        assert_eq!(forward(&mut bridge, 7, 1, &tagged(10)), [(0, None)]);
        assert_eq!(forward(&mut bridge, 8, 3, &frame(ALL, B, None)), []);
        for reserved in [[1, 0x80, 0xc2, 0, 0, 0], [1, 0, 0x0c, 0xcc, 0xcc, 0xcc]] {
            assert_eq!(forward(&mut bridge, 9, 0, &frame(reserved, A, None)), []);
        }
    }

    #[test]
    fn address_table_size_is_limited() {
        let mut bridge = bridge();
        for station in 0..20_000u32 {
            let [a, b, c, d] = station.to_be_bytes();
            forward(&mut bridge, 0, 0, &frame(ALL, [2, 0, a, b, c, d], None));
        }
        assert_eq!(bridge.table.len(), ADDRESSES);
        forward(&mut bridge, AGE_NS, 1, &frame(ALL, [4, 0, 0, 0, 0, 1], None));
        assert_eq!(bridge.table.len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 14..80), port in 0u16..8) {
            let mut out = Vec::new();
            let mut scratch = Vec::new();
            bridge().forward(Time(0), PortId(port), &bytes, |port, tag| out.push((port, tag)));
            for (_, tag) in out {
                retag(&bytes, tag, &mut scratch);
            }
        }
    }
}
