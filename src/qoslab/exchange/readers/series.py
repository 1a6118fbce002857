"""CSV with a column of times and columns of rates or delays, as spreadsheets and own scripts write it."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from qoslab.errors import UserError
from qoslab.exchange.readers.base import Foreign, number, text_of
from qoslab.schema.near import clipped

_TIME = "time_s"
_RATE = {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9}
_COLUMN = re.compile(r"(?P<name>.+)_(?P<unit>bps|kbps|Mbps|Gbps|ms|us|s)")
_DELAY = {"ms": 1.0, "us": 1e-3, "s": 1e3}

MOST = 1e11
"""Of a number in a file. Unix times in seconds are less, those in milliseconds more."""
MOST_BYTES = 2**63 - 1
"""Of a column of rates; tables have no greater whole number."""


def knows(head: bytes) -> bool:
    """By its header."""
    return head.lstrip(b"\xef\xbb\xbf").startswith((_TIME.encode(), b'"time_s"'))


def read(path: Path) -> Foreign:
    """Rates become streams, delays samples. A row's rate counts from the row before it to its own time."""
    (line, head), *rows = _rows(path)
    columns = _columns(path, line, [name.strip() for name in head])
    found = Foreign(path.stem, "CSV")
    series: list[list[tuple[float, float]]] = [[] for _ in columns]
    for line, row in rows:
        if len(row) != len(head):
            raise UserError(f"{path}:{line}: found {len(row)} fields, expected {len(head)}")
        try:
            values = [_number(cell) if cell.strip() else None for cell in row]
        except ValueError as error:
            raise UserError(f"{path}:{line}: {error}") from error
        if (time := values[0]) is None or (found.seconds and time <= found.seconds):
            raise UserError(f"{path}:{line}: found the time {row[0]!r}, expected one after the row before")
        found.seconds = time
        for points, value in zip(series, values[1:], strict=True):
            if value is not None:
                points.append((time, value))
    if not any(series):
        raise UserError(f"{path}: found a header without values, expected rows with a time and values below it")
    for (name, unit), points in zip(columns, series, strict=True):
        if unit in _RATE:
            _stream(found, name, [(time, value * _RATE[unit]) for time, value in points])
            if (count := int(str(found.rows["flows"][-1]["bytes"]))) > MOST_BYTES:
                raise UserError(
                    f'{path}: found {count} bytes in the column "{name}_{unit}", expected {MOST_BYTES} at most'
                )
        else:
            found.samples += [
                {"series": name, "unit": "ms", "time_s": time, "value": value * _DELAY[unit]} for time, value in points
            ]
    return found


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line on which it ends; the first is the header."""
    # Whatever its ends of lines are: a carriage return alone is an error to the csv module.
    reader = csv.reader(io.StringIO(text_of(path).lstrip("\ufeff"), newline=None))
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise UserError(
            f"{path}:{reader.line_num}: found no CSV: {error}, expected fields with commas between them",
            hint="a quotation mark without its second takes all that follows into one field",
        ) from error
    if not rows:
        raise UserError(f"{path}: found no row, expected a header and rows below it")
    return rows


def _columns(path: Path, line: int, head: list[str]) -> list[tuple[str, str]]:
    """Name and unit of each column but the times."""
    if head[0] != _TIME:
        raise UserError(f'{path}:{line}: found the column "{clipped(head[0])}", expected {_TIME} first')
    columns = []
    for name in head[1:]:
        match = _COLUMN.fullmatch(name)
        if match is None:
            raise UserError(
                f'{path}:{line}: found the column "{clipped(name)}", expected a unit at its end: '
                f"{', '.join((*_RATE, *_DELAY))}",
                hint="as video_kbps or rtt_ms",
            )
        columns.append((match["name"], match["unit"]))
    return columns


def _number(cell: str) -> float:
    """A number of a size that sums and products of some do not leave; `ValueError` otherwise."""
    try:
        found = number(cell)
    except ValueError:
        raise ValueError(f"found {clipped(cell)!r}, expected a number") from None
    if abs(found) > MOST:
        raise ValueError(f"found {clipped(cell)!r}, expected a number of {MOST:g} at most")
    return found


def _stream(found: Foreign, name: str, points: list[tuple[float, float]]) -> None:
    start = seconds = 0.0
    count = 0
    for time, bps in points:
        if time > start:
            octets = round(bps * (time - start) / 8)
            found.interval(1, start, time, octets, bps, traffic=name)
            seconds += time - start
            count += octets
        start = time
    found.flow(1, seconds, count, traffic=name, tool="csv")
