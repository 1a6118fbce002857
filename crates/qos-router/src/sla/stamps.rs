//! When packets of IP SLA arrived on a link, until their sockets hand them over; when answers may leave, until they do.

use std::collections::HashMap;
use std::net::IpAddr;

use ip_sla::Send;
use netio::socket::Received;

use crate::frame::Probe;

/// Bytes of UDP payload that distinguish packets.
pub const KEY_BYTES: usize = 16;
/// Maximum number of stored stamps; older ones belong to packets that no socket received.
const HELD: usize = 8192;

/// Identification of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The other end's address.
    peer: IpAddr,
    /// Identifier and sequence number of ICMP, ports of UDP.
    numbers: (u16, u16),
    payload: [u8; KEY_BYTES],
}

impl Key {
    /// Returns the identification of an ICMP message from or to `peer`.
    pub fn icmp(peer: IpAddr, kind: u8, identifier: u16, sequence: u16) -> Self {
        let mut payload = [0; KEY_BYTES];
        payload[0] = kind;
        Self { peer, numbers: (identifier, sequence), payload }
    }

    /// Returns the identification of a UDP packet from or to `peer`.
    pub fn udp(peer: IpAddr, source_port: u16, destination_port: u16, bytes: &[u8]) -> Self {
        let mut payload = [0; KEY_BYTES];
        let taken = bytes.len().min(KEY_BYTES);
        payload[..taken].copy_from_slice(&bytes[..taken]);
        Self { peer, numbers: (source_port, destination_port), payload }
    }

    /// Returns the identification of a packet that a socket has delivered; `own` is the local UDP port.
    pub fn of_received(received: &Received, own: Option<u16>) -> Self {
        let ((source, port), bytes) = (received.from, &received.bytes);
        match own {
            Some(own) => Self::udp(source, port, own, bytes),
            None => Self::of_message(source, bytes),
        }
    }

    /// Returns the identification of a packet that an operation sends; `own` is the local UDP port.
    pub fn of_sent(send: &Send, own: Option<u16>) -> Self {
        let ((target, port), bytes) = (send.target, &send.bytes);
        match own {
            Some(own) => Self::udp(target, own, port, bytes),
            None => Self::of_message(target, bytes),
        }
    }

    fn of_message(peer: IpAddr, bytes: &[u8]) -> Self {
        let at = |n: usize| u16::from_be_bytes([bytes[n], bytes[n + 1]]);
        Self::icmp(peer, bytes[0], at(4), at(6))
    }

    /// Returns the identification of a packet in a received frame.
    pub fn of(probe: &Probe<'_>) -> Self {
        match *probe {
            Probe::Icmp { source, kind, identifier, sequence, .. } => Self::icmp(source, kind, identifier, sequence),
            Probe::Udp { source, source_port, destination_port, payload, .. } => {
                Self::udp(source, source_port, destination_port, payload)
            }
        }
    }
}

/// Times by packet.
#[derive(Debug, Default)]
pub struct Stamps {
    held: HashMap<Key, u64>,
}

impl Stamps {
    /// Stores a packet's time; of two identical packets the first one counts.
    pub fn insert(&mut self, key: Key, at: u64) {
        self.make_room();
        self.held.entry(key).or_insert(at);
    }

    /// Stores a packet's time; of two identical packets the last one counts, because the first one was not used.
    pub fn replace(&mut self, key: Key, at: u64) {
        self.make_room();
        self.held.insert(key, at);
    }

    fn make_room(&mut self) {
        if self.held.len() >= HELD {
            let mut times: Vec<u64> = self.held.values().copied().collect();
            let middle = times.len() / 2;
            let (_, median, _) = times.select_nth_unstable(middle);
            let median = *median;
            self.held.retain(|_, time| *time > median);
        }
    }

    /// Takes the time of a packet.
    pub fn take(&mut self, key: &Key) -> Option<u64> {
        self.held.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn oldest_stamps_are_evicted() {
        let mut stamps = Stamps::default();
        let key = |n: u64| Key::icmp(Ipv4Addr::LOCALHOST.into(), 14, (n >> 16) as u16, n as u16);
        (0..3 * HELD as u64).for_each(|n| stamps.insert(key(n), n));
        assert!(stamps.held.len() <= HELD);
        let newest = 3 * HELD as u64 - 1;
        assert_eq!(stamps.take(&key(newest)), Some(newest));
        assert_eq!(stamps.take(&key(newest)), None);
        assert_eq!(stamps.take(&key(0)), None);
    }

    #[test]
    fn stamps_of_identical_packets_are_taken_in_order() {
        let mut stamps = Stamps::default();
        let key = Key::icmp(Ipv4Addr::LOCALHOST.into(), 13, 1, 1);
        stamps.insert(key, 1);
        stamps.insert(key, 2);
        assert_eq!(stamps.take(&key), Some(1));
        stamps.insert(key, 3);
        stamps.replace(key, 4);
        assert_eq!(stamps.take(&key), Some(4));
    }
}
