"""Triggers of a cell, by time or by counter, and their show commands."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Self

from qoslab.model.experiment import Observation, Trigger
from qoslab.model.instants import trigger_bytes, triggers
from qoslab.run.cell.journal import CellJournal
from qoslab.run.cell.observing import Observe
from qoslab.run.devices.collector import RouterAnswer
from qoslab.run.protocols import RunningLab

MIN_READING_INTERVAL_S, MAX_READING_INTERVAL_S = 0.01, 1.0
"""Least and greatest time between two readings of a counter.

The next reading is due when half of the remaining distance is covered at the current rate, so readings are frequent
only near the trigger.
"""


@dataclass
class _TriggerWait:
    """One trigger of one router."""

    moment: Trigger
    wanted: list[Observation]
    taken: list[RouterAnswer] = field(default_factory=list)
    never: str = ""
    """Reason why the trigger did not occur."""
    error: BaseException | None = None


class TriggerThreads:
    """Context manager with a thread for each trigger of each router, waiting from `start` until the block is left."""

    def __init__(self, lab: RunningLab, data_planes: Collection[str], journal: CellJournal, observe: Observe) -> None:
        self._lab = lab
        self._data_planes = data_planes
        self._journal = journal
        self._observe = observe
        self._stop = threading.Event()
        self._zero = 0.0
        self._waits: list[_TriggerWait] = []
        for moment in triggers(journal.task.experiment):
            wanted = list(journal.observations(moment))
            for router in dict.fromkeys(each.node for each in wanted):
                self._waits.append(_TriggerWait(moment, [each for each in wanted if each.node == router]))
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def start(self, zero: float) -> None:
        """Set the start time of the traffic (`time.monotonic`)."""
        self._zero = zero
        for wait in self._waits:
            thread = threading.Thread(target=self._run, args=(wait,), name=f"observe at {wait.moment}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def keep(self) -> None:
        """Write the observations, and the missing ones; raise the error of a router that did not answer."""
        for wait in self._waits:
            if wait.error is not None:
                raise wait.error
            for each, taken in zip(wait.wanted, wait.taken, strict=False):
                self._journal.save_observation(
                    each, wait.moment, taken.raw, taken.data, (taken.before_ns, taken.after_ns)
                )
            for each in wait.wanted[len(wait.taken) :]:
                self._journal.record_unobserved(each, wait.moment, wait.never)

    def _run(self, wait: _TriggerWait) -> None:
        router = wait.wanted[0].node
        try:
            if wait.moment.time is not None:
                wait.never = self._wait_seconds(wait.moment.time.seconds)
            elif router in self._data_planes:
                wait.never = asyncio.run(self._wait_for_counter(router, wait.moment))
            else:
                wait.never = f"{router} provides no counters during the traffic; use a time as the trigger"
            if not wait.never:
                for each in wait.wanted:
                    wait.taken.append(self._observe(each.node, each.command))
        except BaseException as error:  # Passed on by `keep`, in the thread of the cell.
            wait.error = error

    def _wait_seconds(self, seconds: float) -> str:
        over = self._stop.wait(max(0.0, self._zero + seconds - time.monotonic()))
        return f"the traffic ended after {time.monotonic() - self._zero:.1f} s" if over else ""

    async def _wait_for_counter(self, router: str, moment: Trigger) -> str:
        value, before, last = moment.at.value, 0, self._zero
        async with self._lab.control(router) as client:
            while True:
                over = self._stop.is_set()
                found, now = trigger_bytes(moment, await client.counters()), time.monotonic()
                if found >= value:
                    return ""
                if over:
                    return f"{found} B at the end"
                rate = (found - before) / max(now - last, 1e-3)
                pause = (value - found) / rate / 2 if rate > 0 else MAX_READING_INTERVAL_S
                before, last = found, now
                # The event belongs to another thread, and nothing else runs in this loop.
                self._stop.wait(min(MAX_READING_INTERVAL_S, max(MIN_READING_INTERVAL_S, pause)))
