//! Contents of a flood's datagram, from which its receiver detects missing ones.

use std::net::IpAddr;

/// Returns the IP and UDP headers without options or extensions: counted by `--size` in addition to the payload.
pub const fn headers(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 28,
        IpAddr::V6(_) => 48,
    }
}

/// Minimum payload: the header of the flood itself.
pub const LEAST_PAYLOAD: u32 = Stamp::LENGTH as u32;
/// Minimum IP length, that of an IPv4 packet.
pub const LEAST_SIZE: u32 = 28 + LEAST_PAYLOAD;
/// Greatest IP length.
pub const GREATEST_SIZE: u32 = 65_535;
/// Lengths of random payloads, which are uniform over this range, as in flood.pl.
pub const RANDOM_PAYLOAD: std::ops::RangeInclusive<u32> = 64..=1023;
/// Random ports, which are uniform over this range, as in flood.pl.
pub const RANDOM_PORT: std::ops::RangeInclusive<u16> = 1..=65_500;

/// Port and length of each datagram in turn.
#[derive(Debug)]
pub struct Draw {
    port: Option<u16>,
    payload: Option<u32>,
    random: fastrand::Rng,
}

impl Draw {
    /// Creates a draw; the destination port or payload size is drawn for each datagram if it is absent.
    pub fn new(port: Option<u16>, payload: Option<u32>, seed: u64) -> Self {
        Self { port, payload, random: fastrand::Rng::with_seed(seed) }
    }

    /// Returns the destination port and payload bytes of the next datagram.
    #[allow(clippy::should_implement_trait)] // it never ends
    pub fn next(&mut self) -> (u16, u32) {
        let port = self.port.unwrap_or_else(|| self.random.u16(RANDOM_PORT));
        let length = self.payload.unwrap_or_else(|| self.random.u32(RANDOM_PAYLOAD));
        (port, length)
    }
}

/// The first bytes of every payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Distinguishes successive floods from the same source port.
    pub flood: u64,
    /// Number among the sent datagrams of one source port, from 0.
    pub sequence: u64,
    /// Monotonic time of the sender at transmission, in nanoseconds.
    pub sent_ns: u64,
}

const MAGIC: [u8; 4] = *b"qfld";
/// First bytes of the stamp of a payload without room for a complete one.
const SHORT_MAGIC: [u8; 2] = *b"qs";
/// Bytes of the short stamp, for payloads without room for a complete one.
pub const SHORTEST_STAMP: u32 = 12;

impl Stamp {
    /// Bytes that it takes.
    pub const LENGTH: usize = 28;

    /// Writes the stamp to the beginning of a payload, which must have room.
    pub fn write(self, payload: &mut [u8]) {
        payload[..4].copy_from_slice(&MAGIC);
        for (number, value) in [self.flood, self.sequence, self.sent_ns].into_iter().enumerate() {
            payload[4 + number * 8..][..8].copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Writes the short stamp to the beginning of a payload without room for a complete one: the low bits of each
    /// number, and of the time in microseconds. The payload must have room for `SHORTEST_STAMP` bytes.
    pub fn write_short(self, payload: &mut [u8]) {
        payload[..2].copy_from_slice(&SHORT_MAGIC);
        payload[2..4].copy_from_slice(&(self.flood as u16).to_be_bytes());
        payload[4..8].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        payload[8..12].copy_from_slice(&((self.sent_ns / 1000) as u32).to_be_bytes());
    }

    /// Reads a short stamp of the flood `flood`, received at the wall-clock time `now_ns`; `None` for anything else.
    /// The time is the one nearest to `now_ns` with these low bits, within half an hour.
    pub fn read_short(payload: &[u8], flood: u64, now_ns: u64) -> Option<Self> {
        let body = payload.strip_prefix(&SHORT_MAGIC)?;
        if payload.len() >= Self::LENGTH || payload.len() < SHORTEST_STAMP as usize {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
        if u16::from_be_bytes([body[0], body[1]]) != flood as u16 {
            return None;
        }
        let now_us = now_ns / 1000;
        // Two's complement, because a sender whose clock is ahead is later than now.
        let ago = (now_us as u32).wrapping_sub(word(6)) as i32;
        let sent_us = now_us.saturating_add_signed(-i64::from(ago));
        Some(Self { flood, sequence: u64::from(word(2)), sent_ns: sent_us * 1000 })
    }

    /// Parses a stamp; `None` for numbers that no flood sends, such as the last one, which has no successor.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let body = payload.get(..Self::LENGTH)?.strip_prefix(&MAGIC)?;
        let field = |number: usize| {
            let bytes = body[number * 8..][..8].try_into().expect("eight bytes");
            u64::from_be_bytes(bytes)
        };
        let stamp = Self { flood: field(0), sequence: field(1), sent_ns: field(2) };
        (stamp.sequence < u64::MAX).then_some(stamp)
    }
}

/// Returns the source port, destination port and payload of a UDP datagram with its IPv4 header, as received from a raw
/// socket.
pub fn parse_packet(packet: &[u8]) -> Option<(u16, u16, &[u8])> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    if packet[0] >> 4 != 4 || header < 20 || *packet.get(9)? != 17 {
        return None;
    }
    parse_datagram(packet.get(header..)?)
}

/// Returns the source port, destination port and payload of a UDP datagram without its IP header, as received from a
/// raw IPv6 socket.
pub fn parse_datagram(udp: &[u8]) -> Option<(u16, u16, &[u8])> {
    let word = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
    let payload = udp.get(8..usize::from(word(4)?))?;
    Some((word(0)?, word(2)?, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_stamp_is_read_as_it_was_written(flood: u64, sequence in 0..u64::MAX, sent_ns: u64, more in 0usize..100) {
            let stamp = Stamp { flood, sequence, sent_ns };
            let mut payload = vec![0xaa; Stamp::LENGTH + more];
            stamp.write(&mut payload);
            prop_assert_eq!(Stamp::read(&payload), Some(stamp));
            prop_assert!(payload[Stamp::LENGTH..].iter().all(|byte| *byte == 0xaa));
        }

        #[test]
        fn a_short_stamp_is_read_as_it_was_written(
            flood: u64, sequence: u32, sent_us in 1u64 << 40..1 << 50, late_us in -1_000_000i64..1_800_000_000,
            more in 0usize..16
        ) {
            let stamp = Stamp { flood, sequence: sequence.into(), sent_ns: sent_us * 1000 };
            let mut payload = vec![0xaa; SHORTEST_STAMP as usize + more];
            stamp.write_short(&mut payload);
            let now_ns = sent_us.saturating_add_signed(late_us) * 1000;
            prop_assert_eq!(Stamp::read_short(&payload, flood, now_ns), Some(stamp));
            prop_assert_eq!(Stamp::read_short(&payload, flood ^ 1, now_ns), None);
            prop_assert_eq!(Stamp::read_short(&payload[..SHORTEST_STAMP as usize - 1], flood, now_ns), None);
        }

        #[test]
        fn largest_sequence_number_is_refused(flood: u64, sent_ns: u64) {
            let mut payload = [0; Stamp::LENGTH];
            Stamp { flood, sequence: u64::MAX, sent_ns }.write(&mut payload);
            prop_assert_eq!(Stamp::read(&payload), None);
        }

        #[test]
        fn any_datagram_is_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Stamp::read(&bytes);
            let _ = Stamp::read_short(&bytes, 0, 0);
            if let Some((_, _, payload)) = parse_packet(&bytes) {
                prop_assert!(payload.len() + 28 <= bytes.len());
            }
            if let Some((_, _, payload)) = parse_datagram(&bytes) {
                prop_assert!(payload.len() + 8 <= bytes.len());
            }
        }

        #[test]
        fn packet_headers_are_parsed(
            source: u16, port: u16, payload in prop::collection::vec(any::<u8>(), 0..60), words in 0usize..=10
        ) {
            let mut packet = vec![0; 20 + words * 4];
            packet[0] = 0x45 + words as u8;
            packet[9] = 17;
            packet.extend(source.to_be_bytes());
            packet.extend(port.to_be_bytes());
            packet.extend((8 + payload.len() as u16).to_be_bytes());
            packet.extend([0, 0]);
            packet.extend(&payload);
            prop_assert_eq!(parse_packet(&packet), Some((source, port, &payload[..])));
            prop_assert_eq!(parse_datagram(&packet[20 + words * 4..]), Some((source, port, &payload[..])));
            packet[9] = 6;
            prop_assert_eq!(parse_packet(&packet), None);
        }
    }
}
