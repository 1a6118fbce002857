"""Watched run: its messages and the files of its cells so far."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qoslab.analysis.run_analysis import FIGURES_SO_FAR
from qoslab.errors import QoslabError, UserError
from qoslab.live.counter_rates import CounterRates
from qoslab.live.tail import FileTail
from qoslab.results import RunFolder
from qoslab.results.progress import FINISHED, FORMAT, PROGRESS
from qoslab.results.sealed_files import read_text

RUNNING, INTERRUPTED = "running", "aborted"
SILENT_S = 3.0
"""Silence of a run after which its process is checked."""
MAX_NOTES = 20
MAX_REASONS = 20
"""Greatest number of cells whose invalidity is reported one by one."""
MAX_PROGRESS_BYTES = 64 * 2**20
"""Greatest size of the progress file, in bytes; a sweep of 2000 cells writes 5 MiB."""
MAX_COMPARISON_BYTES = 16 * 2**20
"""Greatest size of a comparison, in bytes."""
MAX_CELLS = 4
"""Greatest number of finished cells that are still shown: the latest."""


@dataclass
class WatchedCell:
    """An attempt at a cell."""

    name: str
    path: Path
    rates: CounterRates = field(default_factory=CounterRates)
    is_finished: bool = False
    is_damaged: bool = False
    """True if some of its counters were invalid."""
    _is_read_completely: bool = False
    _tails: dict[tuple[str, str, Path], FileTail] = field(default_factory=dict)

    def read_new_lines(self) -> None:
        """Read the lines added since the last call."""
        if self._is_read_completely:
            return
        # Files that are written whole are complete when the cell is over.
        self._is_read_completely = self.is_finished
        # Whole files come last: points that were already read from them in parts are then skipped by their times.
        for kind, folder in ((kind, folder) for kind in ("counters", "readings") for folder in ("coming", "")):
            try:
                files = sorted((self.path / folder / kind).glob("*.jsonl"))
            except OSError:  # The name is too long.
                self.is_damaged = True
                continue
            for file in files:
                self._tails.setdefault((kind, file.stem, file), FileTail(file))
        for (kind, router, _), tail in self._tails.items():
            take = self.rates.add_counters if kind == "counters" else self.rates.add_reading
            for each in tail.read():
                try:
                    take(router, each)
                except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
                    self.is_damaged = True
            self.is_damaged |= tail.left_out > 0


@dataclass(frozen=True)
class Activity:
    """Current activity of a cell, a lab or the run."""

    step: str
    since: str
    """Start time, ISO 8601."""
    seconds: float | None
    """Expected length of the activity."""


class WatchedRun:
    """Reader of a run folder. Call `look` about once a second."""

    def __init__(self, folder: RunFolder) -> None:
        """Raise `UserError` if the folder is from another version, or not a run."""
        folder.options()
        self.folder = folder
        self.title, self.lab = folder.path.parent.name, ""
        self.planned = self.before = 0
        """Number of cells, and number of cells that were done before the run was resumed."""
        self.finished: set[str] = set()
        self.invalid: dict[str, tuple[str, ...]] = {}
        """Reasons by invalid cell; another attempt may make a cell valid."""
        self.doing: dict[str, Activity] = {}
        self.notes: deque[str] = deque(maxlen=MAX_NOTES)
        self.figures: list[Mapping[str, Any]] = []
        self.cells: dict[str, WatchedCell] = {}
        """Running cells, and the last finished ones, in the order of their starts."""
        self.state = RUNNING
        """`running`, `aborted`, or the ending (`results.progress`)."""
        self._tail = FileTail(folder.path / PROGRESS)
        self._left_out = 0
        self._heard = time.monotonic()
        progress = folder.path / PROGRESS
        if progress.exists() and (size := progress.stat().st_size) > MAX_PROGRESS_BYTES:
            raise UserError(f"{progress}: found {size} bytes, expected at most {MAX_PROGRESS_BYTES}")
        if not progress.exists():
            raise UserError(
                f"{folder.path}: found no {PROGRESS}, expected the progress of a run",
                hint="an older qoslab wrote this run, or it has just started; `qoslab report` shows a finished one",
            )

    @property
    def is_over(self) -> bool:
        """True if nothing follows unless the run is resumed."""
        return self.state != RUNNING

    def read_new_data(self) -> None:
        """Read new data. Raise `UserError` if the run is from another version."""
        events = self._tail.read()
        for event in events:
            try:
                self._take(event)
            except (LookupError, TypeError, ValueError) as error:
                raise UserError(
                    f"{self._tail.path}: found a line that is not in format {FORMAT}: {error!r}",
                    hint="the file was changed or damaged",
                ) from error
        if (left_out := self._tail.left_out) > self._left_out:
            self._left_out = left_out
            self.notes.append(f"{PROGRESS}: ignored {left_out} unknown lines")
        now = time.monotonic()
        if events:
            self._heard = now
        elif not self.is_over and now - self._heard >= SILENT_S:
            self._heard = now
            if not self.folder.is_in_progress():
                self.state = INTERRUPTED
        for cell in self.cells.values():
            cell.read_new_lines()

    def running_cells(self) -> Iterator[WatchedCell]:
        """Return the running cells."""
        return (cell for cell in self.cells.values() if not cell.is_finished)

    def shown_cells(self) -> list[WatchedCell]:
        """Return the cells with counters to show: the running ones, else the last."""
        counted = [cell for cell in self.cells.values() if cell.rates.classes or cell.rates.interfaces]
        return [cell for cell in counted if not cell.is_finished] or counted[-1:]

    def _take(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "begin":
                self._begin_cell(event)
            case "cell":
                self._add_cell(str(event["name"]), str(event["folder"]))
            case "step":
                self._step(event)
            case "done":
                self._finish_cell(str(event["name"]), bool(event["valid"]), tuple(map(str, event["reasons"])))
            case "note":
                self.notes.append(str(event["text"]))
            case "figures":
                self.figures = [_comparison_row(row) for row in event["rows"]]
            case "end":
                self.state = str(event["how"])
                self.doing.clear()
                if self.state == FINISHED:
                    self.figures = self._read_comparison() or self.figures

    def _read_comparison(self) -> list[Mapping[str, Any]]:
        """Return the comparison of a finished run; empty if it cannot be read."""
        try:
            rows = json.loads(read_text(self.folder.path / "comparison.json", MAX_COMPARISON_BYTES))
            return [_comparison_row(row) for row in rows if row["measured"] is not None]
        except (QoslabError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
            return []

    def _begin_cell(self, event: Mapping[str, Any]) -> None:
        if event["format"] != FORMAT:
            raise UserError(
                f"{self._tail.path}: found format {event['format']!r}, expected {FORMAT}",
                hint="another version of qoslab wrote this run; watch it with that version",
            )
        self.title, self.lab = str(event["title"]), str(event["lab"])
        self.planned, self.before = _count(event["cells"]), _count(event["done"])
        self.state = RUNNING
        self.finished.clear()
        self.invalid.clear()
        self.doing.clear()
        self.cells.clear()

    def _add_cell(self, name: str, folder: str) -> None:
        path = self.folder.path / folder
        if not path.resolve().is_relative_to(self.folder.path.resolve()):
            raise ValueError(folder)
        self.finished.discard(name)
        self.cells[name] = WatchedCell(name, path)

    def _step(self, event: Mapping[str, Any]) -> None:
        name, seconds = str(event["name"]), event["seconds"]
        if event["step"]:
            length = None if seconds is None else _check_number(seconds)
            self.doing[name] = Activity(str(event["step"]), str(event["time"]), length)
        else:
            self.doing.pop(name, None)

    def _finish_cell(self, name: str, valid: bool, reasons: tuple[str, ...]) -> None:
        self.doing.pop(name, None)
        self.finished.add(name)
        self.invalid.pop(name, None)
        if not valid:
            self.invalid[name] = reasons
        if name in self.cells:
            self.cells[name].is_finished = True
        over = [each for each, cell in self.cells.items() if cell.is_finished]
        for each in over[:-MAX_CELLS]:
            del self.cells[each]


def _count(value: Any) -> int:
    """Return a count. Raise `TypeError` if the value is none."""
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def _check_number(value: Any) -> float:
    """Return a number. Raise `TypeError` or `ValueError` if a page cannot show it."""
    if not math.isfinite(number := float(value)):
        raise ValueError(value)
    return number


def _comparison_row(row: Any) -> dict[str, Any]:
    """Return a row of the comparison; errors as above."""
    if not isinstance(row, dict):
        raise TypeError(row)
    found = {name: row.get(name) for name in FIGURES_SO_FAR}
    return found | {"measured": None if found["measured"] is None else _check_number(found["measured"])}
