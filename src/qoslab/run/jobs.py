"""How many labs may be up at the same time: learnt from what cells use and from how punctual the routers are."""

from __future__ import annotations

import math

from qoslab.model.experiment import Experiment
from qoslab.plan import traffic_time
from qoslab.results import CellRecord
from qoslab.results.records import BEHIND_SHARE
from qoslab.run.cpu import Machine

USABLE = 0.8
"""Share of all processors that cells may keep busy: routers must be punctual, and Ansible works beside them."""
MOST_PER_PROCESSOR = 4
"""Labs for each processor at most, however little their cells use."""
NEAR = 0.5
"""Share of the lateness that is allowed from which on no lab is added."""
PATIENCE = 8
"""Punctual cells for each lab until one more is tried again after a router was late."""


class Jobs:
    """The number of labs. Not safe for threads by itself."""

    def __init__(self, fixed: int | None, cells: int, machine: Machine | None = None) -> None:
        """`fixed` is the number that the user wants; None: find out."""
        self._machine = machine or Machine()
        self._fixed = fixed
        cells = max(cells, 1)
        self.most = min(cells, fixed if fixed is not None else MOST_PER_PROCESSOR * self._machine.processors)
        """Never more than this."""
        # Without any knowledge: one for each processor, at most two.
        self.labs = min(self.most, fixed if fixed is not None else min(2, self._machine.processors))
        """May be up now."""
        self._ceiling = self.most
        self._load: list[float] = []
        self._punctual = 0

    def learn(self, record: CellRecord, experiment: Experiment) -> str:
        """Take the record of a cell into account; what changes, in words for people, or nothing."""
        if self._fixed is not None:
            return ""
        busy = self._machine.busy()
        seconds = traffic_time(experiment, experiment.arms[0]).seconds
        if record.cpu_s is not None and seconds:
            # The dearest of the last cells counts: the next may be like it.
            self._load = [*self._load[-15:], record.cpu_s / seconds]
        if record.late:
            self._punctual = 0
            self._ceiling = max(1, self.labs - 1)
            return self._set(self._ceiling, "a router was late")
        near = any(health.behind_ns / 1e9 > NEAR * BEHIND_SHARE * seconds for health in record.health.values())
        if near:
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
        # One more at a time: the start of Ansible for each keeps a processor busy for seconds.
        wanted = max(1, min(affordable, self._ceiling, self.most, self.labs + 1))
        return self._set(wanted, f"a cell keeps {max(self._load):.2f} of {self._machine.processors} processors busy")

    def _set(self, wanted: int, why: str) -> str:
        if wanted == self.labs:
            return ""
        change = f"{self.labs} to {wanted} labs side by side: {why}"
        self.labs = wanted
        return change
