"""Reader of foreign captures: packets and bytes of each flow over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc  # type: ignore[import-untyped]

from qoslab.analysis.capture_interfaces import Noted, interface_numbers, labels, refuse_duplicates, unreadable
from qoslab.analysis.packets import BIN_NS, bin_packets
from qoslab.capture import CaptureError
from qoslab.capture.packet_tables import read_packets
from qoslab.errors import UserError
from qoslab.exchange.readers.base import ForeignResults

_MAGIC = (b"\x0a\x0d\x0d\x0a", b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1")

MAX_INTERFACES = 100
"""Maximum number of interfaces, as the capture is read once for each."""


def recognises(head: bytes) -> bool:
    """Recognise the first four bytes of pcapng, or of pcap in either order, with micro- or nanoseconds."""
    return head.startswith(_MAGIC)


def read(path: Path, interfaces: Sequence[str] = ()) -> ForeignResults:
    """Return whole frames in bins of 0.1 s since the first packet; each interface is a capture with its name.

    `interfaces` selects some of several interfaces, by name or number; by default all are read.
    """
    name = path.name.split(".")[0]
    try:
        noted = Noted(read_packets(path, interfaces=interfaces))
        table = bin_packets(noted).to_pandas().assign(capture=name)
        several = labels(noted.packets, noted.names)
        if len(several) > 1 or (interfaces and len(noted.names) > 1):
            if interfaces:
                numbers = {
                    each for name in interfaces for each in interface_numbers(path, noted.packets, several, name)
                }
                several = {number: label for number, label in several.items() if number in numbers}
            if len(several) > MAX_INTERFACES:
                raise UserError(
                    f"{path}: found {len(several)} interfaces with packets, expected at most {MAX_INTERFACES}",
                    hint="choose some of them with --interface",
                )
            table = _bins_by_interface(path, name, noted.packets, several)
        else:
            refuse_duplicates(path, noted.packets)
    except CaptureError as error:
        raise unreadable(error) from error
    if table.empty:
        raise UserError(
            f"{path}: found a capture without packets, expected at least one packet",
            hint="was it captured on the packets' path?",
        )
    found = ForeignResults(name, "capture")
    found.packets = table
    found.seconds = float(table["time_s"].max()) + BIN_NS / 1e9
    return found


def _bins_by_interface(path: Path, name: str, packets: pd.DataFrame, interfaces: dict[int, str]) -> pd.DataFrame:
    """Return the bins of each interface as a capture with its name. Raise `UserError` if one has duplicate packets."""
    first_ns = int(packets["time_ns"].min())
    tables = []
    for number, label in interfaces.items():
        refuse_duplicates(path, packets[packets["interface"] == number])
        every = read_packets(path, interfaces=(str(number),))
        pieces = (piece.filter(pc.equal(piece.column("interface"), number)) for piece in every)
        tables.append(bin_packets(pieces, first_ns).to_pandas().assign(capture=f"{name}-{label}"))
    found: pd.DataFrame = pd.concat(tables, ignore_index=True)
    return found
