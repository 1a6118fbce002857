"""Interface of readers of foreign files, and reading with limits."""

from __future__ import annotations

import codecs
import functools
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.errors import UserError, format_found
from qoslab.schema.named_files import FileRefusedError, open_regular
from qoslab.system.printing import one_line

MAX_BYTES = 256 * 2**20
"""Maximum bytes of an unpacked text: a test of hours with many streams stays below it."""
MAX_VALUES = 5_000_000
"""Maximum number of values of a text, counted by their separators. Each takes about 100 bytes of memory after
reading.
"""
MAX_LINES = 8_000_000
"""Maximum number of lines of a text."""
MAX_POINTS = 500_000
"""Maximum number of intervals and samples of one file together."""
MAX_SERIES = 2_000
"""Maximum number of streams, columns or series of one file."""
_CHUNK = 2**20
_HEAD = 4096
_GZIP = b"\x1f\x8b"
_VALUE_SIGNS = ",:[{"
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Line ends as in `str.splitlines`."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # The mark of UTF-16 is a prefix of that of UTF-32.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks and their encodings."""
_UNMARKED = ((re.compile(rb"(?:[\t\n\r -~]\0){8}"), "utf-16-le"), (re.compile(rb"(?:\0[\t\n\r -~]){8}"), "utf-16-be"))
"""Beginning of a text in UTF-16 without a byte order mark."""
_COMMA, _COMMA_ROW = re.compile(r"(?<=\d),(?=\d)"), re.compile(r"^\[ *\w+\].*\d,\d+- *\d+,\d+ +sec ")
_LONG_NUMBER = re.compile(r"\d{4301}")
"""A number with more digits than Python converts."""

SAMPLES = pa.schema(
    [
        ("arm", pa.string()),
        ("series", pa.string()),
        ("unit", pa.string()),
        ("time_s", pa.float64()),
        ("value", pa.float64()),
    ]
)
"""The table `samples`: measurements of other tools without a table of a run, such as each round trip of irtt."""


class LimitError(Exception):
    """More items than a file may have; `read_foreign` adds the file's name."""

    def __init__(self, most: int, what: str, found: int | None = None) -> None:
        super().__init__(f"found {found or f'more than {most}'} {what}, expected at most {most}")


class ImpossibleError(Exception):
    """A value that no tool measures, such as a negative number of bytes; `read_foreign` adds the file's name."""


@dataclass
class ForeignResults:
    """Content of a foreign file."""

    name: str
    """Name of the arm."""
    form: str
    """The tool and its version, if recorded in the file."""
    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    """Rows by table of a run, without arm, repetition and cell."""
    packets: pd.DataFrame | None = None
    """Packets in the form of `qoslab.analysis.packets.bin_packets`, with `capture`."""
    samples: list[dict[str, object]] = field(default_factory=list)
    """Rows of `SAMPLES` without the arm."""
    seconds: float = 0.0
    """Duration in seconds."""
    notes: list[str] = field(default_factory=list)
    """Notes for readers of the values."""

    def add_flow(self, stream: int, seconds: float, count: int, *, traffic: str | None = None, **more: object) -> None:
        """Add a stream with `count` bytes; `traffic` is the file's name by default. See `_checked_row`.

        Raise LimitError above `MAX_SERIES`.
        """
        if count > 0 and seconds <= 0:
            raise ImpossibleError(f"found {count} bytes of stream {stream} in {seconds:g} s, expected a longer time")
        flows = self.rows.setdefault("flows", [])
        if len(flows) >= MAX_SERIES:
            raise LimitError(MAX_SERIES, "streams")
        goodput = count * 8 / seconds if seconds > 0 else None
        row = {"traffic": traffic or self.name, "offset_s": 0.0, "stream": stream, "seconds": seconds, "bytes": count}
        flows.append(_checked_row({**row, "goodput_bps": goodput, **more}))

    def add_interval(
        self, stream: int, start_s: float, end_s: float, count: int, bps: float, *, traffic: str | None = None
    ) -> None:
        """Add an interval of a stream, unless its duration is zero. See `_checked_row`.

        Raise LimitError above `MAX_POINTS`.
        """
        if end_s > start_s:
            self._check_points()
            row = {"traffic": traffic or self.name, "offset_s": 0.0, "stream": stream, "bytes": count, "bps": bps}
            self.rows.setdefault("intervals", []).append(_checked_row({**row, "start_s": start_s, "end_s": end_s}))

    def place_streams(self) -> None:
        """Move the start of each stream to its first interval, as far as its total duration permits."""
        reported: dict[tuple[object, object], list[dict[str, Any]]] = {}
        for row in self.rows.get("intervals", ()):
            reported.setdefault((row["traffic"], row["stream"]), []).append(row)
        for flow in self.rows.get("flows", ()):
            mine = reported.get((flow["traffic"], flow["stream"]))
            if not mine:
                continue
            first, last = min(each["start_s"] for each in mine), max(each["end_s"] for each in mine)
            offset = max(0.0, min(first, last - float(str(flow["seconds"]))))
            for each in (flow, *mine):
                each["offset_s"] = offset
            for each in mine:
                each["start_s"], each["end_s"] = each["start_s"] - offset, each["end_s"] - offset

    def sample(self, series: str, unit: str, time_s: float, value: float) -> None:
        """Add a row of `SAMPLES`. Raise LimitError above `MAX_POINTS`."""
        self._check_points()
        self.samples.append({"series": series, "unit": unit, "time_s": time_s, "value": value})

    def escape_texts(self) -> None:
        """Escape control characters, line ends and invalid characters in all texts, which are foreign names."""
        escaped = functools.cache(one_line)
        self.name, self.form, self.notes = escaped(self.name), escaped(self.form), [*map(escaped, self.notes)]
        for row in (*self.samples, *(row for rows in self.rows.values() for row in rows)):
            for name, value in row.items():
                if isinstance(value, str):
                    row[name] = escaped(value)

    def read_loss(self, lost: int | None, stream: int, datagrams: int | None) -> int | None:
        """Return the lost datagrams of a stream; None, with a note, for a number below 0 or above all datagrams."""
        if lost is None or 0 <= lost <= (lost if datagrams is None else datagrams):
            return lost
        if lost > 0:
            self.notes.append(
                f"stream {stream}: found {lost} lost datagrams of {datagrams}, expected at most {datagrams}; its "
                "losses are left out"
            )
            return None
        self.notes.append(
            f"stream {stream}: found a negative loss, {lost} datagrams; its losses are left out "
            "(iperf subtracts duplicated and reordered datagrams from the lost ones)"
        )
        return None

    def note_interval_losses(self, stream: int, losses: Iterator[tuple[float, int | None]]) -> None:
        """Add a note if intervals of a stream, each with its start in seconds, have a negative number of losses."""
        negative = [(start, lost) for start, lost in losses if lost is not None and lost < 0]
        if negative:
            start, lost = negative[0]
            count = f"{len(negative)} interval{'s' if len(negative) > 1 else ''}"
            self.notes.append(
                f"stream {stream}: found a negative loss in {count}, the first of {lost} datagrams at {start:g} s"
            )

    def _check_points(self) -> None:
        if len(self.rows.get("intervals", ())) + len(self.samples) >= MAX_POINTS:
            raise LimitError(MAX_POINTS, "intervals and samples")


def _checked_row(row: dict[str, object]) -> dict[str, object]:
    """Return the row. Raise `OverflowError` for a number that does not fit in a table, `ImpossibleError` for a negative
    one.
    """
    for name, value in row.items():
        if (isinstance(value, int) and abs(value) >= 2**63) or (isinstance(value, float) and not math.isfinite(value)):
            raise OverflowError(f"{value:.3g} for {name}")
        if isinstance(value, int | float) and value < 0:
            raise ImpossibleError(f"found {value:.6g} for {name} of stream {row['stream']}, expected 0 or more")
    return row


@dataclass(frozen=True)
class FormatReader:
    """A format: the function that recognises a file by its beginning, and the function that reads it."""

    name: str
    help: str
    knows: Callable[[bytes], bool]
    """Function that recognises the first bytes of the unpacked file."""
    read: Callable[[Path], ForeignResults]
    """Function that reads the file. It raises `UserError` if the file is damaged or of another version."""
    read_interfaces: Callable[[Path, Sequence[str]], ForeignResults] | None = None
    """Function that reads some interfaces, by name or number, of a file that can have several; None for other
    formats.
    """


def arm_name(path: Path) -> str:
    """Return the name of the arm of a file: the file's name without its suffixes."""
    return Path(path.name.removesuffix(".gz")).stem


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked if it is compressed, and converted to UTF-8 if it is a text in UTF-16
    or UTF-32.

    Raise UserError if the file cannot be read or is empty.
    """
    with open_regular_file(path) as handle:
        head = handle.read(_HEAD)
    mark, encoding = _detect_encoding(head)
    if mark or encoding != "utf-8":
        head = head[len(mark) :].decode(encoding, errors="ignore").encode()
    if not head.strip():
        raise UserError(f"{path}: found an empty file, expected the output of a tool")
    return head


@contextmanager
def open_regular_file(path: Path) -> Iterator[gzip.GzipFile | BinaryIO]:
    """Open a regular file, unpacked if it is compressed. Raise UserError if it cannot be read, on opening or in the
    block.
    """
    try:
        with open_regular(path) as handle:
            packed = handle.read(2) == _GZIP
            handle.seek(0)
            with gzip.GzipFile(fileobj=handle) if packed else nullcontext(handle) as content:
                yield content
    except FileRefusedError as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {_error_reason(error)}", hint="is the file complete?") from error


def read_text(path: Path) -> str:
    """Return the whole text, unpacked and without a byte order mark.

    Raise UserError if it is truncated, or exceeds `MAX_BYTES`, `MAX_LINES` or `MAX_VALUES`.
    """
    parts: list[str] = []
    size = lines = values = 0
    with open_regular_file(path) as handle:
        chunk = handle.read(_CHUNK)
        mark, encoding = _detect_encoding(chunk)
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        chunk = chunk[len(mark) :]
        while chunk:
            size += len(chunk)
            part = decoder.decode(chunk)
            lines += sum(part.count(sign) for sign in _LINE_ENDS)
            values += sum(part.count(sign) for sign in _VALUE_SIGNS)
            for found, most, what in (
                (size, MAX_BYTES, "bytes"),
                (lines, MAX_LINES, "lines"),
                (values, MAX_VALUES, "values"),
            ):
                if found > most:
                    raise UserError(f"{path}: {LimitError(most, what)}")
            parts.append(part)
            chunk = handle.read(_CHUNK)
    return "".join((*parts, decoder.decode(b"", final=True)))


def read_report_text(path: Path) -> str:
    """Return the text of a report of iperf, with decimal points in place of the commas of some languages."""
    rows = read_text(path).splitlines(keepends=True)
    return "".join(_COMMA.sub(".", row) if _COMMA_ROW.search(row) else row for row in rows)


def iterate_lines(path: Path, most_characters: int) -> Iterator[str]:
    """Yield the lines of a text one by one, without a byte order mark and ending in a newline.

    Raise UserError if the text is truncated or exceeds `most_characters`.
    """
    with open_regular_file(path) as handle:
        mark, encoding = _detect_encoding(handle.read(16))
        handle.seek(len(mark))
        text = io.TextIOWrapper(handle, encoding=encoding, errors="replace")
        left = most_characters
        while line := text.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise UserError(f"{path}: {LimitError(most_characters, 'characters')}")
            yield line


def _detect_encoding(head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark at the beginning, empty without one, and the encoding."""
    unmarked = next((encoding for pattern, encoding in _UNMARKED if pattern.match(head)), "utf-8")
    return next(((mark, encoding) for mark, encoding in _MARKS if head.startswith(mark)), (b"", unmarked))


def _error_reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def read_json_object(path: Path, what: str) -> dict[str, Any]:
    """Return the JSON object in a file. Raise UserError with the position of the first error."""
    text = read_text(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        long = _LONG_NUMBER.search(text)
        if long is not None and not isinstance(error, json.JSONDecodeError | RecursionError):
            line = text.count("\n", 0, long.start()) + 1
            raise UserError(
                f"{path}:{line}: found a number with thousands of digits, expected a measured value"
            ) from error
        raise UserError(
            f"{path}: found incomplete JSON: {error}", hint=f"was the output of {what} copied completely?"
        ) from error
    if not isinstance(found, dict):
        raise UserError(f"{path}: found no JSON object, expected output of {what}")
    return found


def parse_integer(text: str) -> int:
    """Return a whole number of at most 18 digits. Raise `ValueError` otherwise."""
    if len(text) > 19:
        raise ValueError(f"found a number of {len(text)} digits, expected at most 18")
    return int(text)


def parse_number(value: object) -> float:
    """Return a finite number. Raise `ValueError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"found {format_found(value)}, expected a number")
    try:
        # Python also accepts 1_000 and the digits of other scripts.
        found = float(value if not isinstance(value, str) or (value.isascii() and "_" not in value) else "")
    except ValueError:
        raise ValueError(f"found {format_found(value)}, expected a number") from None
    if not math.isfinite(found):
        raise ValueError(f"found {format_found(value)}, expected a finite number")
    return found


def unexpected_content_error(path: Path, what: str, error: Exception) -> UserError:
    """Return the error for a document with unexpected parts."""
    reason = f"no {error}" if isinstance(error, KeyError) else str(error)
    return UserError(
        f"{path}: it is not output of {what}: {reason}", hint="is it from another version, or was it edited?"
    )
