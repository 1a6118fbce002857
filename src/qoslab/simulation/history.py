"""What a simulated router has said of itself from its start on: the samples from which show commands are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qoslab.model.experiment import Trigger
from qoslab.model.moments import counted

if TYPE_CHECKING:
    from qoslab import formats


@dataclass(frozen=True)
class History:
    """Samples of a router in order, the first at its start; shows are of the last."""

    samples: Sequence[formats.Counters]
    ip_sla: Sequence[formats.IpSlaReport] = ()
    """At the same moments; empty where the router has no IP SLA."""
    process_busy_ns: Sequence[int] = ()
    """How long process level had worked by then; empty where it is not modelled."""

    def until(self, virtual_ns: int) -> History:
        """What there was at a moment: the samples up to it, the first at least."""
        origin = self.samples[0]["time_ns"]
        count = max(1, sum(sample["time_ns"] - origin <= virtual_ns for sample in self.samples))
        return History(self.samples[:count], self.ip_sla[:count], self.process_busy_ns[:count])

    def came(self, trigger: Trigger, end_ns: int) -> History | str:
        """What there was at the moment of a trigger, in a simulation of that length; why it never came, in words.

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
