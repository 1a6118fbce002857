"""Packet N of a capture: its headers, and its time in a run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qoslab.errors import UserError
from qoslab.explain.packet import ECHO, TCP, IpAddress, Packet
from qoslab.explain.simulator_query import simulate
from qoslab.simulation.scenario import EPOCH_NS
from qoslab.system import program_formats

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from qoslab.explain.subject import Subject
    from qoslab.results import CellFiles

EXPECTED = "a capture and the number of a packet, such as wan.pcapng:12"


@dataclass(frozen=True)
class CapturedPacket:
    """A packet of a capture."""

    packet: Packet
    time_ns: int | None
    """Time from the start of the run; None if the capture does not belong to a run."""
    identity: int
    """Hash of the fields that routers do not change; 0 if too little of the packet was captured."""


@dataclass(frozen=True)
class Arrival:
    """Time and interface at which a packet of a run arrives at a router."""

    time_ns: int
    interface: str


def read_captured_packet(given: str, cell: CellFiles | None) -> CapturedPacket:
    """Return packet N of a capture.

    `given` is FILE:N, or NAME:N with the name of a capture of the cell. Raise UserError if there is no such packet.
    """
    name, _, number = given.rpartition(":")
    if not name or not (number.isascii() and number.isdigit()) or int(number[:18]) < 1:
        raise UserError(f'--packet: found "{given}", expected {EXPECTED}')
    file, of_run = _capture_file(name, cell)
    row = _packet_row(file, int(number[:18]))
    time_ns = row["time_ns"] - EPOCH_NS
    packet = _to_packet(row, f"{file}: packet {number}")
    identity = 0 if row["behind"] >= 0 else row["identity"]
    return CapturedPacket(packet, time_ns if of_run and time_ns >= 0 else None, identity)


def find_arrival(subject: Subject, captured: CapturedPacket) -> Arrival | None:
    """Return the arrival of a packet of a run at the router; None if it does not arrive or is not recognised.

    The run is simulated again with a capture at each port of the router.
    """
    if captured.time_ns is None or captured.identity == 0:
        return None
    with tempfile.TemporaryDirectory(prefix="qoslab-explain-") as folder:
        captures: list[program_formats.Capture] = [
            {"name": port, "node": subject.name, "interface": port, "file": f"{number}.pcapng"}
            for number, port in enumerate(subject.ports)
        ]
        simulate({**subject.scenario, "captures": captures}, Path(folder))
        found = [
            Arrival(time_ns, _frame_interface(subject, port, vlan))
            for number, port in enumerate(subject.ports)
            for time_ns, vlan in _packet_times(Path(folder) / f"{number}.pcapng", captured)
        ]
    # A retransmitted packet has the same headers: choose the one closest to the captured time.
    came = [each for each in found if not _is_leaving(each, found)]
    return min(came, key=lambda each: abs(each.time_ns - (captured.time_ns or 0)), default=None)


def _is_leaving(one: Arrival, found: list[Arrival]) -> bool:
    """Return whether the packet was leaving the router: it was seen at another port before."""
    before = [each for each in found if each.time_ns <= one.time_ns and each.interface != one.interface]
    return len(before) > sum(each.time_ns < one.time_ns and each.interface == one.interface for each in found)


def _frame_interface(subject: Subject, port: str, vlan: int) -> str:
    """Return the interface of a frame at a port, by its VLAN or its circuit."""
    for each in subject.device.subinterfaces(port):
        if each.vlan is not None and (each.vlan == vlan or (each.native and vlan < 0)):
            return each.name
    return subject.device.with_circuit(port).name


def _packet_times(file: Path, captured: CapturedPacket) -> Iterator[tuple[int, int]]:
    """Yield the times of a packet in a capture, and the VLAN of its tag; -1 without one."""
    from qoslab.capture.packet_tables import read_packets

    with closing(read_packets(file)) as pieces:
        for piece in pieces:
            same = piece.column("identity").to_pylist()
            for index, identity in enumerate(same):
                if identity == captured.identity:
                    yield piece.column("time_ns")[index].as_py() - EPOCH_NS, piece.column("vlan")[index].as_py()


def _capture_file(name: str, cell: CellFiles | None) -> tuple[Path, bool]:
    """Return the file of a capture, and whether it belongs to the cell."""
    if cell is not None:
        points = [point.name for point in cell.experiment().captures]
        if name in points:
            return cell.capture(name), True
        known = f", or a capture of the run: {', '.join(points)}" if points else ""
    else:
        known = ""
    file = Path(name)
    if not file.is_file():
        raise UserError(f'--packet: found "{name}", expected the file of a capture{known}')
    return file, cell is not None and cell.path.resolve() in file.resolve().parents


def _packet_row(file: Path, number: int) -> dict[str, Any]:
    """Return the columns of a packet."""
    from qoslab.capture.packet_tables import read_packets

    first = 1
    with closing(read_packets(file)) as pieces:
        for piece in pieces:
            if number < first + piece.num_rows:
                return _packet_columns(piece, number - first)
            first += piece.num_rows
    raise UserError(f"--packet: found number {number}, expected 1 to {first - 1}, the packets of {file}")


def _packet_columns(piece: pa.RecordBatch, index: int) -> dict[str, Any]:
    return {name: piece.column(name)[index].as_py() for name in piece.schema.names}


def _to_packet(row: dict[str, Any], place: str) -> Packet:
    if row["version"] not in (4, 6):
        raise UserError(f"{place}: found no IP packet, expected one", hint="choose another number")
    protocol = row["protocol"]
    ports = [None if row[side] < 0 else row[side] for side in ("source_port", "destination_port")]
    return Packet(
        protocol,
        _row_address(row, "source"),
        _row_address(row, "destination"),
        source_port=ports[0],
        destination_port=ports[1],
        # The reader of captures does not provide ICMP types and TCP flags: use the most frequent ones.
        icmp_type=ECHO.get(protocol),
        icmp_code=0 if protocol in ECHO else None,
        established=protocol == TCP,
        dscp=row["tos"] >> 2,
        ecn=row["tos"] & 3,
        length=row["network_bytes"],
    )


def _row_address(row: dict[str, Any], side: str) -> IpAddress:
    low, high = row[side] % (1 << 64), row[f"{side}_high"] % (1 << 64)
    return IPv4Address(low) if row["version"] == 4 else IPv6Address(high << 64 | low)
