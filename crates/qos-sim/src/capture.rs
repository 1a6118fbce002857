//! Packets written as pcapng, with headers generated from their properties. The payload is the number of a datagram,
//! followed by zeros.

use std::io::{self, Write};
use std::net::IpAddr;

use etherparse::{
    ether_type, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader,
    TcpOptionElement, UdpHeader,
};
use flood::datagram::Stamp;
use netio::capture_file::{About, CaptureFile};
use qos_core::wire::ethernet::{ADDRESSES, TAG};
use qos_core::wire::protocol;
use qos_core::ConfigError;
use qos_core::Time;

use crate::network::Network;
use crate::packet::{ip_header, Content, Packet, Way};
use crate::scenario::{Capture, Scenario};
use crate::tcp::Segment;

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;
/// Length of the longest headers: Ethernet with a VLAN tag, IPv6, TCP with options.
const HEADERS: usize = ETHERNET_HEADER + TAG + 40 + 60;
/// Scale of the windows on the wire, as offered by a SYN of the modelled TCP.
const WINDOW_SCALE: u8 = 7;
/// Zeros for the payload of packets.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// Filter of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter {
    All,
    Version { ipv6: bool },
    Protocol(u8),
}

impl Filter {
    fn of(capture: &Capture, path: &str) -> Result<Filter, ConfigError> {
        match capture.filter.trim() {
            "" => Ok(Filter::All),
            "ip" => Ok(Filter::Version { ipv6: false }),
            "ip6" => Ok(Filter::Version { ipv6: true }),
            "tcp" => Ok(Filter::Protocol(protocol::TCP)),
            "udp" => Ok(Filter::Protocol(protocol::UDP)),
            "icmp" => Ok(Filter::Protocol(protocol::ICMP)),
            "icmp6" => Ok(Filter::Protocol(protocol::ICMPV6)),
            other => {
                let message = format!(
                    "found {other:?}, expected no filter, ip, ip6, tcp, udp, icmp or icmp6, the only filters simulated"
                );
                Err(ConfigError::new(format!("{path}.filter"), message))
            }
        }
    }

    fn passes(self, packet: &Packet) -> bool {
        match self {
            Filter::All => true,
            Filter::Version { ipv6 } => ipv6 == packet.ipv6,
            Filter::Protocol(wanted) => wanted == packet.protocol(),
        }
    }
}

/// The captures of a scenario.
#[derive(Debug)]
pub(crate) struct Captures {
    captures: Vec<(Capture, Filter)>,
    /// Captures by end of a link.
    seen: Vec<Vec<usize>>,
}

impl Captures {
    /// Checks the captures and assigns them to the ends of links.
    pub fn new(scenario: &Scenario, network: &Network) -> Result<Captures, ConfigError> {
        let mut seen = vec![Vec::new(); network.ends.len()];
        let mut captures: Vec<(Capture, Filter)> = Vec::new();
        for (number, capture) in scenario.captures.iter().enumerate() {
            let path = format!("captures[{number}]");
            let wrong = |field: &str, message: String| Err(ConfigError::new(format!("{path}.{field}"), message));
            if captures.iter().any(|(other, _)| other.name == capture.name) {
                return wrong("name", format!("found {:?} a second time", capture.name));
            }
            if let Some((other, _)) = captures.iter().find(|(other, _)| other.file == capture.file) {
                return wrong("file", format!("found {:?}, already written by capture {}", capture.file, other.name));
            }
            if capture.snaplen == 0 {
                return wrong("snaplen", "found 0, expected the number of bytes to capture of each frame".to_owned());
            }
            let node = network.node(&capture.node, &format!("{path}.node"))?;
            let link = network.interface(node, &capture.interface).filter(|end| network.physical(*end) == *end);
            let Some(end) = link else {
                let message =
                    format!("found {:?}, not an interface with a link on {}", capture.interface, capture.node);
                return wrong("interface", message);
            };
            seen[end].push(number);
            captures.push((capture.clone(), Filter::of(capture, &path)?));
        }
        Ok(Captures { captures, seen })
    }

    /// Returns the captures in the order in which [`Captures::record`] needs their writers.
    pub fn iter(&self) -> impl Iterator<Item = &Capture> {
        self.captures.iter().map(|(capture, _)| capture)
    }

    /// Begins to write. Captures without a writer are not recorded.
    pub fn record<W: Write>(self, into: Vec<W>) -> io::Result<Recorders<W>> {
        let recorders = self.captures.iter().zip(into);
        let recorders = recorders.map(|((capture, filter), into)| Recorder::new(capture, *filter, into));
        Ok(Recorders { recorders: recorders.collect::<io::Result<_>>()?, seen: self.seen })
    }
}

/// The writers of running captures.
pub(crate) struct Recorders<W: Write> {
    recorders: Vec<Recorder<W>>,
    seen: Vec<Vec<usize>>,
}

impl<W: Write> Recorders<W> {
    /// Returns whether any capture sees the packets at an end of a link.
    #[inline]
    pub fn is_captured(&self, end: usize) -> bool {
        // Most runs have none.
        !self.recorders.is_empty() && !self.seen[end].is_empty()
    }

    /// Records a packet that passes an end of a link at `time`, which is not before `now`.
    pub fn record(&mut self, end: usize, now: Time, time: Time, packet: Sighted<'_>, hop: Hop) -> io::Result<()> {
        for &capture in &self.seen[end] {
            if let Some(recorder) = self.recorders.get_mut(capture) {
                recorder.record(now, time, packet, hop)?;
            }
        }
        Ok(())
    }

    /// Writes the remaining packets.
    pub fn finish(self) -> io::Result<()> {
        for recorder in self.recorders {
            recorder.file.finish()?;
        }
        Ok(())
    }
}

/// One capture.
struct Recorder<W: Write> {
    file: CaptureFile<W>,
    filter: Filter,
    snaplen: usize,
}

/// A packet, and its message if it carries one.
pub(crate) type Sighted<'a> = (&'a Packet, &'a [u8]);

/// Position of a packet between two interfaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// Numbers of the ends of the link.
    pub from: usize,
    pub to: usize,
    pub source: IpAddr,
    pub destination: IpAddr,
}

impl<W: Write> Recorder<W> {
    fn new(capture: &Capture, filter: Filter, into: W) -> io::Result<Recorder<W>> {
        let interface = format!("{} {}", capture.node, capture.interface);
        let about = About { interface, snaplen: capture.snaplen, comment: String::new() };
        Ok(Recorder { file: CaptureFile::new(into, &about)?, filter, snaplen: capture.snaplen as usize })
    }

    /// Records a packet at `time`, which is not before `now`: a host's packet is captured at its departure, which is
    /// known in advance.
    fn record(&mut self, now: Time, time: Time, (packet, message): Sighted<'_>, hop: Hop) -> io::Result<()> {
        if !self.filter.passes(packet) {
            return Ok(());
        }
        let bytes = frame((packet, message), hop, self.snaplen)?;
        self.file.record(time.0, packet.length() + header(packet) as u32, bytes);
        self.file.write_until(now.0)
    }
}

/// Returns a hardware address for each end of a link: locally administered, unicast.
fn hardware_address(end: usize) -> [u8; 6] {
    let [.., high, middle, low] = (end as u32 + 1).to_be_bytes();
    [0x02, 0x00, 0x5e, high, middle, low]
}

/// Returns the number of bytes of a packet's Ethernet header.
fn header(packet: &Packet) -> usize {
    ETHERNET_HEADER + packet.tag.map_or(0, |_| TAG)
}

/// Returns the first `snaplen` bytes of the frame.
fn frame((packet, message): Sighted<'_>, hop: Hop, snaplen: usize) -> io::Result<Vec<u8>> {
    let made_up = |error: &dyn std::fmt::Display| io::Error::other(format!("a packet has no headers: {error}"));
    let length = packet.length();
    let mut bytes = Vec::with_capacity(snaplen.min(length as usize + header(packet)).max(HEADERS));
    let ether_type = if packet.ipv6 { ether_type::IPV6 } else { ether_type::IPV4 };
    Ethernet2Header { source: hardware_address(hop.from), destination: hardware_address(hop.to), ether_type }
        .write(&mut bytes)?;
    if let Some(tag) = packet.tag {
        bytes.splice(ADDRESSES..ADDRESSES, tag.bytes());
    }
    let above = (length - ip_header(packet.ipv6)) as u16;
    let ip = IpHeader::of(packet, hop, above).map_err(|error| made_up(&error))?;
    ip.write(&mut bytes)?;
    match &packet.content {
        Content::Udp { .. } | Content::Message { protocol: protocol::UDP, .. } => {
            let datagram = match &packet.content {
                Content::Udp { number, sent, payload, .. } => stamped(packet.stream, *number, *sent, *payload),
                _ => Vec::new(),
            };
            let payload = if datagram.is_empty() { message } else { &datagram[..] };
            let (source, destination) = (packet.source_port, packet.destination_port);
            let udp = match &ip {
                IpHeader::V4(ip) => UdpHeader::with_ipv4_checksum(source, destination, ip, payload),
                IpHeader::V6(ip) => UdpHeader::with_ipv6_checksum(source, destination, ip, payload),
            };
            udp.map_err(|error| made_up(&error))?.write(&mut bytes)?;
            bytes.extend(payload);
        }
        Content::Message { .. } => bytes.extend(message),
        Content::Tcp { segment, .. } => {
            let mut tcp = tcp_header(packet, segment);
            tcp.set_options(&tcp_options(packet, segment)).map_err(|error| made_up(&error))?;
            let payload = &ZEROS[..segment.len as usize];
            let checksum = match &ip {
                IpHeader::V4(ip) => tcp.calc_checksum_ipv4(ip, payload),
                IpHeader::V6(ip) => tcp.calc_checksum_ipv6(ip, payload),
            };
            tcp.checksum = checksum.map_err(|error| made_up(&error))?;
            tcp.write(&mut bytes)?;
        }
    }
    bytes.resize(length as usize + header(packet), 0);
    bytes.truncate(snaplen);
    Ok(bytes)
}

/// Returns the payload of a datagram: the stamp of a flood, as far as there is room, so that all datagrams differ; then
/// zeros.
fn stamped(stream: u32, number: u64, sent: Time, payload: u32) -> Vec<u8> {
    let mut bytes = vec![0; (payload as usize).max(Stamp::LENGTH)];
    Stamp { flood: stream.into(), sequence: number, sent_ns: sent.0 }.write(&mut bytes);
    bytes.truncate(payload as usize);
    bytes
}

/// An IP header of either family.
enum IpHeader {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl IpHeader {
    /// Returns the header of a packet with `above` bytes behind it.
    fn of(packet: &Packet, hop: Hop, above: u16) -> Result<IpHeader, Box<dyn std::error::Error>> {
        let number = IpNumber(packet.protocol());
        match (hop.source, hop.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut ip = Ipv4Header::new(above, packet.ttl, number, source.octets(), destination.octets())?;
                ip.ecn = IpEcn::try_new(packet.ecn)?;
                ip.dscp = IpDscp::try_new(packet.dscp)?;
                ip.dont_fragment = true;
                ip.header_checksum = ip.calc_header_checksum();
                Ok(IpHeader::V4(ip))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => Ok(IpHeader::V6(Ipv6Header {
                traffic_class: (packet.dscp << 2) | packet.ecn,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: above,
                next_header: number,
                hop_limit: packet.ttl,
                source: source.octets(),
                destination: destination.octets(),
            })),
            (source, destination) => {
                Err(format!("{source} and {destination} are of different address families").into())
            }
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self {
            IpHeader::V4(ip) => ip.write(bytes),
            IpHeader::V6(ip) => ip.write(bytes),
        }
    }
}

/// Returns the first sequence number of an end on the wire. It differs by stream and direction, so that no program
/// takes it for a relative one.
fn first_number(stream: u32, way: Way) -> u32 {
    (stream * 2 + way as u32 + 1).wrapping_mul(0x9e37_79b1)
}

fn tcp_header(packet: &Packet, segment: &Segment) -> TcpHeader {
    let on_wire = |way, number: u64| first_number(packet.stream, way).wrapping_add(number as u32);
    // A SYN's window cannot be scaled; the others are rounded down to their scale.
    let window = if segment.syn { segment.window } else { segment.window >> WINDOW_SCALE };
    let window = u16::try_from(window).unwrap_or(u16::MAX);
    let mut tcp = TcpHeader::new(packet.source_port, packet.destination_port, on_wire(packet.way, segment.seq), window);
    (tcp.syn, tcp.fin, tcp.psh) = (segment.syn, segment.fin, segment.push);
    (tcp.ece, tcp.cwr) = (segment.ece, segment.cwr);
    if segment.has_ack {
        tcp.ack = true;
        tcp.acknowledgment_number = on_wire(packet.way.back(), segment.ack);
    }
    tcp
}

/// Returns the options in the order of Linux.
fn tcp_options(packet: &Packet, segment: &Segment) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted};
    let mut options = Vec::new();
    let permitted = segment.syn_options.is_some_and(|syn| syn.sack_permitted);
    if let Some(syn) = segment.syn_options {
        options.push(MaximumSegmentSize(syn.mss));
        if permitted {
            if segment.timestamps.is_none() {
                options.extend([Noop, Noop]);
            }
            options.push(SelectiveAcknowledgementPermitted);
        }
    }
    if let Some((value, echo)) = segment.timestamps {
        if !permitted {
            options.extend([Noop, Noop]);
        }
        // Linux counts milliseconds.
        let [value, echo] = [value, echo].map(|ns| (ns / 1_000_000) as u32);
        options.push(TcpOptionElement::Timestamp(value, echo));
    }
    if let Some(syn) = segment.syn_options {
        options.extend([Noop, TcpOptionElement::WindowScale(syn.window_scale)]);
    }
    let base = first_number(packet.stream, packet.way.back());
    let mut blocks = segment.sack.as_slice().iter().map(|block| {
        let [start, end] = [block.start, block.end].map(|number| base.wrapping_add(number as u32));
        (start, end)
    });
    if let Some(first) = blocks.next() {
        options.extend([Noop, Noop, SelectiveAcknowledgement(first, [blocks.next(), blocks.next(), blocks.next()])]);
    }
    options
}
