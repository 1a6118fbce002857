"""Reader of captures, against tshark and against generated files."""

from __future__ import annotations

import csv
import gzip
import struct
import tracemalloc
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels import example_count
from qoslab.analysis.packets import bin_packets
from qoslab.capture import CaptureError
from qoslab.capture.packet_tables import SCHEMA, column_array, read_packets

RECORDED = Path(__file__).parents[1] / "recorded" / "capture"


def join_files(pieces: list[pa.RecordBatch]) -> dict[str, list[int]]:
    return {
        name: np.concatenate([column_array(each, name) for each in pieces]).tolist() if pieces else []
        for name in SCHEMA.names
    }


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_reader_finds_the_same_packets_as_tshark(piece: int) -> None:
    found = join_files(list(read_packets(RECORDED / "four-streams.pcapng", piece=piece)))
    with (RECORDED / "four-streams.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == len(found["bytes"]) == 628
    for index, row in enumerate(rows):
        seconds, _, fraction = row["frame.time_epoch"].partition(".")
        assert found["time_ns"][index] == int(seconds) * 10**9 + int(fraction)
        assert found["bytes"][index] == int(row["frame.len"])
        assert found["source"][index] == int(IPv4Address(row["ip.src"]))
        assert found["destination"][index] == int(IPv4Address(row["ip.dst"]))
        assert found["protocol"][index] == int(row["ip.proto"])
        assert found["source_port"][index] == int(row["tcp.srcport"])
        assert found["destination_port"][index] == int(row["tcp.dstport"])


def block(order: str, kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str, resolution: int | None, linktype: int = 1) -> bytes:
    option = struct.pack(order + "HHB3x", 9, 1, resolution) + struct.pack(order + "HH", 0, 0) if resolution else b""
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(
        order, 1, struct.pack(order + "HHI", linktype, 0, 0) + option
    )


def packet(order: str, ticks: int, frame: bytes, kept: int) -> bytes:
    body = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, kept, len(frame)) + frame[:kept]
    return block(order, 6, body)


def frame(*, vlan: bool, options: int, protocol: int, fragment: int, ports: tuple[int, int]) -> bytes:
    ip = struct.pack(
        ">BBHHHBBHII", 0x45 + options, 0, 1000, 1, fragment, 64, protocol, 0, 0x0A000001, 0x0A000002
    ) + bytes(options * 4)
    tag = b"\x81\x00\x00\x05" if vlan else b""
    return bytes(12) + tag + b"\x08\x00" + ip + struct.pack(">HH", *ports) + bytes(20)


@settings(max_examples=example_count(40), deadline=None)
@given(
    order=st.sampled_from("<>"),
    packets=st.lists(
        st.tuples(
            st.integers(0, 2**62),
            st.builds(
                frame,
                vlan=st.booleans(),
                options=st.integers(0, 3),
                protocol=st.sampled_from([1, 6, 17]),
                fragment=st.sampled_from([0, 0x4000, 0x2000, 0x0010]),
                ports=st.tuples(st.integers(0, 65535), st.integers(0, 65535)),
            ),
            st.sampled_from([200, 40, 20, 0]),
        ),
        max_size=12,
    ),
)
def test_reader_accepts_written_captures(
    tmp_path_factory: pytest.TempPathFactory, order: str, packets: list[tuple[int, bytes, int]]
) -> None:
    file = tmp_path_factory.mktemp("pcapng") / "x.pcapng"
    file.write_bytes(
        section(order, 9)
        + block(order, 99, b"unknown blocks are passed over")
        + b"".join(packet(order, ticks, data, min(kept, len(data))) for ticks, data, kept in packets)
    )
    found = join_files(list(read_packets(file, piece=5)))
    assert found["time_ns"] == [ticks for ticks, _, _ in packets]
    assert found["bytes"] == [len(data) for _, data, _ in packets]
    for index, (_, data, kept) in enumerate(packets):
        start = 18 if data[12:14] == b"\x81\x00" else 14
        known = kept >= start + (data[start] & 15) * 4
        assert found["source"][index] == (0x0A000001 if known else -1)
        assert found["protocol"][index] == (data[start + 9] if known else -1)
        ports = start + (data[start] & 15) * 4
        offset = int.from_bytes(data[start + 6 : start + 8]) & 0x1FFF
        has_ports = known and data[start + 9] in (6, 17) and offset == 0 and kept >= ports + 4
        assert found["source_port"][index] == (int.from_bytes(data[ports : ports + 2]) if has_ports else -1)
        assert found["destination_port"][index] == (int.from_bytes(data[ports + 2 : ports + 4]) if has_ports else -1)


@pytest.mark.usefixtures("small_machine")
def test_memory_does_not_grow_with_the_capture(tmp_path: Path) -> None:
    """Measure the memory of the reader, and of the table made from its packets."""
    data = frame(vlan=False, options=0, protocol=17, fragment=0, ports=(1, 2))
    most = []
    for count in (6_000, 60_000):
        file = tmp_path / f"{count}.pcapng"
        file.write_bytes(section("<", 9) + packet("<", 10**18, data, len(data)) * count)
        tracemalloc.start()
        table = bin_packets(read_packets(file, piece=2_000))
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert table["packets"].to_pylist() == [count, count]
    assert most[1] < 1.5 * most[0]


def ipv6_frame(headers: list[tuple[int, bytes]], protocol: int, rest: bytes) -> bytes:
    """Return a frame with extension headers, each with its number."""
    chain = [kind for kind, _ in headers] + [protocol]
    body = b"".join(bytes([following]) + data for (_, data), following in zip(headers, chain[1:], strict=True)) + rest
    source, destination = IPv6Address("2001:db8::ffff:1"), IPv6Address("fe80::2")
    ip = struct.pack(">IHBB", 0x6B812345, len(body), chain[0], 64) + source.packed + destination.packed
    return bytes(12) + b"\x86\xdd" + ip + body


OPTIONS = (60, bytes([0, *bytes(6)]))
LONGER = (0, bytes([1, *bytes(14)]))
AUTHENTICATION = (51, bytes([4, *bytes(22)]))
FIRST, LATER = (44, bytes([0, 0, 1, 0, 0, 0, 9])), (44, bytes([0, 0, 8, 0, 0, 0, 9]))


@pytest.mark.parametrize(
    ("headers", "protocol", "expected"),
    [
        ([], 6, (6, 40_000, 5201)),
        ([OPTIONS, LONGER, AUTHENTICATION], 17, (17, 40_000, 5201)),
        ([FIRST], 17, (17, 40_000, 5201)),
        ([OPTIONS, LATER], 17, (17, -1, -1)),
        ([], 58, (58, -1, -1)),
    ],
)
def test_ipv6_is_read_after_its_extension_headers(
    tmp_path: Path, headers: list[tuple[int, bytes]], protocol: int, expected: tuple[int, int, int]
) -> None:
    data = ipv6_frame(headers, protocol, struct.pack(">HH", 40_000, 5201) + bytes(16))
    file = tmp_path / "x.pcapng"
    other = frame(vlan=False, options=0, protocol=6, fragment=0, ports=(1, 2))
    file.write_bytes(section("<", 9) + b"".join(packet("<", 0, each, len(each)) for each in (data, other, data[:53])))
    found = join_files(list(read_packets(file)))
    assert found["version"] == [6, 4, -1]
    halves = IPv6Address("2001:db8::ffff:1").packed
    assert found["source_high"][:2] == [int.from_bytes(halves[:8], signed=True), 0]
    assert found["source"] == [int.from_bytes(halves[8:], signed=True), 0x0A000001, -1]
    halves = IPv6Address("fe80::2").packed
    assert found["destination_high"] == [int.from_bytes(halves[:8], signed=True), 0, -1]
    assert found["destination"] == [2, 0x0A000002, -1]
    assert tuple(found[name][0] for name in ("protocol", "source_port", "destination_port")) == expected


@pytest.mark.parametrize(("resolution", "ticks"), [(None, 10**6), (3, 10**3), (0x8A, 2**10)])
def test_time_resolutions_are_converted(tmp_path: Path, resolution: int | None, ticks: int) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(section("<", resolution) + packet("<", ticks * 5 + ticks // 2, b"x" * 60, 60))
    assert join_files(list(read_packets(file)))["time_ns"] == [5_500_000_000]


def test_another_link_type_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(section("<", 9, linktype=127) + packet("<", 1, b"x" * 60, 60))
    with pytest.raises(CaptureError, match="link type 127, expected 1 "):
        list(read_packets(file))


@settings(max_examples=example_count(40), deadline=None)
@given(cut=st.integers(0, 200), noise=st.binary(max_size=40), at=st.integers(0, 3000))
def test_damaged_files_raise_the_error_of_the_module(
    tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes, at: int
) -> None:
    whole = (RECORDED / "four-streams.pcapng").read_bytes()[:6000]
    file = tmp_path_factory.mktemp("pcapng") / "x.pcapng"
    file.write_bytes((whole[:at] + noise + whole[at + len(noise) :])[: len(whole) - cut])
    try:
        for piece in read_packets(file):
            assert len(piece) > 0
    except CaptureError as error:
        assert str(file) in error.message


def test_truncated_file_is_read_to_its_end_and_reported(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes((RECORDED / "four-streams.pcapng").read_bytes()[:3001])
    pieces = []
    with pytest.raises(CaptureError, match="malformed or truncated"):
        for piece in read_packets(file):
            pieces.append(piece)
    assert sum(len(piece) for piece in pieces) > 5


def pcap(order: str, magic: int, linktype: int, frames: list[tuple[int, int, bytes]], kept: int = 200) -> bytes:
    """Return a file of the older format, of frames with seconds and fractions."""
    head = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, linktype)
    return head + b"".join(
        struct.pack(order + "IIII", seconds, fraction, min(kept, len(data)), len(data)) + data[:kept]
        for seconds, fraction, data in frames
    )


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_pcap_is_read_in_both_byte_orders_and_units(tmp_path: Path, order: str, magic: int, unit: int) -> None:
    data = frame(vlan=True, options=1, protocol=17, fragment=0, ports=(7, 8))
    file = tmp_path / "x.pcap"
    file.write_bytes(pcap(order, magic, 1, [(5, 250, data), (6, 0, data)]))
    found = join_files(list(read_packets(file)))
    assert found["time_ns"] == [5 * 10**9 + 250 * unit, 6 * 10**9]
    assert (found["source_port"], found["vlan"], found["network_bytes"]) == ([7, 7], [5, 5], [1000, 1000])


IP = frame(vlan=False, options=0, protocol=17, fragment=0, ports=(7, 8))[14:]
"""Packet without its frame."""


@pytest.mark.parametrize(
    ("linktype", "before"),
    [
        (9, b"\x00\x21"),
        (9, b"\x21"),
        (50, b"\xff\x03\x00\x21"),
        (50, b"\x0f\x00\x08\x00"),
        (104, b"\x8f\x00\x08\x00"),
        (101, b""),
        (113, bytes(14) + b"\x08\x00"),
        (276, b"\x08\x00" + bytes(18)),
        (1, bytes(12) + b"\x88\x64\x11\x00\x00\x01\x00\x2a\x00\x21"),
        (1, bytes(12) + b"\x88\xa8\x00\x02\x81\x00\x00\x05\x08\x00"),
    ],
)
def test_packet_identity_is_equal_on_every_link(tmp_path: Path, linktype: int, before: bytes) -> None:
    for name, kind, first in (("a", linktype, before), ("b", 1, bytes(12) + b"\x08\x00")):
        (tmp_path / name).write_bytes(pcap("<", 0xA1B2C3D4, kind, [(1, 0, first + IP)]))
    one, other = (join_files(list(read_packets(tmp_path / name))) for name in "ab")
    assert one["bytes"] == [len(before) + len(IP)]
    same = [name for name in SCHEMA.names if name not in ("bytes", "vlan")]
    assert {name: one[name] for name in same} == {name: other[name] for name in same}
    assert (one["source_port"], one["source"]) == ([7], [0x0A000001])


def test_packet_identity_uses_only_unchanged_fields(tmp_path: Path) -> None:
    def changed_frame(**places: int) -> bytes:
        data = bytearray(IP + bytes(60))
        for place, value in places.items():
            data[int(place[1:])] = value
        return bytes(12) + b"\x08\x00" + bytes(data)

    routers = [
        changed_frame(),
        changed_frame(p1=0xB8),
        changed_frame(p8=63),
        changed_frame(p10=1, p11=2),
        changed_frame(p26=9, p27=9),
    ]
    others = [
        changed_frame(p5=9),
        changed_frame(p3=1),
        changed_frame(p15=9),
        changed_frame(p20=1),
        changed_frame(p23=1),
        changed_frame(p70=1),
    ]
    (tmp_path / "x").write_bytes(pcap("<", 0xA1B2C3D4, 1, [(1, 0, each) for each in routers + others]))
    found = join_files(list(read_packets(tmp_path / "x")))
    assert len(set(found["identity"][:5])) == 1 and len(set(found["identity"])) == 1 + len(others)
    assert set(found["behind"]) == {-1} and found["tos"][1] == 0xB8 and found["ttl"][2] == 63
    (tmp_path / "x").write_bytes(pcap("<", 0xA1B2C3D4, 1, [(1, 0, routers[0]), (1, 0, others[-1])], kept=54))
    found = join_files(list(read_packets(tmp_path / "x", behind=20)))
    assert found["identity"][0] == found["identity"][1] and found["behind"] == [-1, -1]
    assert join_files(list(read_packets(tmp_path / "x")))["behind"] == [20, 20]


def test_compressed_file_equals_the_uncompressed_one(tmp_path: Path) -> None:
    whole = join_files(list(read_packets(RECORDED / "four-streams.pcapng")))
    file = tmp_path / "x.pcapng.gz"
    packed = gzip.compress((RECORDED / "four-streams.pcapng").read_bytes())
    file.write_bytes(packed)
    assert join_files(list(read_packets(file, piece=100))) == whole
    file.write_bytes(packed[:-3000])
    pieces = []
    with pytest.raises(CaptureError, match=r"x\.pcapng\.gz: cannot be read to its end: "):
        for piece in read_packets(file):
            pieces.append(piece)
    assert 0 < len(join_files(pieces)["bytes"]) < len(whole["bytes"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found 0 bytes, expected a pcap or pcapng file"),
        (b"\x7fELF and so on", r'begins with "\\x7fELF", expected a pcap or pcapng file'),
        (pcap("<", 0xA1B2C3D4, 1, [(1, 0, IP)])[:-1], "the packet at byte 24 is malformed or truncated"),
        (pcap("<", 0xA1B2C3D4, 1, [(1, 0, IP)]) + b"x", "1 bytes at the end do not form a packet"),
        (pcap("<", 0xA1B2C3D4, 1, [])[:20], "found 20 bytes, expected a pcap file"),
        (section("<", 9) + block("<", 3, bytes(8)), "has no time"),
        (packet("<", 1, IP, 20), "begins with"),
        (section("<", 9) + packet("<", 2**64 - 1, IP, 20), "has an impossible timestamp"),
        (section("<", 19), "found timestamps of resolution 0x13"),
        (section("<", 9)[:28] + packet("<", 1, IP, 20), "has interface 0, which the file does not describe"),
    ],
)
def test_file_that_is_not_a_capture_is_reported(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(content)
    with pytest.raises(CaptureError, match=message):
        list(read_packets(file))


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="x: cannot be read: No such file"):
        list(read_packets(tmp_path / "x"))
    with pytest.raises(CaptureError, match="cannot be read: it is a folder"):
        list(read_packets(tmp_path))


def test_aborted_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nprintf \'{"format": 2, "columns": []}\\n\'; echo no more >&2\n')
    program.chmod(0o755)
    monkeypatch.setenv("QOSLAB_QOS_PCAP", str(program))
    with pytest.raises(CaptureError, match=r"four-streams\.pcapng: no more"):
        list(read_packets(RECORDED / "four-streams.pcapng"))


def describe_packets(interfaces: list[tuple[str, int]]) -> bytes:
    """Return a section with interfaces of these names and link types, with stamps in nanoseconds."""
    found = block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    for name, linktype in interfaces:
        padded = name.encode() + b"\0" * (-len(name) % 4)
        options = struct.pack("<HH", 2, len(name)) + padded + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
        found += block("<", 1, struct.pack("<HHI", linktype, 0, 0) + options)
    return found


def of_interface(number: int, ticks: int, content: bytes) -> bytes:
    head = struct.pack("<IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(content), len(content))
    return block("<", 6, head + content)


def test_interface_of_another_link_type_matters_only_with_packets(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    head = describe_packets([("loopback", 0), ("eth0", 1)])
    file.write_bytes(head + of_interface(1, 5 * 10**9, b"x" * 60))
    pieces = list(read_packets(file))
    assert join_files(pieces)["interface"] == [1]
    file.write_bytes(head + of_interface(1, 5 * 10**9, b"x" * 60) + of_interface(0, 6 * 10**9, b"x" * 60))
    with pytest.raises(
        CaptureError, match=r'the interface "loopback" at byte 28: found packets of link type 0, expected 1 '
    ):
        list(read_packets(file))


@pytest.mark.parametrize("chosen", ["eth0", "1", "eth0#1"])
def test_packets_of_another_link_type_are_left_out_of_a_chosen_interface(tmp_path: Path, chosen: str) -> None:
    file = tmp_path / "x.pcapng"
    radio, cable = (of_interface(number, 5 * 10**9, b"x" * 60) for number in (0, 1))
    file.write_bytes(describe_packets([("wlan0", 105), ("eth0", 1)]) + radio + cable + radio)
    assert join_files(list(read_packets(file, interfaces=[chosen])))["interface"] == [1]
    for other in ("wlan0", "0"):
        with pytest.raises(CaptureError, match=r'the interface "wlan0" at byte 28: found packets of link type 105'):
            list(read_packets(file, interfaces=[chosen, other]))


def test_interfaces_are_numbered_through_all_sections(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    one = describe_packets([("eth0", 1), ("eth1", 1)])
    file.write_bytes(one + of_interface(1, 10**9, b"x" * 60) + one + of_interface(0, 10**9, b"x" * 60))
    reader, found = read_packets(file), []
    while True:
        try:
            found += next(reader).column("interface").to_pylist()
        except StopIteration as end:
            names = end.value
            break
    assert found == [1, 2] and names == ["eth0", "eth1", "eth0", "eth1"]


def test_cooked_capture_of_all_interfaces_names_each(tmp_path: Path) -> None:
    file = tmp_path / "x.pcap"
    frames = [(1, 0, struct.pack(">HHIHBB8s", 0x0800, 0, index, 1, 0, 6, b"") + b"E" * 40) for index in (2, 5)]
    file.write_bytes(pcap("<", 0xA1B2C3D4, 276, frames))
    assert join_files(list(read_packets(file)))["interface"] == [2, 5]
