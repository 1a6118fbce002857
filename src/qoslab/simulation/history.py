"""What a simulated router has said of itself from its start on: the samples from which show commands are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
