"""Check of clocks during a cell: steps, suspension, and offsets of the hosts' clocks from this machine's."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from qoslab.results import ClockRecord, HostClockRecord
from qoslab.run.protocols import ClockReading, RunningLab
from qoslab.run.threads import run_parallel

READINGS = 20
"""Number of readings; the fastest counts, since the time between reading two clocks adds to their difference."""


@dataclass(frozen=True)
class MachineClocks:
    """Offsets of other clocks from CLOCK_MONOTONIC (which neither steps nor counts sleep), in nanoseconds."""

    wall_ns: int
    boot_ns: int

    @classmethod
    def read(cls) -> Self:
        """Read the current offsets."""
        return cls(_clock_offset(time.CLOCK_REALTIME), _clock_offset(time.CLOCK_BOOTTIME))

    def changes_until_now(self) -> ClockRecord:
        """Return the changes from then until now."""
        return self.changes_until(self.read())

    def changes_until(self, then: MachineClocks) -> ClockRecord:
        """Return the changes until then."""
        # Sleep advances the wall clock too: that is not a step.
        asleep = then.boot_ns - self.boot_ns
        return ClockRecord(stepped_ns=then.wall_ns - self.wall_ns - asleep, asleep_ns=asleep)


class HostClocks:
    """Clocks of the hosts with their own clocks, from now on."""

    def __init__(self, lab: RunningLab, hosts: Iterable[str]) -> None:
        self._lab = lab
        self._before = {host: look for host, look in self._read_clocks(hosts).items() if look is not None}

    def changes_until_now(self) -> dict[str, HostClockRecord]:
        """Return the changes since the start."""
        after = self._read_clocks(self._before)
        return {host: _record(before, after[host]) for host, before in self._before.items()}

    def _read_clocks(self, hosts: Iterable[str]) -> dict[str, ClockReading | None]:
        """Read the clocks of all hosts in parallel, because a remote reading is slow."""
        found, errors = run_parallel({name: self._lab.host(name).read_clock for name in hosts})
        if errors:
            raise errors[0]
        return found


def _record(before: ClockReading, after: ClockReading | None) -> HostClockRecord:
    assert after is not None
    own, then = (MachineClocks(look.wall_offset_ns, look.boot_offset_ns) for look in (before, after))
    return HostClockRecord(
        looked_ns=(before.at_ns, after.at_ns),
        ahead_ns=(before.offset_ns, after.offset_ns),
        error_ns=(before.error_ns, after.error_ns),
        own=own.changes_until(then),
    )


def _clock_offset(clock: int) -> int:
    found = []
    for _ in range(READINGS):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        read = time.clock_gettime_ns(clock)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        found.append((after - before, read - (before + after) // 2))
    return min(found)[1]
