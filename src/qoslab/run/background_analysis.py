"""Background work on finished cells while others run, in a separate thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence

from qoslab.results import Cell
from qoslab.system.priority import step_last

POLL_S = 0.2

MetricRows = Sequence[Mapping[str, object]]
"""Values of the run so far; empty if nothing is new."""
Begin = Callable[[], Callable[[Cell], MetricRows]]
"""Function that prepares, which may take seconds, and returns the function to call with each cell."""


class BackgroundAnalysis:
    """Thread for background work; its methods may be called from any thread, `end` from the main one."""

    def __init__(self, begin: Begin | None, show: Callable[[MetricRows], None], *, punctual: bool) -> None:
        """`show` takes the values; `punctual`: use only idle processor time, since the run must be punctual."""
        self._begin, self._show, self._punctual = begin, show, punctual
        self._cells: queue.SimpleQueue[Cell | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started = False
        self._stop = threading.Event()
        self._over = threading.Event()

    def start(self) -> None:
        """Start, unless that was done before."""
        with self._lock:
            if self._begin is None or self._started:
                return
            self._started = True
            threading.Thread(target=self._analyse_cells, args=(self._begin,), name="analysis", daemon=True).start()

    def take(self, cell: Cell) -> None:
        """Analyse a cell that has ended and is valid."""
        self._cells.put(cell)

    def end(self) -> None:
        """Wait for the current work; skip work that has not begun."""
        self._stop.set()
        self._cells.put(None)
        # An interrupt in `Thread.join` makes Python 3.11 consider the thread ended; waiting for events is safe.
        while self._started and not self._over.wait(POLL_S):
            pass

    def _analyse_cells(self, begin: Begin) -> None:
        try:
            if self._punctual:
                step_last()
            with_each = begin()
            while (cell := self._cells.get()) is not None and not self._stop.is_set():
                self._show(with_each(cell))
        except Exception:
            # This is only ahead of time: the same work at the end meets the same error and can report it.
            return
        finally:
            self._over.set()
