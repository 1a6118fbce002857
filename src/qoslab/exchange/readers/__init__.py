"""Conversion of files of other tools to the tables of a run.

To read another format, write a module with a function that recognises a file by its beginning and one that reads it,
and add its line to `READERS`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from qoslab.errors import UserError
from qoslab.exchange.readers import capture, csv_series, flent, iperf2, iperf3, irtt, unsupported_formats
from qoslab.exchange.readers.base import SAMPLES, ForeignResults, FormatReader, ImpossibleError, LimitError, read_head
from qoslab.policy.other_systems import refuse_other_systems
from qoslab.policy.pasted_text import terminal_lines

__all__ = ["FORMS", "READERS", "ROUTER", "SAMPLES", "ForeignResults", "detect_format", "read_foreign"]

READERS: tuple[FormatReader, ...] = (
    FormatReader(
        "capture",
        "pcapng or pcap, plain or compressed by gzip",
        capture.recognises,
        capture.read,
        read_interfaces=capture.read,
    ),
    FormatReader("iperf3", "output of iperf3, JSON of -J or text", iperf3.recognises, iperf3.read),
    FormatReader("irtt", "output of irtt client -o", irtt.recognises, irtt.read),
    FormatReader("flent", "a data file of flent, format 4", flent.recognises, flent.read),
    FormatReader("iperf", "the report of iperf 2, text or CSV of -y C", iperf2.recognises, iperf2.read),
    FormatReader(
        "csv",
        "columns with a header: time_s, then NAME_bps, NAME_kbps, NAME_Mbps or NAME_ms",
        csv_series.recognises,
        csv_series.read,
    ),
)
"""Readers in the order in which they are tried."""
ROUTER = "router"
"""Format of router output, which `exchange.routers` reads: it becomes an experiment, not tables."""
FORMS = (*(each.name for each in READERS), ROUTER)
"""Names of all formats."""
_LINE_OF_ROUTER = re.compile(
    r"(?m)^[ >\d:|]*(?:\S{1,63}[#>] ?sh\w* |\S{1,63}\(config[\w-]*\)#|!|(?:Building|Current|Using \d+) "
    r"|version \d|hostname |interface \S|policy-map |class-map |ip (?:route|address) |service "
    r"|Cisco (?:IOS|Internetwork) |.* is .*, line protocol is |Codes: |Service-policy |Class-map:"
    r"|\S+ \{$|set \S+ |config |sysname |feature |traffic )"
)


def detect_format(path: Path) -> str:
    """Return the format of a file by its beginning; `ROUTER` for router output. Raise `UserError` otherwise."""
    head = read_head(path)
    found = next((each.name for each in READERS if each.knows(head)), None)
    if found is not None:
        return found
    if other := unsupported_formats.unsupported_format_error(path, head):
        raise other
    text = "\n".join(terminal_lines(head.decode("utf-8", errors="replace")))
    if _LINE_OF_ROUTER.search(text):
        return ROUTER
    refuse_other_systems(text, str(path))
    raise _unknown_format(path)


def _unknown_format(path: Path) -> UserError:
    known = "; ".join(f"{reader.name}: {reader.help}" for reader in READERS)
    known += f"; {ROUTER}: `show running-config` of IOS or IOS-XE"
    return UserError(
        f"{path}: found a file of an unknown format, expected one of: {known}", hint="name the format with --format"
    )


def read_foreign(path: Path, form: str | None = None, interfaces: Sequence[str] = ()) -> ForeignResults:
    """Read a file in the format `form`, by default detected from its content. Raise `UserError` if it is unknown or
    damaged.

    `interfaces` selects interfaces of a capture that has several; files of other formats have none.
    """
    head = read_head(path)
    for reader in READERS:
        if reader.name == form or (form is None and reader.knows(head)):
            try:
                by_interface = reader.read_interfaces if interfaces else None
                found = reader.read(path) if by_interface is None else by_interface(path, interfaces)
                found.place_streams()
                found.escape_texts()
                return found
            except LimitError as error:
                raise UserError(f"{path}: {error}", hint="split the file and import the parts") from error
            except ImpossibleError as error:
                raise UserError(f"{path}: {error}", hint="was the file edited?") from error
            except OverflowError as error:
                reason = f"found a number too large for a table: {error}"
                raise UserError(f"{path}: {reason}, expected measured values", hint="was the file edited?") from error
    raise _unknown_format(path)
