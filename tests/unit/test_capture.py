"""dumpcap's command and messages, and the pcapng reader against tshark and against files built here."""

from __future__ import annotations

import csv
import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile_files import BASE
from qoslab.capture import TOOLS, CaptureError, Counts
from qoslab.capture.filters import filter_problem
from qoslab.capture.pcapng import Packets, read_packets
from qoslab.cli import main

RECORDED = Path(__file__).parents[1] / "recorded" / "capture"

STARTED = "Capturing on 'eth0'\nFile: server.pcapng\n"
ENDED = (
    STARTED
    + "\rPackets: 32 \rPackets captured: 776\n"
    + "Packets received/dropped on interface 'eth0': 776/3 (pcap:1/dumpcap:2/flushed:0/ps_ifdrop:0) (99.6%)\n"
)
REFUSED = (
    "Capturing on 'eth0'\n"
    "dumpcap: Invalid capture filter \"tcp porrt\" for interface 'eth0'.\n\n"
    "That string isn't a valid capture filter (can't parse filter expression: syntax error).\n"
)


class TestDumpcap:
    tool = TOOLS["dumpcap"]

    def test_command(self) -> None:
        argv = self.tool.command("eth0", "out.pcapng", filter="tcp", snaplen=128, comment="policed, server")
        assert argv[0] == "dumpcap"
        for option, value in (("-i", "eth0"), ("-w", "out.pcapng"), ("-s", "128"), ("-f", "tcp")):
            assert argv[argv.index(option) + 1] == value
        assert argv[argv.index("--capture-comment") + 1] == "policed, server"
        assert "-f" not in self.tool.command("eth0", "out.pcapng", snaplen=128)

    def test_runs_once_the_file_is_open(self) -> None:
        assert self.tool.is_running(STARTED)
        assert not self.tool.is_running(STARTED.splitlines()[0])
        assert not self.tool.is_running(REFUSED), "it says that it is capturing before it has read the filter"

    def test_failure_is_its_own_words(self) -> None:
        assert self.tool.failure(ENDED) == ""
        assert self.tool.failure(REFUSED).startswith('Invalid capture filter "tcp porrt"')

    def test_counts(self) -> None:
        assert self.tool.counts(ENDED) == Counts(received=776, dropped=3)
        with pytest.raises(CaptureError, match="killed"):
            self.tool.counts(STARTED)


def joined(pieces: list[Packets]) -> dict[str, list[int]]:
    return {
        field: np.concatenate([getattr(each, field) for each in pieces]).tolist() if pieces else []
        for field in Packets.__dataclass_fields__
    }


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_reads_what_tshark_reads(piece: int) -> None:
    found = joined(list(read_packets(RECORDED / "four-streams.pcapng", piece=piece)))
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


@settings(max_examples=60, deadline=None)
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
def test_reads_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, order: str, packets: list[tuple[int, bytes, int]]
) -> None:
    file = tmp_path_factory.mktemp("pcapng") / "x.pcapng"
    file.write_bytes(
        section(order, 9)
        + block(order, 99, b"unknown blocks are passed over")
        + b"".join(packet(order, ticks, data, min(kept, len(data))) for ticks, data, kept in packets)
    )
    found = joined(list(read_packets(file, piece=5)))
    assert found["time_ns"] == [ticks for ticks, _, _ in packets]
    assert found["bytes"] == [len(data) for _, data, _ in packets]
    for index, (_, data, kept) in enumerate(packets):
        start = 18 if data[12:14] == b"\x81\x00" else 14
        known = kept >= start + 20
        assert found["source"][index] == (0x0A000001 if known else -1)
        assert found["protocol"][index] == (data[start + 9] if known else -1)
        ports = start + (data[start] & 15) * 4
        offset = int.from_bytes(data[start + 6 : start + 8]) & 0x1FFF
        has_ports = known and data[start + 9] in (6, 17) and offset == 0 and kept >= ports + 4
        assert found["source_port"][index] == (int.from_bytes(data[ports : ports + 2]) if has_ports else -1)
        assert found["destination_port"][index] == (int.from_bytes(data[ports + 2 : ports + 4]) if has_ports else -1)


def ipv6_frame(headers: list[tuple[int, bytes]], protocol: int, rest: bytes) -> bytes:
    """A frame with extension headers, each with its number."""
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
def test_ipv6_is_read_behind_its_extension_headers(
    tmp_path: Path, headers: list[tuple[int, bytes]], protocol: int, expected: tuple[int, int, int]
) -> None:
    data = ipv6_frame(headers, protocol, struct.pack(">HH", 40_000, 5201) + bytes(16))
    file = tmp_path / "x.pcapng"
    other = frame(vlan=False, options=0, protocol=6, fragment=0, ports=(1, 2))
    file.write_bytes(section("<", 9) + b"".join(packet("<", 0, each, len(each)) for each in (data, other, data[:53])))
    found = joined(list(read_packets(file)))
    assert found["version"] == [6, 4, -1]
    halves = IPv6Address("2001:db8::ffff:1").packed
    assert found["source_high"][:2] == [int.from_bytes(halves[:8], signed=True), 0]
    assert found["source"] == [int.from_bytes(halves[8:], signed=True), 0x0A000001, -1]
    halves = IPv6Address("fe80::2").packed
    assert found["destination_high"] == [int.from_bytes(halves[:8], signed=True), 0, -1]
    assert found["destination"] == [2, 0x0A000002, -1]
    assert tuple(found[name][0] for name in ("protocol", "source_port", "destination_port")) == expected


@pytest.mark.parametrize(("resolution", "ticks"), [(None, 10**6), (3, 10**3), (0x8A, 2**10)])
def test_time_resolution(tmp_path: Path, resolution: int | None, ticks: int) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(section("<", resolution) + packet("<", ticks * 5 + ticks // 2, b"x" * 60, 60))
    assert joined(list(read_packets(file)))["time_ns"] == [5_500_000_000]


def test_another_link_type_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes(section("<", 9, linktype=113))
    with pytest.raises(CaptureError, match="link type 113, expected 1"):
        list(read_packets(file))


@settings(max_examples=80, deadline=None)
@given(cut=st.integers(0, 200), noise=st.binary(max_size=40), at=st.integers(0, 3000))
def test_damaged_files_raise_the_modules_own_error(
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


def test_a_file_that_stops_early_is_read_to_there_and_told(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    file.write_bytes((RECORDED / "four-streams.pcapng").read_bytes()[:3001])
    pieces = []
    with pytest.raises(CaptureError, match="broken or stops early"):
        for piece in read_packets(file):
            pieces.append(piece)
    assert sum(len(piece) for piece in pieces) > 5


class TestFilters:
    @pytest.mark.parametrize("text", ["tcp", "udp port 5201", "ip[1] & 0xfc == 0xb8", "net 10.0.0.0/8 and not arp"])
    def test_filters_that_hold(self, text: str) -> None:
        assert filter_problem(text) == ""

    @pytest.mark.parametrize("text", ["tcp porrt", "port 99999999", "ip[", "tcp\0", "(" * 5000])
    def test_filters_that_do_not(self, text: str) -> None:
        assert filter_problem(text)

    def test_without_libpcap_nothing_is_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("qoslab.capture.filters.LIBRARIES", ("libnone.so.0",))
        assert filter_problem("tcp porrt") is None

    def test_a_run_is_refused_before_there_is_a_lab(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        capture = "captures:\n  - {name: wire, node: server, interface: eth0, filter: tcp porrt}\n"
        (tmp_path / "e.yml").write_text(BASE + capture)
        assert main(["run", "e.yml"]) == 2
        said = capsys.readouterr().err
        assert 'capture wire: found the filter "tcp porrt", expected one of pcap-filter(7): ' in said
        assert not (tmp_path / "runs").exists()
