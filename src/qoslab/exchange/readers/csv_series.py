"""Reader of CSV with a column of times and columns of rates or delays, such as from spreadsheets and scripts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from qoslab.errors import UserError, clip_text
from qoslab.exchange.readers.base import (
    MAX_POINTS,
    MAX_SERIES,
    ForeignResults,
    LimitError,
    arm_name,
    iterate_lines,
    parse_number,
)

_TIME = "time_s"
_RATE = {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9}
_COLUMN = re.compile(r"(?P<name>.+)_(?P<unit>bps|kbps|Mbps|Gbps|ms|us|s)")
_DELAY = {"ms": 1.0, "us": 1e-3, "s": 1e3}

_OTHER_SIGNS = {";": "semicolons", "\t": "tabs"}
MAX_CHARACTERS = 64 * 2**20
"""Maximum bytes of an unpacked file."""
MAX_NUMBER = 1e11
"""Largest number in a file. Unix times in seconds are smaller, those in milliseconds larger."""


def recognises(head: bytes) -> bool:
    """Recognise a header that begins with the times, or that has a column with a unit."""
    lines = head.decode("utf-8", errors="replace").lstrip().splitlines()
    names = [name.strip().strip('"') for name in re.split(r"[,;\t]", lines[0])] if lines else []
    return names[:1] == [_TIME] or any(_COLUMN.fullmatch(name) for name in names[1:])


def read(path: Path) -> ForeignResults:
    """Return rates as streams and delays as samples. A rate applies from the previous value in its column to its own
    time.
    """
    text = _Lines(iterate_lines(path, MAX_CHARACTERS))
    rows = _numbered_rows(path, text)
    line, names = next(rows, (0, []))
    if not names:
        raise UserError(f"{path}: found no row, expected a header and rows below it")
    columns = _value_columns(path, line, [name.strip() for name in names])
    found = ForeignResults(arm_name(path), "CSV")
    times: list[float] = []
    series: list[list[tuple[float, float]]] = [[] for _ in columns]
    points = 0
    for line, row in rows:
        time, *values = _row_values(path, line, row, names)
        times.append(_row_time(path, line, time, times))
        points += len(values)
        if points > MAX_POINTS:
            raise LimitError(MAX_POINTS, "fields below the header")
        for column, value in zip(series, values, strict=True):
            if value is not None:
                column.append((times[-1], value))
    if not any(series):
        raise UserError(f"{path}: found a header without values, expected rows with a time and values below it")
    if not text.last.endswith(("\n", "\r")):
        found.notes.append(f"line {line} has no line end: if the file is truncated, its last value is wrong")
    begin = _first_interval_start(times)
    found.seconds = times[-1] - begin
    if begin:
        found.notes.append(f"times are relative to the start at {begin:.15g} s")
    for (name, unit), own in zip(columns, series, strict=True):
        if unit in _RATE:
            _add_stream(
                path, found, f"{name}_{unit}", name, [(time, value * _RATE[unit]) for time, value in own], begin
            )
        else:
            for time, value in own:
                found.sample(name, "ms", round(time - begin, 9), value * _DELAY[unit])
    return found


def _first_interval_start(times: Sequence[float]) -> float:
    """Return the start of the first interval: one step before the first time, at least 0; a step is the first time
    difference.
    """
    step = times[1] - times[0] if len(times) > 1 else 0.0
    return max(times[0] - step, min(times[0], 0.0))


def _row_values(path: Path, line: int, row: list[str], names: list[str]) -> list[float | None]:
    """Return the numbers of a row; None for empty fields."""
    if len(row) != len(names):
        raise UserError(f"{path}:{line}: found {len(row)} fields, expected {len(names)}")
    try:
        values = [_parse_number(cell) if cell.strip() else None for cell in row]
    except ValueError as error:
        raise UserError(f"{path}:{line}: {error}") from error
    for name, cell, value in zip(names[1:], row[1:], values[1:], strict=True):
        if value is not None and value < 0:
            raise UserError(
                f'{path}:{line}: found {cell.strip()} in the column "{clip_text(name)}", expected 0 or more'
            )
    return values


def _row_time(path: Path, line: int, time: float | None, before: Sequence[float]) -> float:
    """Return the time of a row. It must be later than all times before it."""
    if time is None:
        raise UserError(f"{path}:{line}: found no time, expected one later than in the previous row")
    if before and time <= before[-1]:
        raise UserError(f"{path}:{line}: found the time {time:.15g}, expected one later than in the previous row")
    return time


class _Lines:
    """Lines of a text; `last` is the latest one."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.last = line
            yield line


def _numbered_rows(path: Path, lines: _Lines) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its last line; the first is the header."""
    reader = csv.reader(lines)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise UserError(
            f"{path}:{reader.line_num}: found invalid CSV: {error}, expected comma-separated fields",
            hint="a missing closing quotation mark turns the rest into one field",
        ) from error


def _value_columns(path: Path, line: int, head: list[str]) -> list[tuple[str, str]]:
    """Return name and unit of each column except the times."""
    for sign, what in _OTHER_SIGNS.items():
        if len(head) == 1 and sign in head[0]:
            raise UserError(
                f"{path}:{line}: found fields with {what} between them, expected commas",
                hint="export it with commas between fields and decimal points in numbers",
            )
    if head[0] != _TIME:
        raise UserError(f'{path}:{line}: found the column "{clip_text(head[0])}", expected {_TIME} first')
    if len(head) - 1 > MAX_SERIES:
        raise UserError(f"{path}:{line}: {LimitError(MAX_SERIES, 'columns of values', len(head) - 1)}")
    columns: list[tuple[str, str]] = []
    series = set()
    for name in head[1:]:
        match = _COLUMN.fullmatch(name)
        if match is None:
            raise UserError(
                f'{path}:{line}: found the column "{clip_text(name)}", expected a unit at its end: '
                f"{', '.join((*_RATE, *_DELAY))}",
                hint="such as video_kbps or rtt_ms",
            )
        what = "rates" if match["unit"] in _RATE else "delays"
        if (what, match["name"]) in series:
            raise UserError(
                f'{path}:{line}: found {what} of "{clip_text(match["name"])}" in two columns, expected a unique name '
                "for each"
            )
        series.add((what, match["name"]))
        columns.append((match["name"], match["unit"]))
    return columns


def _parse_number(cell: str) -> float:
    """Parse a number whose sums and products do not overflow. Raise `ValueError` otherwise."""
    try:
        found = parse_number(cell)
    except ValueError:
        raise ValueError(f"found {clip_text(cell)!r}, expected a number") from None
    if abs(found) > MAX_NUMBER:
        raise ValueError(f"found {clip_text(cell)!r}, expected a number of at most {MAX_NUMBER:g}")
    return found


def _add_stream(
    path: Path, found: ForeignResults, column: str, name: str, points: list[tuple[float, float]], begin: float
) -> None:
    """Add a column of rates; the times of a file begin at `begin`."""
    if len(points) == 1 and points[0][0] > 0:
        raise UserError(
            f'{path}: found one value in the column "{column}", expected at least two',
            hint="a rate applies from the time of the previous row",
        )
    start = max(_first_interval_start([time for time, _ in points]), begin) if points else begin
    seconds = 0.0
    count = 0
    for time, bps in points:
        octets = round(bps * (time - start) / 8)
        if time > start:
            found.add_interval(1, round(start - begin, 9), round(time - begin, 9), octets, bps, traffic=name)
        else:
            found.notes.append(f"the first rate of {name}, at {time:g} s, is left out: there is no earlier time")
        seconds += time - start
        count += octets
        start = time
    found.add_flow(1, round(seconds, 9), count, traffic=name, tool="csv")
