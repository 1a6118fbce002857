use std::path::PathBuf;

use pcap_file::pcapng::{Block, PcapNgReader};

use super::*;

/// Passes frames with the EtherType of IPv4 and the protocol UDP: `udp` as compiled by libpcap, without IPv6.
const UDP: [(u16, u8, u8, u32); 6] =
    [(40, 0, 0, 12), (21, 0, 3, 0x800), (48, 0, 0, 23), (21, 0, 1, 17), (6, 0, 0, 262_144), (6, 0, 0, 0)];

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("qos-router-capture-{name}-{}.pcapng", std::process::id()))
}

fn wanted(file: &Path, filter: &[(u16, u8, u8, u32)]) -> Wanted {
    let about = About { interface: "R1 P".to_owned(), snaplen: 30, comment: "a test".to_owned() };
    Wanted { file: file.to_owned(), about, filter: filter.to_owned() }
}

/// An IPv4 packet of that protocol, in an Ethernet frame of so many bytes.
fn frame(protocol: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[12] = 8;
    bytes[23] = protocol;
    bytes
}

/// Times and lengths of the frames in a file, which is removed, and bytes kept of each.
pub(crate) fn read(path: &Path) -> Vec<(u64, u32, usize)> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        frames.push((packet.timestamp.as_nanos() as u64, packet.original_len, packet.data.len()));
    }
    std::fs::remove_file(path).unwrap();
    frames
}

#[test]
fn frames_of_the_port_that_pass_the_filter_are_in_the_file_by_their_times() {
    let file = path("filter");
    let mut captures = Captures::default();
    captures.begin(PortId(1), &wanted(&file, &UDP)).unwrap();
    for (port, now, time, frame) in [
        // Known before its time of arrival, like a frame from a host.
        (1, 10, 40, frame(17, 60)),
        (1, 20, 30, frame(17, 1500)),
        (1, 20, 31, frame(6, 90)),
        (0, 20, 32, frame(17, 91)),
        (1, 50, 50, frame(17, 25)),
    ] {
        captures.record(PortId(port), Time(now), Time(time), &frame);
    }
    assert_eq!(captures.end(&file).unwrap(), Counts { received: 3, dropped: 0 });
    assert_eq!(read(&file), [(30, 1500, 30), (40, 60, 30), (50, 25, 25)]);
    assert!(captures.is_empty());
}

#[test]
fn an_unfinished_capture_is_written_completely() {
    let file = path("dropped");
    let mut captures = Captures::default();
    captures.begin(PortId(1), &wanted(&file, &[])).unwrap();
    captures.record(PortId(1), Time(1), Time(7), &frame(6, 70));
    drop(captures);
    assert_eq!(read(&file), [(7, 70, 30)]);
}

#[test]
fn an_impossible_capture_is_refused_with_its_reason() {
    let mut captures = Captures::default();
    let (file, other) = (path("refused"), path("other"));
    let refusal = |captures: &mut Captures, wanted: &Wanted| captures.begin(PortId(0), wanted).unwrap_err().to_string();
    // A program has to end with its verdict.
    let message = refusal(&mut captures, &wanted(&file, &UDP[..4]));
    assert!(message.starts_with("the kernel rejects the filter: ") && !file.exists(), "{message}");
    let message = refusal(&mut captures, &wanted(Path::new("/proc/none/x"), &[]));
    assert!(message.starts_with("cannot write /proc/none/x: No such file"), "{message}");
    captures.begin(PortId(0), &wanted(&file, &[])).unwrap();
    let message = refusal(&mut captures, &wanted(&file, &[]));
    assert!(message.starts_with(&format!("another capture already writes {}", file.display())), "{message}");
    let message = captures.end(&other).unwrap_err().to_string();
    assert!(message.ends_with(&format!("expected one of {}", file.display())), "{message}");
    captures.end(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let message = captures.end(&file).unwrap_err().to_string();
    assert!(message.ends_with("expected one of none"), "{message}");
}

#[test]
fn a_full_disk_is_reported() {
    let mut captures = Captures::default();
    let message = captures.begin(PortId(0), &wanted(Path::new("/dev/full"), &[])).unwrap_err().to_string();
    assert!(message.starts_with("cannot write /dev/full: No space left"), "{message}");
}
