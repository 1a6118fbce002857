"""Progress of a running run: `progress.jsonl`, one JSON object a line, for viewers.

It supplements the files that cells write, such as growing counters, and decides nothing: no result is read from it, and
a run continues if it cannot be written. A resumed run appends to it.

Every line has `event` and `time` (ISO 8601, UTC). `begin`: format, title, lab, cells (their number), done (number of
cells that need not be run). `cell`: name, folder. `step`: name, step, seconds (its expected length, or null). `done`:
name, valid, reasons, again (whether there is another attempt). `note`: text. `figures`: values of the comparison so
far. `end`: how.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from qoslab.errors import UserError
from qoslab.results.file_access import append
from qoslab.results.redaction import KNOWN

PROGRESS = "progress.jsonl"
FORMAT = 1
"""Format of the lines, given in `begin`."""
FINISHED, INTERRUPTED, FAILED = "finished", "interrupted", "failed"
"""States of a run that ended by itself; a killed run writes none."""


class ProgressFile:
    """Writer of the lines. Its methods may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / PROGRESS
        self._lock = threading.Lock()

    def begin(self, *, title: str, lab: str, cells: int, done: int) -> None:
        """Write that the run begins, or is resumed."""
        self._add("begin", format=FORMAT, title=title, lab=lab, cells=cells, done=done)

    def cell(self, name: str, folder: str) -> None:
        """Write that an attempt at a cell begins, with its folder within the run's."""
        self._add("cell", name=name, folder=folder)

    def step(self, name: str, step: str, seconds: float | None) -> None:
        """Write the present step of a cell, a lab or the run; an empty step ends it."""
        self._add("step", name=name, step=step, seconds=seconds)

    def done(self, name: str, *, valid: bool, reasons: Sequence[str] = (), again: bool = False) -> None:
        """Write that an attempt at a cell is over."""
        self._add("done", name=name, valid=valid, reasons=list(reasons), again=again)

    def note(self, text: str) -> None:
        """Write a note for people."""
        self._add("note", text=text)

    def figures(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Write all values of the comparison so far."""
        self._add("figures", rows=list(rows))

    def end(self, how: str) -> None:
        """Write that the run is over."""
        self._add("end", how=how)

    def _add(self, event: str, **fields: object) -> None:
        line = json.dumps({"event": event, "time": datetime.now(UTC).isoformat(), **fields}, separators=(",", ":"))
        with self._lock, suppress(UserError):
            append(self._file, KNOWN.hidden(line).encode() + b"\n")
