"""Number of cells with traffic at the same time, learnt from their load and from the lateness of routers."""

from __future__ import annotations

import math
import statistics
from datetime import UTC, datetime

from qoslab.model.experiment import Experiment
from qoslab.model.instants import traffic_time
from qoslab.model.steps import TRAFFIC
from qoslab.results import CellRecord
from qoslab.results.records import BEHIND_SHARE, SENDER_LATE_MS
from qoslab.run.machine import ProcessorUse
from qoslab.system.priority import processor_count

USABLE = 0.8
"""Share of all processors that cells may keep busy: routers must be punctual, and Ansible needs some time."""
UNPROVEN = 0.5
"""The same before any cell has shown how punctual it was: cells that start too early waste a whole cell time each."""
MAX_LABS_PER_PROCESSOR = 4
"""Greatest number of labs with traffic per processor, however little their cells use."""
FIRST = 2
"""Number of labs with traffic before anything is learnt, if there are as many processors."""
MAX_SPARE_LABS = 4
"""Greatest number of labs prepared while others have traffic: each takes some hundred megabytes for Ansible."""
LATENESS_WARNING_SHARE = 0.5
"""Share of the allowed lateness above which no lab is added."""
REDUCTION_SHARE = 0.25
"""Share of the labs that are removed if a router or a sender was late: the cause affected the others too."""
PATIENCE = 8
"""Number of punctual cells per lab, after a router or a sender was late, before another lab is tried."""
REMEMBERED_CELLS = 16
"""Number of latest cells whose processor time and pace count."""


def expected_labs(fixed: int | None, cells: int) -> int:
    """Return the expected number of labs with traffic, for an estimate; the learnt number may be smaller."""
    return min(max(cells, 1), fixed if fixed is not None else MAX_LABS_PER_PROCESSOR * processor_count())


def _is_near_lateness_limit(record: CellRecord, traffic_s: float) -> bool:
    """Return whether the lateness of routers or senders was near its limit."""
    late = (sender.late_p99_ms or 0.0 for sender in record.senders.values())
    behind = (health.behind_ns / 1e9 for health in record.health.values())
    return any(each > LATENESS_WARNING_SHARE * SENDER_LATE_MS for each in late) or any(
        each > LATENESS_WARNING_SHARE * BEHIND_SHARE * traffic_s for each in behind
    )


def _traffic_start(record: CellRecord) -> datetime:
    return next((step.started for step in record.steps if step.name == TRAFFIC), datetime.max.replace(tzinfo=UTC))


class LabCount:
    """Number of labs in parallel. Not thread-safe."""

    def __init__(
        self, fixed: int | None, cells: int, machine: ProcessorUse | None = None, *, spare: bool = True
    ) -> None:
        """`fixed` is the number that the user chose; None: learn it.

        `spare`: if cells wait for anything in addition to their turn, so that labs beyond those with traffic are
        useful.
        """
        self._machine = machine or ProcessorUse()
        self._fixed = fixed
        cells = max(cells, 1)
        self.most = min(cells, fixed if fixed is not None else MAX_LABS_PER_PROCESSOR * self._machine.processors)
        """Upper limit of `labs`."""
        self._most_spare = 0 if fixed == 1 or not spare else min(MAX_SPARE_LABS, cells - self.most)
        self.labs = min(self.most, fixed if fixed is not None else min(FIRST, self._machine.processors))
        """Number of labs that may have traffic now."""
        self._ceiling = self.most
        self._load: list[float] = []
        self._punctual = 0
        self._reduced = datetime.min.replace(tzinfo=UTC)
        self._added = datetime.min.replace(tzinfo=UTC)
        self._overheads: list[float] = []
        self._traffic_s = 0.0

    @property
    def is_learnt(self) -> bool:
        """True if the number is learnt and not chosen by the user."""
        return self._fixed is None

    @property
    def workers(self) -> int:
        """Greatest number of labs that may exist."""
        return self.most + self._most_spare

    @property
    def spare_labs(self) -> int:
        """Number of labs, beyond those with traffic, for the work before and after traffic; 0 with one fixed lab.

        It is large enough that another cell is ready when one ends: a lab has traffic for `t` seconds and other work
        for `b` seconds, so `labs` cells with traffic need `labs * (t + b) / t` labs.
        """
        if not self._overheads or not self._traffic_s:
            return min(1, self._most_spare)
        needed = self.labs * statistics.median(self._overheads) / self._traffic_s
        return min(self._most_spare, max(1, math.ceil(needed)))

    @property
    def max_preparing(self) -> int:
        """Number of cells that may be prepared at the same time while others have traffic: one for two processors.

        Ansible keeps a processor busy for each. Several cells that start together, for example after cells that ended
        together, delay the senders until all of them are prepared.
        """
        return self.workers if self._fixed is not None else max(1, self._machine.processors // 2)

    def record_pace(self, overhead_s: float) -> None:
        """Record the time that a cell took before and after its traffic, in seconds."""
        self._overheads = [*self._overheads[1 - REMEMBERED_CELLS :], overhead_s]

    def learn(self, record: CellRecord, experiment: Experiment) -> str:
        """Learn from the record of a cell; return a description of the change for people, empty if nothing changed."""
        seconds = traffic_time(experiment, experiment.arms[0]).seconds
        self._traffic_s = seconds
        if self._fixed is not None:
            return ""
        busy = self._machine.busy_share()
        if record.cpu_s is not None and seconds:
            # The most expensive of the latest cells counts: the next one may be similar.
            self._load = [*self._load[1 - REMEMBERED_CELLS :], record.cpu_s / seconds]
        if record.late:
            self._punctual = 0
            if _traffic_start(record) < self._reduced:
                # It ran in parallel with cells whose labs are already gone.
                return ""
            self._reduced = datetime.now(UTC)
            self._ceiling = max(1, self.labs - math.ceil(self.labs * REDUCTION_SHARE))
            return self._set(self._ceiling, "a router or a sender was late")
        if _is_near_lateness_limit(record, seconds):
            self._punctual = 0
            self._ceiling = min(self._ceiling, self.labs)
            return ""
        self._punctual += 1
        if self._punctual >= PATIENCE * self.labs and self._ceiling < self.most:
            self._punctual = 0
            self._ceiling += 1
        if not self._load:
            return ""
        affordable = math.floor(USABLE * self._machine.processors / max(max(self._load), 0.01))
        # The kernel's own work for packets counts for the machine, but not for a cell.
        if busy > USABLE:
            affordable = min(affordable, self.labs)
        # Add one at a time, after a cell has run with the last one and shown its effect on the others.
        more = self.labs + (_traffic_start(record) >= self._added)
        wanted = max(1, min(affordable, self._ceiling, self.most, more))
        return self._set(wanted, f"a cell keeps {max(self._load):.2f} of {self._machine.processors} processors busy")

    def add_lab_on_idle_machine(self) -> str:
        """Add a lab while long cells run, if the machine as a whole has time for another such cell."""
        if self._fixed is not None or self.labs >= min(self._ceiling, self.most):
            return ""
        busy = self._machine.busy_share()
        if busy * (self.labs + 1) / self.labs > (USABLE if self._load else UNPROVEN):
            return ""
        return self._set(self.labs + 1, f"the machine is busy for {busy:.0%} of the time")

    def _set(self, wanted: int, why: str) -> str:
        if wanted == self.labs:
            return ""
        if wanted > self.labs:
            self._added = datetime.now(UTC)
        change = f"{self.labs} to {wanted} labs in parallel: {why}"
        self.labs = wanted
        return change
