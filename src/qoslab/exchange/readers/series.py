"""CSV with a column of times and columns of rates or delays, as spreadsheets and own scripts write it."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from qoslab.errors import UserError
from qoslab.exchange.readers.base import Foreign, number, text_of

_TIME = "time_s"
_RATE = {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9}
_COLUMN = re.compile(r"(?P<name>.+)_(?P<unit>bps|kbps|Mbps|Gbps|ms|us|s)")
_DELAY = {"ms": 1.0, "us": 1e-3, "s": 1e3}


def knows(head: bytes) -> bool:
    """By its header."""
    return head.lstrip(b"\xef\xbb\xbf").startswith((_TIME.encode(), b'"time_s"'))


def read(path: Path) -> Foreign:
    """Rates become streams, delays samples. A row's rate counts from the row before it to its own time."""
    rows = list(csv.reader(io.StringIO(text_of(path).lstrip("\ufeff"))))
    head = [name.strip() for name in rows[0]]
    if head[0] != _TIME:
        raise UserError(f'{path}:1: found the column "{head[0]}", expected {_TIME} first')
    columns = []
    for name in head[1:]:
        match = _COLUMN.fullmatch(name)
        if match is None:
            raise UserError(
                f'{path}:1: found the column "{name}", expected a unit at its end: {", ".join((*_RATE, *_DELAY))}',
                hint="as video_kbps or rtt_ms",
            )
        columns.append((match["name"], match["unit"]))
    found = Foreign(path.stem, "CSV")
    series: list[list[tuple[float, float]]] = [[] for _ in columns]
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(head):
            raise UserError(f"{path}:{line}: found {len(row)} fields, expected {len(head)}")
        try:
            values = [number(cell) if cell.strip() else None for cell in row]
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
        else:
            found.samples += [
                {"series": name, "unit": "ms", "time_s": time, "value": value * _DELAY[unit]} for time, value in points
            ]
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
