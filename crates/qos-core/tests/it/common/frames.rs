//! Ethernet frames.

/// The Internet checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An Ethernet frame with an IPv4 packet of `ip_len` bytes.
pub fn ipv4(ip_len: usize, dscp: u8, protocol: u8, rest: &[u8]) -> Vec<u8> {
    let ip_len = ip_len.max(20 + rest.len());
    let mut frame = vec![0; 14 + ip_len];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let packet = &mut frame[14..];
    packet[0] = 0x45;
    packet[1] = (dscp << 2) | 1;
    packet[2..4].copy_from_slice(&(ip_len as u16).to_be_bytes());
    packet[8] = 64;
    packet[9] = protocol;
    packet[12..16].copy_from_slice(&[10, 0, 10, 1]);
    packet[16..20].copy_from_slice(&[10, 0, 20, 10]);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..20 + rest.len()].copy_from_slice(rest);
    frame
}

/// An Ethernet frame with a UDP packet of `ip_len` bytes (at least 28).
pub fn udp(ip_len: usize, dscp: u8, source: u16, destination: u16) -> Vec<u8> {
    let mut header = [0; 8];
    header[..2].copy_from_slice(&source.to_be_bytes());
    header[2..4].copy_from_slice(&destination.to_be_bytes());
    ipv4(ip_len, dscp, 17, &header)
}

/// An Ethernet frame with an IPv6 packet.
pub fn ipv6(dscp: u8, next: u8, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 14 + 40];
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    let packet = &mut frame[14..];
    packet[0] = 0x60 | (dscp >> 2);
    packet[1] = (dscp << 6) | 0x10 | 0x05;
    packet[4..6].copy_from_slice(&(rest.len() as u16).to_be_bytes());
    packet[6] = next;
    packet[8..24].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet[24..40].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend_from_slice(rest);
    frame
}

/// The same frame with a VLAN tag.
pub fn tagged(frame: &[u8], cos: u8, vlan: u16) -> Vec<u8> {
    let mut tagged = frame[..12].to_vec();
    tagged.extend_from_slice(&[0x81, 0x00]);
    tagged.extend_from_slice(&((u16::from(cos) << 13) | vlan).to_be_bytes());
    tagged.extend_from_slice(&frame[12..]);
    tagged
}
