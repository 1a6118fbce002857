"""Samples of a simulated router from its start on, as the source of show commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qoslab.model.experiment import Trigger
from qoslab.model.instants import counted

if TYPE_CHECKING:
    from qoslab.system import program_formats


@dataclass(frozen=True)
class History:
    """Samples of a router in order, the first at its start; shows are of the last."""

    samples: Sequence[program_formats.Counters]
    ip_sla: Sequence[program_formats.IpSlaReport] = ()
    """IP SLA state at the same times; empty without IP SLA."""
    process_busy_ns: Sequence[int] = ()
    """Busy time of process level so far; empty if it is not modelled."""

    def until(self, virtual_ns: int) -> History:
        """Return the history up to a time, at least the first sample."""
        origin = self.samples[0]["time_ns"]
        count = max(1, sum(sample["time_ns"] - origin <= virtual_ns for sample in self.samples))
        return History(self.samples[:count], self.ip_sla[:count], self.process_busy_ns[:count])

    def came(self, trigger: Trigger, end_ns: int) -> History | str:
        """Return the history at the time of a trigger; the reason in words if it was never reached.

        Of a time it is the last sample up to it, of a counter the first by which it had come to the value.
        """
        at = trigger.at
        if trigger.time is not None:
            if trigger.time.ns > end_ns:
                return f"the simulation ended after {end_ns / 1e9:.1f} s"
            return self.until(trigger.time.ns)
        for sample in self.samples:
            if counted(trigger, sample) >= at.value:
                return self.until(sample["time_ns"] - self.samples[0]["time_ns"])
        return f"{counted(trigger, self.samples[-1])} B at the end"
