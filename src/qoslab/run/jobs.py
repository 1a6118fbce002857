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
from qoslab.run.machine import Machine
from qoslab.system.priority import processors

USABLE = 0.8
"""Share of all processors that cells may keep busy: routers must be punctual, and Ansible works next to them."""
UNPROVEN = 0.5
"""The same before any cell has shown how punctual it was: those that come too soon cost as long as their cells last."""
MOST_PER_PROCESSOR = 4
"""Labs with traffic for each processor at most, however little their cells use."""
FIRST = 2
"""Labs with traffic before anything is known, if there are as many processors."""
MOST_SPARE = 4
"""Labs that are made ready while others have traffic, at most: each is some hundred megabytes of Ansible."""
NEAR = 0.5
"""Share of the lateness that is allowed from which on no lab is added."""
TAKEN_AWAY = 0.25
"""Share of the labs that are taken away if a router or a sender was late: what made it late met the others too."""
PATIENCE = 8
"""Punctual cells for each lab until one more is tried again after a router or a sender was late."""
REMEMBERED = 16
"""Cells whose processor time and pace count."""


def expected_labs(fixed: int | None, cells: int) -> int:
    """Labs with traffic that a run comes to, for an estimate beforehand: what is learnt may be less."""
    return min(max(cells, 1), fixed if fixed is not None else MOST_PER_PROCESSOR * processors())


def _near(record: CellRecord, traffic_s: float) -> bool:
    """Return whether routers or senders were nearly as late as they may be."""
    late = (sender.late_p99_ms or 0.0 for sender in record.senders.values())
    behind = (health.behind_ns / 1e9 for health in record.health.values())
    return any(each > NEAR * SENDER_LATE_MS for each in late) or any(
        each > NEAR * BEHIND_SHARE * traffic_s for each in behind
    )


def _traffic_began(record: CellRecord) -> datetime:
    return next((step.started for step in record.steps if step.name == TRAFFIC), datetime.max.replace(tzinfo=UTC))


class Jobs:
    """The number of labs. Not safe for threads by itself."""

    def __init__(self, fixed: int | None, cells: int, machine: Machine | None = None, *, spare: bool = True) -> None:
        """`fixed` is the number that the user wants; None: find out.

        `spare`: whether cells wait for anything in addition to their turn, so that labs beyond those with traffic are
        of use."""
        self._machine = machine or Machine()
        self._fixed = fixed
        cells = max(cells, 1)
        self.most = min(cells, fixed if fixed is not None else MOST_PER_PROCESSOR * self._machine.processors)
        """Never more with traffic than this."""
        self._most_spare = 0 if fixed == 1 or not spare else min(MOST_SPARE, cells - self.most)
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
    def found_out(self) -> bool:
        """True if the number is learnt, and not what the user wants."""
        return self._fixed is None

    @property
    def workers(self) -> int:
        """Labs that there may ever be."""
        return self.most + self._most_spare

    @property
    def spare(self) -> int:
        """Labs beyond those with traffic that may be busy with what comes before and after it: none with one lab fixed.

        So many that each cell that is over finds another one ready: a lab has traffic for `t` and something else to do
        for `b` seconds, so `labs` cells with traffic need `labs * (t + b) / t` labs.
        """
        if not self._overheads or not self._traffic_s:
            return min(1, self._most_spare)
        needed = self.labs * statistics.median(self._overheads) / self._traffic_s
        return min(self._most_spare, max(1, math.ceil(needed)))

    @property
    def ready_at_once(self) -> int:
        """Cells that may be made ready at the same time while others have traffic: one for two processors.

        Ansible keeps a processor busy for each, and several that begin together, as after cells that ended together,
        keep senders waiting for as long as all of them take.
        """
        return self.workers if self._fixed is not None else max(1, self._machine.processors // 2)

    def pace(self, overhead_s: float) -> None:
        """A cell was busy so long before its traffic and after it."""
        self._overheads = [*self._overheads[1 - REMEMBERED :], overhead_s]

    def learn(self, record: CellRecord, experiment: Experiment) -> str:
        """Take the record of a cell into account; what changes, in words for people, or nothing."""
        seconds = traffic_time(experiment, experiment.arms[0]).seconds
        self._traffic_s = seconds
        if self._fixed is not None:
            return ""
        busy = self._machine.busy()
        if record.cpu_s is not None and seconds:
            # The dearest of the last cells counts: the next may be like it.
            self._load = [*self._load[1 - REMEMBERED :], record.cpu_s / seconds]
        if record.late:
            self._punctual = 0
            if _traffic_began(record) < self._reduced:
                # It ran in parallel with cells whose labs are already gone.
                return ""
            self._reduced = datetime.now(UTC)
            self._ceiling = max(1, self.labs - math.ceil(self.labs * TAKEN_AWAY))
            return self._set(self._ceiling, "a router or a sender was late")
        if _near(record, seconds):
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
        # The kernel's own work for packets is in no cell's account, but in the machine's.
        if busy > USABLE:
            affordable = min(affordable, self.labs)
        # One more at a time, once a cell with traffic in parallel to the last one shows the effect on the others.
        more = self.labs + (_traffic_began(record) >= self._added)
        wanted = max(1, min(affordable, self._ceiling, self.most, more))
        return self._set(wanted, f"a cell keeps {max(self._load):.2f} of {self._machine.processors} processors busy")

    def look(self) -> str:
        """Add a lab while cells run that take long, where the machine as a whole has time for one more like them."""
        if self._fixed is not None or self.labs >= min(self._ceiling, self.most):
            return ""
        busy = self._machine.busy()
        if busy * (self.labs + 1) / self.labs > (USABLE if self._load else UNPROVEN):
            return ""
        return self._set(self.labs + 1, f"the machine is busy for {busy:.0%} of the time")

    def _set(self, wanted: int, why: str) -> str:
        if wanted == self.labs:
            return ""
        if wanted > self.labs:
            self._added = datetime.now(UTC)
        change = f"{self.labs} to {wanted} labs side by side: {why}"
        self.labs = wanted
        return change
