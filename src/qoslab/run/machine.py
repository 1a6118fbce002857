"""Load of the machine, from /proc."""

from __future__ import annotations

from pathlib import Path

from qoslab.system.priority import processors


class Machine:
    """Load of all processors together between two samples."""

    def __init__(self) -> None:
        self.processors = processors()
        self._before = _totals()

    def busy(self) -> float:
        """Share of the time since the last look that the processors worked; 0 if none has passed.

        Work of less than ordinary priority (Ansible, the report) gives way to all else, and does not count.
        """
        idle, total = _totals()
        before_idle, before_total = self._before
        self._before = (idle, total)
        return 1.0 - (idle - before_idle) / (total - before_total) if total > before_total else 0.0


def _totals() -> tuple[int, int]:
    """Ticks since the start that were free for work of ordinary priority, and all ticks; 0 if none are counted."""
    try:
        counted = Path("/proc/stat").read_text(encoding="utf-8")
    except FileNotFoundError:  # no Linux, where simulations alone run
        return 0, 0
    ticks = [int(word) for word in counted.splitlines()[0].split()[1:9]]
    _, nice, _, idle, waiting_for_disks, *_ = ticks
    return nice + idle + waiting_for_disks, sum(ticks)
