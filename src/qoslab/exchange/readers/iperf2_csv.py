"""Reader of comma-separated reports of iperf 2 (`-y C`), of one side.

A row has time, local address and port, remote address and port, stream, interval, bytes and bits per second. For a
receiver of datagrams it also has jitter in milliseconds, lost and all datagrams, percentage and out-of-order datagrams.
From 2.2 on `-e` prints a header, begin and end of the interval in two columns, and further columns. Sums have the
stream -1. At the end each stream has a row over the whole test; a client of datagrams may print two, the second from
its server.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from qoslab.errors import UserError, clip_text
from qoslab.exchange.readers.base import ForeignResults, arm_name, parse_integer, parse_number, read_text

_TIME = r"(?:[+-]\d{4}:)?(?P<second>\d{14})(?P<fraction>\.\d+)?"
_ROW = re.compile(rf"^{_TIME},[^,\n]*,\d*,[^,\n]*,\d*,-?\d+,\d+\.\d+[-,]\d+\.\d+,\d".encode(), re.MULTILINE)
_HEADER = b"time,srcaddress,srcport,dstaddr,dstport,transferid,"
_COLUMNS = (
    *("time", "srcaddress", "srcport", "dstaddr", "dstport", "transferid", "interval", "bytes", "speed"),
    *("jitter", "errors", "datagrams", "errpercent", "outoforder"),
)
"""Columns of a file without a header; the last five are only for datagrams."""
_SUM = -1
_RATE_TOLERANCE = 0.5
"""Allowed difference of a printed rate from the rate in the printed interval: the ends of short intervals are
rounded.
"""
_SLACK_S = 0.15
"""Tolerance of times, which are printed to tenths of a second."""
_WHOLE = "is the file complete, and did the test finish?"


@dataclass(frozen=True)
class _Row:
    line: int
    key: tuple[str, ...]
    """Addresses, ports and stream: stream numbers are not unique across directions."""
    printed_s: float
    """Printed time of an unspecified clock."""
    start_s: float
    end_s: float
    bytes: int
    bps: float
    udp: bool
    jitter_ms: float | None = None
    lost: int | None = None
    datagrams: int | None = None
    retransmits: int | None = None

    @property
    def stream(self) -> int:
        return parse_integer(self.key[-1])

    @property
    def began_s(self) -> float:
        return self.printed_s - self.end_s


@dataclass
class _Stream:
    rows: list[_Row] = field(default_factory=list)
    """Rows of its intervals."""
    totals: list[_Row] = field(default_factory=list)
    """Rows over the whole test: its own, followed by that of its server."""

    @property
    def total(self) -> _Row:
        return next((each for each in reversed(self.totals) if each.datagrams is not None), self.totals[-1])


def recognises(head: bytes) -> bool:
    """Return whether a file begins with such rows or their header."""
    return head.startswith(_HEADER) or _ROW.search(head) is not None


def read(path: Path) -> ForeignResults:
    """Return streams with a row over the whole test, and the rows of their intervals."""
    streams: dict[tuple[str, ...], _Stream] = {}
    sums = 0
    for row in _read_rows(path):
        if row.stream == _SUM:
            sums += 1
        else:
            _take_row(path, streams.setdefault(row.key, _Stream()), row)
    if not streams:
        raise UserError(f"{path}: found no row of a stream, expected at least one", hint=_WHOLE)
    streams = _merge_reports(streams)
    for key, stream in streams.items():
        _stream_end(path, key, stream)
    _check_one_test(path, list(streams.values()))
    found = ForeignResults(arm_name(path), "iperf 2, CSV")
    for place, (key, stream) in enumerate(streams.items(), start=1):
        _add_streams(found, place, key, stream)
    found.notes.append("values come from the side that printed them")
    if sums:
        found.notes.append(f"{sums} rows of sums over all streams are left out: they are computed from the streams")
    if {key[1] for key in streams} & {key[3] for key in streams}:
        found.notes.append("its streams run in both directions, and values over all streams include both")
    if not any(stream.rows for stream in streams.values()):
        found.notes.append("it has one row per stream: if iperf was started with -i, the text stops after an interval")
    return found


def _read_rows(path: Path) -> Iterator[_Row]:
    columns: tuple[str, ...] = _COLUMNS
    row: _Row | None = None
    text = read_text(path)
    reader = csv.reader(text.splitlines())
    try:
        for fields in reader:
            if not any(field.strip() for field in fields):
                continue
            if fields[0] == "time":
                columns = tuple(field.strip() for field in fields)
            elif re.fullmatch(_TIME, fields[0].strip()):
                row = _parse_row(path, reader.line_num, columns, [field.strip() for field in fields])
                yield row
            elif fields[0].strip()[:1].isdigit():
                raise UserError(
                    f'{path}:{reader.line_num}: found "{clip_text(",".join(fields))}", expected a row of iperf -y C',
                    hint=_WHOLE,
                )
            # Other lines are messages that a server prints between its rows.
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: found invalid CSV: {error}", hint=_WHOLE) from error
    if row is not None and not text.endswith(("\n", "\r")) and row.end_s > row.start_s:
        # The rate is the last number of a row, or near its end.
        expected = row.bytes * 8 / (row.end_s - row.start_s)
        if abs(row.bps - expected) > _RATE_TOLERANCE * expected + 1:
            raise UserError(f"{path}:{row.line}: found a truncated row, expected a complete one", hint=_WHOLE)


def _parse_row(path: Path, line: int, columns: tuple[str, ...], fields: list[str]) -> _Row:
    plain = columns is _COLUMNS
    if plain and len(fields) not in (9, 14):
        raise UserError(f"{path}:{line}: found {len(fields)} fields, expected 9, or 14 for UDP", hint=_WHOLE)
    if not plain and len(fields) != len(columns):
        raise UserError(
            f"{path}:{line}: found {len(fields)} fields, expected {len(columns)} as in the header", hint=_WHOLE
        )
    values = dict(zip(columns, fields, strict=False))
    try:
        start, end = values["interval"].split("-") if plain else (values["istart"], values["iend"])
        datagrams = parse_integer(values["datagrams"]) if "datagrams" in values else None
        # A sender that has no report of its receiver has -1 in the row over the whole test.
        counted = datagrams is not None and datagrams >= 0
        # The counter is unsigned: its maximum means that there is no value.
        retries = parse_integer(values["tcpretry"]) if "tcpretry" in values else -1
        for name in ("bytes", "speed"):
            if values[name].startswith("-"):
                raise ValueError(f"found {clip_text(values[name])} for {name}, expected 0 or more")
        return _Row(
            line,
            tuple(values[name] for name in ("srcaddress", "srcport", "dstaddr", "dstport", "transferid")),
            _parse_seconds(values["time"]),
            parse_number(start),
            parse_number(end),
            parse_integer(values["bytes"]),
            parse_number(values["speed"]),
            udp=datagrams is not None,
            jitter_ms=parse_number(values["jitter"]) if counted else None,
            lost=parse_integer(values["errors"]) if counted else None,
            datagrams=datagrams if counted else None,
            retransmits=retries if 0 <= retries < 2**32 - 1 else None,
        )
    except (ValueError, KeyError) as error:
        why = f"no column {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{path}:{line}: it is not a row of iperf -y C: {why}", hint="was the file edited?") from error


def _parse_seconds(text: str) -> float:
    match = re.fullmatch(_TIME, text)
    if match is None:
        raise ValueError(f"found the time {clip_text(text)!r}")
    second = datetime.strptime(match["second"], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return second.timestamp() + float(match["fraction"] or 0)


def _take_row(path: Path, stream: _Stream, row: _Row) -> None:
    """Add a row to its stream: a row that begins at 0 after another one covers the whole test."""
    if stream.totals and row.start_s > 0:
        raise _several_tests_error(path, row, "an interval after the summary row")
    (stream.totals if row.start_s == 0 and stream.rows else stream.rows).append(row)


def _several_tests_error(path: Path, row: _Row, what: str) -> UserError:
    return UserError(
        f"{path}:{row.line}: found {what} of stream {row.stream}, expected one test",
        hint="split the file at the end of each test and import the parts",
    )


def _merge_reports(streams: dict[tuple[str, ...], _Stream]) -> dict[tuple[str, ...], _Stream]:
    """Return the streams; UDP streams include the server report, even if its addresses are swapped."""
    found = dict(streams)
    for key, stream in streams.items():
        other = found.get((*key[2:4], *key[:2], key[4]))
        alone = len(stream.rows) == 1 and not stream.totals and stream.rows[0].start_s == 0
        if alone and stream.rows[0].udp and other is not None and other is not stream and not other.rows[0].udp:
            other.totals.append(stream.rows[0])
            del found[key]
    return found


def _stream_end(path: Path, key: tuple[str, ...], stream: _Stream) -> None:
    """Raise UserError if a stream has no row over the whole test."""
    if len(stream.rows) == 1 and stream.rows[0].start_s == 0 and not any(not each.udp for each in stream.totals):
        # Without -i a stream has this row alone, or the report of its server after it.
        stream.totals.insert(0, stream.rows.pop())
    rows, totals = stream.rows, stream.totals
    if not totals or (rows and totals[-1].end_s < rows[-1].end_s - _SLACK_S):
        raise UserError(f"{path}: found no summary row of stream {key[-1]}, expected one", hint=_WHOLE)


def _check_one_test(path: Path, streams: list[_Stream]) -> None:
    """Raise UserError if streams, or rows of a stream, are consecutive, as in several tests."""
    first = min((stream.total for stream in streams), key=lambda total: total.printed_s)
    latest = first.printed_s - first.end_s / 2 + 0.5
    for row in (row for stream in streams for row in (*stream.rows, *stream.totals)):
        if row.began_s > latest and row.start_s == 0:
            raise _several_tests_error(path, row, "a test after the end of another one: that")


def _add_streams(found: ForeignResults, place: int, key: tuple[str, ...], stream: _Stream) -> None:
    total = stream.total
    found.add_flow(
        place,
        total.end_s,
        total.bytes,
        tool="iperf",
        protocol="udp" if any(each.udp for each in (*stream.rows, *stream.totals)) else "tcp",
        local_port=parse_integer(key[1]) if key[1] else None,
        goodput_bps=total.bps,
        retransmits=total.retransmits,
        datagrams=total.datagrams,
        lost=found.read_loss(total.lost, place, total.datagrams),
        jitter_ms=total.jitter_ms,
    )
    found.seconds = max(found.seconds, total.end_s)
    for each in stream.rows:
        found.add_interval(place, each.start_s, each.end_s, each.bytes, each.bps)
    found.note_interval_losses(place, ((each.start_s, each.lost) for each in stream.rows))
