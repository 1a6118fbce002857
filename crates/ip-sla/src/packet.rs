//! The packets of the operations: ICMP messages, UDP payloads and control messages.
//!
//! Cisco publishes neither the control message nor the UDP payloads, so these formats are specific to this project.
//! Packets without their magic number are refused.

use crate::Nanos;

/// ICMP and ICMPv6 message types (RFC 792, RFC 4443).
#[allow(missing_docs)]
pub mod icmp {
    pub const ECHO_REPLY: u8 = 0;
    pub const ECHO: u8 = 8;
    pub const TIMESTAMP: u8 = 13;
    pub const TIMESTAMP_REPLY: u8 = 14;
    pub const ECHO_V6: u8 = 128;
    pub const ECHO_REPLY_V6: u8 = 129;
    /// Bytes of type, code, checksum, identifier and sequence number.
    pub const HEADER: usize = 8;
    /// Bytes of a timestamp message.
    pub const TIMESTAMP_LENGTH: usize = 20;
}

/// UDP port of control messages.
pub const CONTROL_PORT: u16 = 1967;
/// Bytes of the two internal time stamps that IOS puts in front of the request data of an ICMP echo.
pub const ECHO_STAMPS: usize = 8;
/// Bytes of the header of a UDP jitter packet.
pub const JITTER_HEADER: usize = 16;
/// Bytes of a control message.
pub const CONTROL_LENGTH: usize = 16;
const CONTROL_MAGIC: u32 = 0x514c_5341;
const FILL: [u8; 2] = [0xab, 0xcd];

/// Returns the Internet checksum (RFC 1071).
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += (u32::from(pair[0]) << 8) | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn fill(bytes: &mut Vec<u8>, length: usize) {
    let start = bytes.len();
    bytes.extend((start..length).map(|at| FILL[at % 2]));
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn finish_icmp(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Returns an ICMP echo request with `size` bytes of request data.
pub fn echo(identifier: u16, sequence: u16, now: Nanos, size: u16) -> Vec<u8> {
    finish_icmp(echo_message(icmp::ECHO, identifier, sequence, now, size))
}

/// Returns an ICMPv6 echo request with `size` bytes of request data. Its checksum, which is over addresses too, is left
/// to the kernel, as every raw socket of ICMPv6 does (RFC 3542).
pub fn echo_v6(identifier: u16, sequence: u16, now: Nanos, size: u16) -> Vec<u8> {
    echo_message(icmp::ECHO_V6, identifier, sequence, now, size)
}

fn echo_message(kind: u8, identifier: u16, sequence: u16, now: Nanos, size: u16) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(identifier.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(now.to_be_bytes());
    fill(&mut bytes, icmp::HEADER + ECHO_STAMPS + usize::from(size));
    bytes
}

/// Returns an ICMP timestamp request.
pub fn timestamp(identifier: u16, sequence: u16, now: Nanos) -> Vec<u8> {
    let mut bytes = vec![icmp::TIMESTAMP, 0, 0, 0];
    bytes.extend(identifier.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(crate::since_midnight(now).to_be_bytes());
    bytes.extend([0; 8]);
    finish_icmp(bytes)
}

/// Returns an IP stack's answer to an ICMP or ICMPv6 echo request or an ICMP timestamp request, with `stamp`
/// (milliseconds since midnight) as the time of reception and transmission. `None` for anything else. The caller, who
/// knows the addresses, fills in the ICMPv6 checksum.
pub fn icmp_answer(request: &[u8], ipv6: bool, stamp: u32) -> Option<Vec<u8>> {
    if request.len() < icmp::HEADER || request[1] != 0 {
        return None;
    }
    let kind = match (ipv6, request[0]) {
        (false, icmp::ECHO) => icmp::ECHO_REPLY,
        (false, icmp::TIMESTAMP) if request.len() >= icmp::TIMESTAMP_LENGTH => icmp::TIMESTAMP_REPLY,
        (true, icmp::ECHO_V6) => icmp::ECHO_REPLY_V6,
        _ => return None,
    };
    let mut bytes = request.to_vec();
    (bytes[0], bytes[2], bytes[3]) = (kind, 0, 0);
    if kind == icmp::TIMESTAMP_REPLY {
        bytes[12..16].copy_from_slice(&stamp.to_be_bytes());
        bytes[16..20].copy_from_slice(&stamp.to_be_bytes());
    }
    Some(if ipv6 { bytes } else { finish_icmp(bytes) })
}

/// Stamps in a reply: the remote end's receive and send times in milliseconds since midnight, if present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Reply {
    pub sequence: u16,
    pub remote: Option<(u32, u32)>,
    /// Number of packets of the run that the responder had received by then, including this one.
    pub received: Option<u16>,
}

/// Returns the identifier and content of an ICMP reply. `None` for anything else.
pub fn icmp_reply(bytes: &[u8]) -> Option<(u16, Reply)> {
    if bytes.len() < icmp::HEADER || bytes[1] != 0 || checksum(bytes) != 0 {
        return None;
    }
    let remote = match bytes[0] {
        icmp::ECHO_REPLY => None,
        icmp::TIMESTAMP_REPLY if bytes.len() >= icmp::TIMESTAMP_LENGTH => Some((be32(bytes, 12), be32(bytes, 16))),
        _ => return None,
    };
    Some((be16(bytes, 4), Reply { sequence: be16(bytes, 6), remote, received: None }))
}

/// Returns identifier and content of an ICMPv6 echo reply whose checksum the kernel has verified; `None` for anything
/// else.
pub fn icmpv6_reply(bytes: &[u8]) -> Option<(u16, Reply)> {
    if bytes.len() < icmp::HEADER || bytes[..2] != [icmp::ECHO_REPLY_V6, 0] {
        return None;
    }
    Some((be16(bytes, 4), Reply { sequence: be16(bytes, 6), remote: None, received: None }))
}

/// Returns a UDP echo packet of `size` bytes: two bytes of sequence number, then padding.
pub fn udp_echo(sequence: u16, size: u16) -> Vec<u8> {
    let mut bytes = sequence.to_be_bytes().to_vec();
    fill(&mut bytes, usize::from(size));
    bytes
}

/// Returns a UDP jitter packet of `size` bytes: burst, turnaround in ms, send and receive stamp, sequence number,
/// packets received; then padding.
pub fn udp_jitter(burst: u16, sequence: u16, now: Nanos, size: u16) -> Vec<u8> {
    let mut bytes = burst.to_be_bytes().to_vec();
    bytes.extend([0; 2]);
    bytes.extend(crate::since_midnight(now).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0; 2]);
    fill(&mut bytes, usize::from(size));
    bytes
}

/// Returns the burst and sequence number of a UDP jitter packet.
pub fn udp_jitter_numbers(bytes: &[u8]) -> Option<(u16, u16)> {
    (bytes.len() >= JITTER_HEADER).then(|| (be16(bytes, 0), be16(bytes, 12)))
}

/// Returns whether a responder has filled in its part of a UDP jitter packet, which has its header.
pub fn is_udp_jitter_answer(bytes: &[u8]) -> bool {
    be16(bytes, 14) != 0
}

/// Fills in the responder's part of a UDP jitter packet.
///
/// # Panics
/// If the packet is shorter than its header.
pub fn udp_jitter_answer(bytes: &mut [u8], received: Nanos, sent: Nanos, count: u16) {
    let turnaround = crate::difference_ms(crate::since_midnight(sent), crate::since_midnight(received));
    bytes[2..4].copy_from_slice(&(turnaround.clamp(0, 0xffff) as u16).to_be_bytes());
    bytes[8..12].copy_from_slice(&crate::since_midnight(received).to_be_bytes());
    bytes[14..16].copy_from_slice(&count.to_be_bytes());
}

/// Returns the content of the reply to a UDP echo packet.
pub fn udp_echo_reply(bytes: &[u8]) -> Option<Reply> {
    (bytes.len() >= 2).then(|| Reply { sequence: be16(bytes, 0), remote: None, received: None })
}

/// Returns the content of the reply to a UDP jitter packet. One that came back unstamped (from a plain echo service)
/// has no remote stamps.
pub fn udp_jitter_reply(bytes: &[u8]) -> Option<Reply> {
    let (_, sequence) = udp_jitter_numbers(bytes)?;
    let count = be16(bytes, 14);
    let arrived = be32(bytes, 8);
    let left = (u64::from(arrived) + u64::from(be16(bytes, 2))) % crate::DAY_MS as u64;
    let remote = (count != 0).then_some((arrived, left as u32));
    Some(Reply { sequence, remote, received: (count != 0).then_some(count) })
}

/// A control message: "listen on this port for so long".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Control {
    pub identifier: u16,
    pub jitter: bool,
    pub port: u16,
    pub duration_ms: u32,
    /// Whether this is the responder's agreement, with all other fields as requested.
    pub reply: bool,
}

impl Control {
    /// Returns the bytes of the message: magic, reply flag, type, identifier, port, two bytes of padding, duration.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = CONTROL_MAGIC.to_be_bytes().to_vec();
        bytes.extend([u8::from(self.reply), u8::from(self.jitter)]);
        bytes.extend(self.identifier.to_be_bytes());
        bytes.extend(self.port.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(self.duration_ms.to_be_bytes());
        bytes
    }

    /// Parses a control message. `None` for anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != CONTROL_LENGTH || be32(bytes, 0) != CONTROL_MAGIC || bytes[4] > 1 || bytes[5] > 1 {
            return None;
        }
        Some(Self {
            reply: bytes[4] == 1,
            jitter: bytes[5] == 1,
            identifier: be16(bytes, 6),
            port: be16(bytes, 8),
            duration_ms: be32(bytes, 12),
        })
    }
}
