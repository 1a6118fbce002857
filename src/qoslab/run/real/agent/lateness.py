"""Wake-up lateness of the host, and the time that the run's programs wait for a processor.

The lateness after a sleep shows the delay of any program on the host; the kernel reports for each program how long it
was ready and did not run (`/proc/PID/task/TID/schedstat`).
"""

# pathlib and similar modules take longer to import than everything else here; some hosts are slow.
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

PERIOD_NS = 10_000_000
BUDGET_NS = 5_000_000
"""Lateness above which a wake-up counts as late, in nanoseconds, as for a data plane."""
WAKE_UPS_PER_READING = 20
"""Wake-ups between two readings of the programs; their waits after the last reading are missed."""


class LatenessWatch:
    """Thread that sleeps and wakes as long as the agent lives."""

    def __init__(self, programs: Callable[[], Iterable[tuple[str, int]]]) -> None:
        """`programs` returns names and process ids of running programs."""
        self._programs = programs
        self._lock = threading.Lock()
        self._due = time.monotonic_ns() + PERIOD_NS
        self._clear()
        threading.Thread(target=self._run, daemon=True).start()

    def _clear(self) -> None:
        self._since = time.monotonic_ns()
        self._looks = self._late = self._behind_ns = self._latest_ns = 0
        self._waited: dict[tuple[str, str], list[int]] = {}

    def _count(self) -> None:
        """Record the lateness of the wake-up that is due."""
        now = time.monotonic_ns()
        late = now - self._due
        self._latest_ns = max(self._latest_ns, late)
        if late > BUDGET_NS:
            self._late += 1
            self._behind_ns += late
            self._due = now

    def take_findings(self) -> dict[str, Any]:
        """Return the findings since the last call."""
        with self._lock:
            # The request may be served before the overdue thread.
            self._count()
            waited: dict[str, int] = {}
            for (program, _), (first, last) in self._waited.items():
                waited[program] = waited.get(program, 0) + last - first
            found = {
                "watched_ns": time.monotonic_ns() - self._since,
                "wakes": self._looks,
                "late": self._late,
                "behind_ns": self._behind_ns,
                "latest_ns": self._latest_ns,
                "waited_ns": waited,
            }
            self._clear()
        return found

    def _run(self) -> None:
        looks = 0
        while True:
            with self._lock:
                # Delays during the reading of programs count as late, too.
                self._count()
                self._due = time.monotonic_ns() + PERIOD_NS
            time.sleep(PERIOD_NS / 1e9)
            looks += 1
            with self._lock:
                self._looks += 1
                self._count()
            if looks % WAKE_UPS_PER_READING == 0:
                self._read_programs()

    def _read_programs(self) -> None:
        for program, process in list(self._programs()):
            # If a program has just ended or the kernel does not count its wait, earlier readings stay.
            with contextlib.suppress(OSError, ValueError, IndexError):
                for task in os.listdir(f"/proc/{process}/task"):
                    with open(f"/proc/{process}/task/{task}/schedstat", encoding="utf-8") as file:
                        waited = int(file.read().split()[1])
                    with self._lock:
                        self._waited.setdefault((program, task), [waited, waited])[1] = waited
