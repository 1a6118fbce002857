"""Whether the machine's clocks ran on within a cell: nobody set them, and the machine was awake."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

from qoslab.results import ClockRecord

READINGS = 20
"""Of which the one counts that took least: what comes between two clocks' readings is part of their difference."""


@dataclass(frozen=True)
class Clocks:
    """How far the other clocks are from CLOCK_MONOTONIC, which neither steps nor counts sleep; in nanoseconds."""

    wall_ns: int
    boot_ns: int

    @classmethod
    def read(cls) -> Self:
        """As they are now."""
        return cls(_ahead(time.CLOCK_REALTIME), _ahead(time.CLOCK_BOOTTIME))

    def until_now(self) -> ClockRecord:
        """What became of them since."""
        now = self.read()
        # Sleep moves the wall clock ahead as well: that is no step.
        asleep = now.boot_ns - self.boot_ns
        return ClockRecord(stepped_ns=now.wall_ns - self.wall_ns - asleep, asleep_ns=asleep)


def _ahead(clock: int) -> int:
    found = []
    for _ in range(READINGS):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        read = time.clock_gettime_ns(clock)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        found.append((after - before, read - (before + after) // 2))
    return min(found)[1]
