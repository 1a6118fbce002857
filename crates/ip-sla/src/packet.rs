//! The packets of operations: what is sent, and what is seen passing by. Any bytes are safe input.

use std::net::Ipv4Addr;

use crate::config::Kind;
use crate::{Nanos, MILLISECOND, SECOND};

const ICMP: u8 = 1;
const UDP: u8 = 17;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const TIMESTAMP_REQUEST: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;

/// Bytes of an ICMP timestamp message (RFC 792): with the IP header 40, which the published round-trip times confirm.
const TIMESTAMP_LENGTH: usize = 20;
/// Bytes that an icmp-echo carries beside the ICMP header and the request data, for its own time stamps (CISCO-RTTMON-MIB).
const ECHO_STAMPS: usize = 8;
/// Bytes of a udp-jitter datagram that the operation itself uses: sequence number, the responder's two stamps, its own count.
const JITTER_FIELDS: usize = 16;

/// UDP port of the responder's control protocol.
pub const CONTROL_PORT: u16 = 1967;

/// A packet of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The operation's number.
    pub operation: u32,
    /// Counts the operation's packets from its start.
    pub sequence: u32,
}

/// Where a probe goes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// What is sent.
    pub kind: Kind,
    /// To whom.
    pub destination: Ipv4Addr,
    /// From which of our addresses; null for the one that routing picks.
    pub source: Option<Ipv4Addr>,
    /// UDP: the target's port.
    pub destination_port: u16,
    /// UDP: our port, 0 for any.
    pub source_port: u16,
    /// The whole TOS byte.
    pub tos: u8,
    /// Request data in bytes.
    pub size: u32,
}

/// What the target says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// When it got the packet, in milliseconds since midnight UT.
    pub received_ms: u32,
    /// When it answered, likewise.
    pub sent_ms: u32,
    /// How many packets of this run it had answered before; none where it does not count.
    pub order: Option<u32>,
}

/// A reply that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// To which packet.
    pub probe: Probe,
    /// When.
    pub at: Nanos,
    /// What the target said; jitter operations only.
    pub remote: Option<Remote>,
}

/// Milliseconds since midnight UT, the unit of ICMP's time stamps (RFC 792).
pub fn ms_of_day(time: Nanos) -> u32 {
    (time % (86_400 * SECOND) / MILLISECOND) as u32
}

/// An ICMP request of `icmp-echo` or `icmp-jitter`.
pub fn icmp_request(kind: Kind, id: u16, sequence: u16, size: u32, now: Nanos) -> Vec<u8> {
    let (first, length) = match kind {
        Kind::IcmpJitter => (TIMESTAMP_REQUEST, TIMESTAMP_LENGTH),
        _ => (ECHO_REQUEST, 8 + ECHO_STAMPS + size as usize),
    };
    let mut message = vec![0; length];
    message[0] = first;
    message[4..6].copy_from_slice(&id.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    message[8..12].copy_from_slice(&ms_of_day(now).to_be_bytes());
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// The datagram of `udp-echo` or `udp-jitter`: its sequence number first.
pub fn udp_request(sequence: u32, size: u32) -> Vec<u8> {
    let mut payload = vec![0; size as usize];
    payload[..4].copy_from_slice(&sequence.to_be_bytes());
    payload
}

/// What the responder makes of a datagram: the same, with its stamps where they fit.
pub fn udp_answer(request: &[u8], remote: Remote) -> Vec<u8> {
    let mut payload = request.to_vec();
    if payload.len() >= JITTER_FIELDS {
        payload[4..8].copy_from_slice(&remote.received_ms.to_be_bytes());
        payload[8..12].copy_from_slice(&remote.sent_ms.to_be_bytes());
        payload[12..16].copy_from_slice(&remote.order.unwrap_or(0).to_be_bytes());
    }
    payload
}

/// The sequence number in a datagram and, where there is room for them, the responder's stamps.
pub fn udp_fields(payload: &[u8]) -> Option<(u32, Option<Remote>)> {
    let word = |at: usize| Some(u32::from_be_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    let remote = (|| Some(Remote { received_ms: word(4)?, sent_ms: word(8)?, order: Some(word(12)?) }))();
    Some((word(0)?, remote))
}

/// An IPv4 packet of a kind that operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// From.
    pub source: Ipv4Addr,
    /// To.
    pub destination: Ipv4Addr,
    /// What it is.
    pub what: What<'a>,
}

/// What a packet is to the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// An ICMP echo or timestamp request.
    IcmpRequest {
        /// Identifier.
        id: u16,
        /// Sequence number.
        sequence: u16,
    },
    /// The answer to one.
    IcmpReply {
        /// Identifier.
        id: u16,
        /// Sequence number.
        sequence: u16,
        /// The stamps of a timestamp reply.
        remote: Option<Remote>,
    },
    /// A UDP datagram.
    Udp {
        /// From.
        source_port: u16,
        /// To.
        destination_port: u16,
        /// What it carries.
        payload: &'a [u8],
    },
}

/// Looks at an IPv4 packet. Nothing for all that no operation can have to do with.
pub fn look(packet: &[u8]) -> Option<Seen<'_>> {
    let first = *packet.first()?;
    let header = usize::from(first & 0x0f) * 4;
    let total = usize::from(u16_at(packet, 2)?);
    // Only the first fragment has ports.
    if first >> 4 != 4 || header < 20 || u16_at(packet, 6)? & 0x1fff != 0 {
        return None;
    }
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    let body = packet.get(header..total)?;
    let what = match packet.get(9)? {
        &ICMP => icmp(body)?,
        &UDP => What::Udp {
            source_port: u16_at(body, 0)?,
            destination_port: u16_at(body, 2)?,
            payload: body.get(8..)?,
        },
        _ => return None,
    };
    Some(Seen { source: address(12)?, destination: address(16)?, what })
}

fn icmp(body: &[u8]) -> Option<What<'_>> {
    let (id, sequence) = (u16_at(body, 4)?, u16_at(body, 6)?);
    let word = |at: usize| Some(u32::from_be_bytes(body.get(at..at + 4)?.try_into().ok()?));
    match *body.first()? {
        ECHO_REQUEST | TIMESTAMP_REQUEST => Some(What::IcmpRequest { id, sequence }),
        ECHO_REPLY => Some(What::IcmpReply { id, sequence, remote: None }),
        TIMESTAMP_REPLY => {
            let remote = Remote { received_ms: word(12)?, sent_ms: word(16)?, order: None };
            Some(What::IcmpReply { id, sequence, remote: Some(remote) })
        }
        _ => None,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The Internet checksum (RFC 1071).
fn checksum(message: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in message.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The control protocol: before a run the sender asks the responder to listen. The form is our own (RFC 6812 describes Cisco's, which this does
/// not claim to speak): a magic word, what is asked or answered, the port and for how long.
pub mod control {
    const MAGIC: [u8; 4] = *b"qsla";
    const LENGTH: usize = 16;

    /// What a control message says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Message {
        /// Listen on this UDP port for so long.
        Listen {
            /// The sender's number, returned in the answer.
            operation: u32,
            /// Port.
            port: u16,
            /// Milliseconds.
            duration_ms: u32,
        },
        /// I do.
        Listening {
            /// The number of the question.
            operation: u32,
        },
        /// I cannot: the port is in use.
        Refused {
            /// The number of the question.
            operation: u32,
        },
    }

    impl Message {
        /// As bytes.
        pub fn encode(self) -> Vec<u8> {
            let (word, operation, port, duration) = match self {
                Message::Listen { operation, port, duration_ms } => (1u16, operation, port, duration_ms),
                Message::Listening { operation } => (2, operation, 0, 0),
                Message::Refused { operation } => (3, operation, 0, 0),
            };
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&word.to_be_bytes());
            bytes.extend_from_slice(&port.to_be_bytes());
            bytes.extend_from_slice(&operation.to_be_bytes());
            bytes.extend_from_slice(&duration.to_be_bytes());
            bytes
        }

        /// From bytes; nothing when they are none.
        pub fn decode(bytes: &[u8]) -> Option<Message> {
            if bytes.len() != LENGTH || bytes[..4] != MAGIC {
                return None;
            }
            let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            let operation = word(8);
            match u16::from_be_bytes([bytes[4], bytes[5]]) {
                1 => {
                    let port = u16::from_be_bytes([bytes[6], bytes[7]]);
                    Some(Message::Listen { operation, port, duration_ms: word(12) })
                }
                2 => Some(Message::Listening { operation }),
                3 => Some(Message::Refused { operation }),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::control::Message;
    use super::*;
    use proptest::prelude::*;

    fn in_ip(protocol: u8, body: &[u8]) -> Vec<u8> {
        let mut packet = vec![0u8; 20];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&((20 + body.len()) as u16).to_be_bytes());
        packet[9] = protocol;
        packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
        packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
        packet.extend_from_slice(body);
        packet
    }

    #[test]
    fn requests_have_the_documented_lengths() {
        // IP lengths: 64 by default, 40 always, 44 and 60 by default.
        assert_eq!(20 + icmp_request(Kind::IcmpEcho, 1, 1, 28, 0).len(), 64);
        assert_eq!(20 + icmp_request(Kind::IcmpJitter, 1, 1, 0, 0).len(), 40);
        assert_eq!(28 + udp_request(1, 16).len(), 44);
        assert_eq!(28 + udp_request(1, 32).len(), 60);
    }

    #[test]
    fn a_request_is_recognised_and_sums_to_all_ones() {
        let message = icmp_request(Kind::IcmpJitter, 0x1234, 7, 0, 3_600 * SECOND);
        assert_eq!(checksum(&message), 0);
        let packet = in_ip(ICMP, &message);
        let seen = look(&packet).expect("it is an ICMP request");
        assert_eq!(seen.what, What::IcmpRequest { id: 0x1234, sequence: 7 });
        assert_eq!(message[8..12], 3_600_000u32.to_be_bytes());
    }

    #[test]
    fn a_timestamp_reply_gives_both_stamps() {
        let mut message = icmp_request(Kind::IcmpJitter, 5, 6, 0, 0);
        message[0] = TIMESTAMP_REPLY;
        message[12..16].copy_from_slice(&1_000u32.to_be_bytes());
        message[16..20].copy_from_slice(&1_001u32.to_be_bytes());
        let packet = in_ip(ICMP, &message);
        let remote = Some(Remote { received_ms: 1_000, sent_ms: 1_001, order: None });
        assert_eq!(look(&packet).unwrap().what, What::IcmpReply { id: 5, sequence: 6, remote });
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = look(&bytes);
            let _ = udp_fields(&bytes);
            let _ = Message::decode(&bytes);
        }

        #[test]
        fn what_the_responder_writes_is_read_back(sequence: u32, received_ms: u32, sent_ms: u32, order: u32, size in 16u32..1500) {
            let remote = Remote { received_ms, sent_ms, order: Some(order) };
            let answer = udp_answer(&udp_request(sequence, size), remote);
            prop_assert_eq!(answer.len(), size as usize);
            prop_assert_eq!(udp_fields(&answer), Some((sequence, Some(remote))));
        }

        #[test]
        fn control_messages_are_read_back(operation: u32, port: u16, duration_ms: u32) {
            for message in [
                Message::Listen { operation, port, duration_ms },
                Message::Listening { operation },
                Message::Refused { operation },
            ] {
                prop_assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }
    }
}
