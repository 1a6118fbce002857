"""Files of other tools → the tables of a run.

To read another format, write a module with a function that tells whether it knows a file by its beginning, and one that
reads it, and add its line to `READERS`.
"""

from __future__ import annotations

from pathlib import Path

from qoslab.errors import UserError
from qoslab.exchange.readers import capture, flent, iperf2, iperf3, irtt, series
from qoslab.exchange.readers.base import SAMPLES, Foreign, LimitError, Reader, head_of

__all__ = ["READERS", "SAMPLES", "Foreign", "read_foreign"]

READERS: tuple[Reader, ...] = (
    Reader("capture", "pcapng or pcap, as they are or compressed by gzip", capture.knows, capture.read),
    Reader("iperf3", "output of iperf3, JSON of -J or text", iperf3.knows, iperf3.read),
    Reader("irtt", "output of irtt client -o", irtt.knows, irtt.read),
    Reader("flent", "a data file of flent, format 4", flent.knows, flent.read),
    Reader("iperf", "the report of iperf 2, text or CSV of -y C", iperf2.knows, iperf2.read),
    Reader(
        "csv",
        "columns with a header: time_s, then NAME_bps, NAME_kbps, NAME_Mbps or NAME_ms",
        series.knows,
        series.read,
    ),
)
"""Readers in the order of their use."""


def read_foreign(path: Path, form: str | None = None) -> Foreign:
    """Read a file by what it begins with, or as `form`. `UserError` for one that nobody knows, or that is damaged."""
    head = head_of(path)
    for reader in READERS:
        if reader.name == form or (form is None and reader.knows(head)):
            try:
                found = reader.read(path)
                found.place_streams()
                found.escape_texts()
                return found
            except LimitError as error:
                raise UserError(f"{path}: {error}", hint="cut the file, and import its parts") from error
            except OverflowError as error:
                said = f"found a number that no table holds: {error}"
                raise UserError(f"{path}: {said}, expected measured ones", hint="was it changed by hand?") from error
    known = "; ".join(f"{reader.name}: {reader.help}" for reader in READERS)
    raise UserError(f"{path}: found a file of no known form, expected one of: {known}", hint="--format names its form")
