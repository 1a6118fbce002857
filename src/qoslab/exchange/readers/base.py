"""What a reader of foreign files gives, and how such files are read within bounds."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.errors import UserError

MOST_BYTES = 256 * 2**20
"""Of a text, unpacked: what a test of hours with many streams does not reach."""
_HEAD = 4096
_GZIP = b"\x1f\x8b"

SAMPLES = pa.schema(
    [
        ("arm", pa.string()),
        ("series", pa.string()),
        ("unit", pa.string()),
        ("time_s", pa.float64()),
        ("value", pa.float64()),
    ]
)
"""The table `samples`: what other tools measured that no table of a run has, such as each round trip of irtt."""


@dataclass
class Foreign:
    """What a file says."""

    name: str
    """Of the arm that it becomes."""
    form: str
    """The tool and its version, as far as the file tells."""
    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    """By table of a run; without arm, repetition and cell."""
    packets: pd.DataFrame | None = None
    """As `qoslab.analysis.packets.bin_packets` gives them, with `capture`."""
    samples: list[dict[str, object]] = field(default_factory=list)
    """Rows of `SAMPLES` without the arm."""
    seconds: float = 0.0
    """How long it lasted."""
    notes: list[str] = field(default_factory=list)
    """What a reader of its figures must know."""

    def flow(self, stream: int, seconds: float, count: int, *, traffic: str | None = None, **more: object) -> None:
        """Add a stream that had `count` bytes; `traffic` is the file's name where absent. See `_held`."""
        goodput = count * 8 / seconds if seconds > 0 else None
        row = {"traffic": traffic or self.name, "offset_s": 0.0, "stream": stream, "seconds": seconds, "bytes": count}
        self.rows.setdefault("flows", []).append(_held({**row, "goodput_bps": goodput, **more}))

    def interval(
        self, stream: int, start_s: float, end_s: float, count: int, bps: float, *, traffic: str | None = None
    ) -> None:
        """Add what a stream had in a part of the time; one that takes none is left out. See `_held`."""
        if end_s > start_s:
            row = {"traffic": traffic or self.name, "offset_s": 0.0, "stream": stream, "bytes": count, "bps": bps}
            self.rows.setdefault("intervals", []).append(_held({**row, "start_s": start_s, "end_s": end_s}))


def _held(row: dict[str, object]) -> dict[str, object]:
    """The row; `OverflowError` for a number that a table has no place for."""
    for name, value in row.items():
        if (isinstance(value, int) and abs(value) >= 2**63) or (isinstance(value, float) and not math.isfinite(value)):
            raise OverflowError(f"{value:.3g} for {name}")
    return row


@dataclass(frozen=True)
class Reader:
    """A format: how it is told by a file's beginning, and who reads it."""

    name: str
    help: str
    knows: Callable[[bytes], bool]
    """By the first bytes of the file, unpacked."""
    read: Callable[[Path], Foreign]
    """`UserError` where the file is damaged or of another version."""


def arm_of(path: Path) -> str:
    """The name of the arm that a file becomes: its own without its ending, compressed or not."""
    return Path(path.name.removesuffix(".gz")).stem


def head_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked if it is compressed; `UserError` where it cannot be read or is empty."""
    try:
        with path.open("rb") as handle:
            head = handle.read(_HEAD)
        if head.startswith(_GZIP):
            with gzip.open(path) as unpacked:
                head = unpacked.read(_HEAD)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {_said(error)}") from error
    if not head.strip():
        raise UserError(f"{path}: found an empty file, expected results of a tool")
    return head


def text_of(path: Path) -> str:
    """The whole text, unpacked; `UserError` where it is cut off or larger than `MOST_BYTES`."""
    try:
        with path.open("rb") as handle:
            packed = handle.read(2) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as handle:
            content = handle.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {_said(error)}", hint="was it copied whole?") from error
    if len(content) > MOST_BYTES:
        raise UserError(f"{path}: found more than {MOST_BYTES} bytes, expected at most that")
    return content.decode("utf-8", errors="replace")


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def document_of(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file; `UserError` with the place where it stops being one."""
    text = text_of(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: found no whole JSON: {error}", hint=f"was what {what} wrote copied whole?") from error
    if not isinstance(found, dict):
        raise UserError(f"{path}: found no JSON object, expected what {what} wrote")
    return found


def number(value: object) -> float:
    """A finite number; `ValueError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"found {value!r}, expected a number")
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(f"found {value!r}, expected a finite number")
    return found


def not_as_written(path: Path, what: str, error: Exception) -> UserError:
    """For a document whose parts are not what the tool writes."""
    said = f"no {error}" if isinstance(error, KeyError) else str(error)
    return UserError(f"{path}: it is not what {what} writes: {said}", hint="another version's, or changed by hand?")
