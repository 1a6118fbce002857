"""Progress of a run on standard error: arm, step, time left."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from qoslab.system.printing import printable

COUNTDOWN_CELLS = 12
"""Number of cells above which a run reports the remaining cells after each cell, and no single steps."""

RUN = "run"
"""Owner of steps that belong to no single cell or lab."""


def _format_minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class _TimeLeft(ProgressColumn):
    """Remaining time of the estimate; an expired estimate is reported as such instead of counting below zero."""

    def render(self, task: Task) -> Text:
        if task.finished:
            return Text("")
        if task.total is None:
            return Text("time left unknown", style="dim")
        rest = task.total - (task.elapsed or 0.0)
        return Text(f"about {_format_minutes(rest)} left" if rest >= 0.5 else "longer than estimated", style="dim")


class RunProgress:
    """Progress line of the run, or plain lines if standard error is not a terminal."""

    def __init__(self, title: str, cells: int, estimate_s: float | None, *, quiet: bool = False) -> None:
        """`estimate_s` is None if the duration is unknown until a cell is done; `quiet` suppresses all output."""
        self._console = Console(file=sys.stderr, quiet=quiet)
        self._lock = threading.Lock()
        self._steps: dict[str, str] = {}
        self._done: set[str] = set()
        self._total, self._before = cells, 0
        self._began = time.monotonic()
        self._live: Progress | None = None
        self._ticker: threading.Thread | None = None
        self._stop = threading.Event()
        if self._console.is_terminal and not quiet:
            self._live = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                _TimeLeft(),
                console=self._console,
                transient=True,
            )
            self._task = self._live.add_task(
                printable(title), total=None if estimate_s is None else max(estimate_s, 1.0)
            )
        self._title = title

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self._ticker = threading.Thread(target=self._refresh, daemon=True, name="progress")
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._live is not None:
            self._live.stop()

    def _refresh(self) -> None:
        assert self._live is not None
        started = time.monotonic()
        while not self._stop.wait(0.25):
            total = self._live.tasks[0].total
            if total is not None:
                self._live.update(self._task, completed=min(time.monotonic() - started, total * 0.99))

    def __call__(self, cell: str, step: str, seconds: float | None = None) -> None:
        """Announce that `cell` now does `step`; an empty step means that it is over."""
        with self._lock:
            if not step:
                self._steps.pop(cell, None)
                return
            self._steps[cell] = step
            length = f" ({seconds:.0f} s)" if seconds is not None and seconds >= 1 else ""
            if self._live is not None:
                counted = f"{self._before + len(self._done)}/{self._total} cells"
                self._live.update(
                    self._task, description=printable(f"{self._title} [{counted}] {self._running_text(length)}")
                )
            elif self._total <= COUNTDOWN_CELLS or cell == RUN:
                self.note(f"{cell}: {step}{length}")

    def _running_text(self, length: str) -> str:
        if self._total <= COUNTDOWN_CELLS or RUN in self._steps:
            return ", ".join(f"{name}: {what}" for name, what in self._steps.items()) + length
        return f"{len(self._steps)} in parallel"

    def expect(self, cells: int, done: int) -> None:
        """Set the number of cells, and the number of cells that need not be run."""
        with self._lock:
            self._total, self._before = cells, done
            self._began = time.monotonic()

    def cell_done(self, cell: str, *, counts: bool = True) -> None:
        """Count `cell` as finished, unless it is to be tried again."""
        with self._lock:
            self._steps.pop(cell, None)
            if not counts:
                return
            self._done.add(cell)
            measured, left = len(self._done), self._total - self._before - len(self._done)
            elapsed = time.monotonic() - self._began
            # The mean of the cells so far shows more than the estimate before the first.
            rest = elapsed / measured * left
            if self._live is not None:
                self._live.update(self._task, total=(self._live.tasks[0].elapsed or 0.0) + max(rest, 1.0))
            elif self._total > 1:
                self.note(
                    f"{self._before + measured} of {self._total} cells, about {_format_minutes(rest)} left: {cell}"
                )

    def note(self, text: str) -> None:
        """Print a line above the progress."""
        self._console.print(Text(printable(text)), highlight=False, soft_wrap=True)
