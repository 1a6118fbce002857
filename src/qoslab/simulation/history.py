"""Samples of a simulated router since its start, from which show commands are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qoslab.model.experiment import Trigger
from qoslab.model.instants import trigger_bytes
from qoslab.system import program_formats


@dataclass(frozen=True)
class SampleHistory:
    """Samples of a router in order, the first at its start; show commands use the last."""

    samples: Sequence[program_formats.Counters]
    ip_sla: Sequence[program_formats.IpSlaReport] = ()
    """IP SLA state at the same times; empty without IP SLA."""
    process_busy_ns: Sequence[int] = ()
    """Cumulative busy time of process level; empty if it is not modelled."""

    def history_until(self, virtual_ns: int) -> SampleHistory:
        """Return the history up to a time, at least the first sample."""
        origin = self.samples[0]["time_ns"]
        count = max(1, sum(sample["time_ns"] - origin <= virtual_ns for sample in self.samples))
        return SampleHistory(self.samples[:count], self.ip_sla[:count], self.process_busy_ns[:count])

    def history_until_trigger(self, trigger: Trigger, end_ns: int) -> SampleHistory | str:
        """Return the history up to a trigger; the reason in words if the trigger never occurred.

        For a time, the history ends with the last sample up to it; for a counter, with the first sample that reaches
        the value.
        """
        at = trigger.at
        if trigger.time is not None:
            if trigger.time.ns > end_ns:
                return f"the simulation ended after {end_ns / 1e9:.1f} s"
            return self.history_until(trigger.time.ns)
        for sample in self.samples:
            if trigger_bytes(trigger, sample) >= at.value:
                return self.history_until(sample["time_ns"] - self.samples[0]["time_ns"])
        return f"{trigger_bytes(trigger, self.samples[-1])} B at the end"
