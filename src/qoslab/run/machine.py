"""Load of the machine, from /proc."""

from __future__ import annotations

from pathlib import Path

from qoslab.system.priority import processor_count


class ProcessorUse:
    """Load of all processors together between two samples."""

    def __init__(self) -> None:
        self.processors = processor_count()
        self._before = _tick_totals()

    def busy_share(self) -> float:
        """Return the busy share of the processors since the last call; 0 if no time has passed.

        Work below ordinary priority (Ansible, the report) yields to all other work and does not count.
        """
        idle, total = _tick_totals()
        before_idle, before_total = self._before
        self._before = (idle, total)
        return 1.0 - (idle - before_idle) / (total - before_total) if total > before_total else 0.0


def _tick_totals() -> tuple[int, int]:
    """Return the ticks since the start that were free for ordinary priority, and all ticks; 0 if not counted."""
    try:
        counted = Path("/proc/stat").read_text(encoding="utf-8")
    except FileNotFoundError:  # Not Linux: only simulations run there.
        return 0, 0
    ticks = [int(word) for word in counted.splitlines()[0].split()[1:9]]
    _, nice, _, idle, waiting_for_disks, *_ = ticks
    return nice + idle + waiting_for_disks, sum(ticks)
