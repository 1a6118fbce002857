"""Processor time of a lab's processes, read from /proc."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

PERIOD_S = 0.5
"""Sampling interval of a lab's processes, in seconds; time of a process after its last sample is missed."""

_TICKS = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12
"""Fields of /proc/PID/stat after the command's name: utime, stime, in ticks."""


class CpuMeter:
    """Meter of the total processor time of a lab's processes while the block runs.

    Work of the kernel for their packets outside their own system calls (interrupts) is in no process's account; the
    scheduler therefore checks the whole machine as well.
    """

    def __init__(self, supervisor: int) -> None:
        """`supervisor` is the lab's supervisor, the first process of its PID namespace."""
        self._supervisor = supervisor
        self._space = _address_space(supervisor)
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cpu", daemon=True)

    @property
    def seconds(self) -> float:
        """Return the processor time between the start and the end of the block."""
        return sum(last - self._first[pid] for pid, last in self._last.items()) / _TICKS

    def __enter__(self) -> Self:
        self._sample(first=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S):
            self._sample()

    def _sample(self, *, first: bool = False) -> None:
        for pid in self._process_ids():
            used = _used_ticks(pid)
            if used is not None:
                # A process that starts later has used no time before.
                self._first.setdefault(pid, used if first else 0)
                self._last[pid] = used

    def _process_ids(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (
                int(entry.name) in self._last or _address_space(int(entry.name), "pid") == self._space
            ):
                found.append(int(entry.name))
        return found


def _address_space(pid: int, kind: str = "pid_for_children") -> str | None:
    try:
        return str(Path(f"/proc/{pid}/ns/{kind}").readlink())
    except OSError:
        return None


def _used_ticks(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[_USER]) + int(fields[_SYSTEM])
