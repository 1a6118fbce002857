"""Captures of others: packets and bytes of each flow over time."""

from __future__ import annotations

from pathlib import Path

from qoslab.analysis.packets import BIN_NS, bin_packets
from qoslab.capture import CaptureError
from qoslab.errors import UserError
from qoslab.exchange.readers.base import Foreign
from qoslab.pcap import read_packets

_MAGIC = (b"\x0a\x0d\x0d\x0a", b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1")


def knows(head: bytes) -> bool:
    """By the first four bytes of pcapng, or of pcap in either order, with micro- or nanoseconds."""
    return head.startswith(_MAGIC)


def read(path: Path) -> Foreign:
    """Whole frames in bins of 0.1 s since the first packet."""
    try:
        table = bin_packets(read_packets(path))
    except CaptureError as error:
        raise UserError(error.message, hint=error.hint) from error
    if table.empty:
        raise UserError(
            f"{path}: found a capture without a packet, expected some", hint="was it taken where they pass?"
        )
    found = Foreign(path.name.split(".")[0], "capture")
    found.packets = table.assign(capture=found.name)
    found.seconds = float(table["time_s"].max()) + BIN_NS / 1e9
    return found
