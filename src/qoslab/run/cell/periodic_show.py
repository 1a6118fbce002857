"""Periodic counter readings of routers by show commands while a cell runs, with their times.

Counters are not cleared: the differences between readings count. The first reading is taken before the traffic, the
last after it. In between, there is a reading at each end of the window for rates, and on both sides of each instant
with an expected value.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self

from qoslab.errors import QoslabError
from qoslab.model.experiment import Topology
from qoslab.model.instants import WINDOW_START, MeasurementDemand
from qoslab.model.units import Duration
from qoslab.platforms import is_switch
from qoslab.results import Cell, PollingRecord
from qoslab.run.devices.collector import RouterAnswer
from qoslab.run.threads import start_thread

LOAD = "show processes cpu | include CPU utilization"
"""Show commands for a router's own load, in one line."""
READING_MARGIN_S = 0.5
"""Distance in seconds of the readings before and after an instant; they must be close (`analysis.at_instant`)."""
SELDOM_S = 10.0
"""Default interval of a router's readings without a setting in the inventory."""
OFTEN_S = 2.0
"""Default interval if a value is expected at an instant that is not known beforehand.

The readings around it are then close enough if none takes longer than half a second (`analysis.at_instant`).
"""
ASIC_DROPS_COMMAND = "show platform port-asic stats drop"
INTERRUPTED_S = 2.0
"""Time for unfinished readings after Ctrl-C."""
_BUSY = re.compile(r"CPU utilization for five seconds: *(\d+)%")


class Shows(Protocol):
    """Functions for reading the counters of routers."""

    def show(self, device: str, command: str) -> RouterAnswer:
        """Run a show command without parsing its output."""

    def parse(self, device: str, command: str, text: str) -> RouterAnswer:
        """Parse `text`, the answer of the router to `command`."""


def reading_commands(topology: Topology, router: str) -> tuple[str, ...]:
    """Return the show commands of one reading, in order: classes, then interfaces and queues, then the load."""
    ends = [near.interface for _, near, _ in topology.node_links(router)]
    commands = ["show policy-map interface", *(f"show interfaces {name}" for name in ends)]
    if is_switch(topology.nodes[router]):
        commands += [f"show mls qos interface {name} statistics" for name in ends]
        commands += [f"{ASIC_DROPS_COMMAND} {name}" for name in ends]
    else:
        commands += [f"show queue {name}" for name in ends]
    return (*commands, LOAD)


def reading_interval_s(stated: Duration | None, demand: MeasurementDemand) -> float:
    """Return the interval of a router's readings, in seconds: from its inventory, else from the demand."""
    if stated is not None:
        return stated.seconds
    return OFTEN_S if demand.needs_counter_triggers else SELDOM_S


def reading_times(
    length_s: float, every_s: float, moments_s: Iterable[float] = (), traffic_s: float = 0.0
) -> list[float]:
    """Return the times of readings between the first and the last, in seconds of the traffic time.

    Rates are counted until `length_s`, which has a reading; if flows last longer, readings continue until `traffic_s`.
    There is one reading shortly before and one shortly after each of the instants.
    """
    if not every_s:
        return []
    window = length_s * (1 - WINDOW_START)
    period = window / math.ceil(window / every_s)
    # A reading at the start would be the first one, which is taken before it.
    before = math.ceil(length_s * WINDOW_START / period - 1e-6) - 1
    first = length_s * WINDOW_START - before * period
    times = [first + number * period for number in range(1 + before + round(window / period))]
    end_s = max(length_s, traffic_s)
    times += [length_s + number * period for number in range(1, math.ceil((end_s - length_s) / period - 1e-6))]
    for due in (moment + side for moment in moments_s for side in (-READING_MARGIN_S, READING_MARGIN_S)):
        # Another reading at the same distance is sufficient.
        if 0 < due < end_s and all(abs(each - due) >= READING_MARGIN_S / 2 for each in times):
            times.append(due)
    return sorted(times)


@dataclass
class _RouterReadings:
    """Readings of one router."""

    commands: Sequence[str]
    """Commands that the router answers."""
    answers: list[tuple[str, RouterAnswer]] = field(default_factory=list)
    first_took_s: float = 0.0
    """Latest duration of the first answered command."""
    rounds: list[float] = field(default_factory=list)
    """Duration of each reading, in seconds."""
    busy_percent: list[int] = field(default_factory=list)


class ShowSampler:
    """Counter readings of routers with only a command line; each router in its own thread.

    A context manager: the first reading is in progress when the block begins, and the last when it has ended. Call
    `ready` before the traffic, `start` with it, and `keep` after the block.
    """

    def __init__(
        self,
        shows: Shows,
        topology: Topology,
        every: Mapping[str, Duration | None],
        cell: Cell,
        demand: MeasurementDemand,
        *,
        length_s: float,
        traffic_s: float,
    ) -> None:
        self._shows = shows
        self._cell = cell
        self._every_s = {router: reading_interval_s(stated, demand) for router, stated in every.items()}
        self._times = {
            router: reading_times(length_s, period, demand.times_s, traffic_s)
            for router, period in self._every_s.items()
        }
        self._taken = {router: _RouterReadings(reading_commands(topology, router)) for router in every}
        self._stop = threading.Event()
        self._under_way: list[Future[None]] = []
        """Current reading of each router: the first, one during the traffic, or the last."""
        self.error: QoslabError | None = None
        """Reason for an early end of the readings, if any."""

    def __enter__(self) -> Self:
        self._begin_reading()
        return self

    def _begin_reading(self) -> None:
        self._under_way = [start_thread(partial(self._read, router)) for router in self._taken]

    def ready(self) -> None:
        """Wait for the first readings, which must precede the traffic. Raise `QoslabError` if one failed."""
        for reading in self._under_way:
            reading.result()

    def _choose(self, router: str) -> None:
        """Choose the commands: not unanswered ones, nor ASIC counters on a switch with drop counters of queues."""
        taken = self._taken[router]
        parsed = {command: self._shows.parse(router, command, each.raw).parsed for command, each in taken.answers}
        useful = {command for command, found in parsed.items() if found}
        useful |= {LOAD} if taken.busy_percent else set()
        if any("'dropped'" in repr(found) for command, found in parsed.items() if "mls qos" in command):
            useful = {command for command in useful if not command.startswith(ASIC_DROPS_COMMAND)}
        taken.answers = [(command, replace(each, parsed=parsed[command])) for command, each in taken.answers]
        taken.answers = [each for each in taken.answers if each[0] in useful]
        taken.commands = [command for command in taken.commands if command in useful]

    def start(self, zero: float) -> None:
        """Set the start time of the traffic (`time.monotonic`)."""
        self._under_way = [start_thread(partial(self._run, router, zero)) for router in self._taken]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        # Ctrl-C ends the run: do not wait for a router that does not answer.
        interrupted = kind is not None and not issubclass(kind, Exception)
        wait(self._under_way, INTERRUPTED_S if interrupted else None)
        if kind is None and self.error is None:
            # Errors of qoslab itself, and not of a router, are raised.
            self.ready()
            self._begin_reading()
        elif kind is not None:
            # The cell ended early: the raw readings stay for people.
            self._write(parse=False)

    def save_readings(self) -> dict[str, PollingRecord]:
        """Parse and write the readings, after the last ones are complete; return the times that they took."""
        for reading in self._under_way:
            with self._raise_failure():
                reading.result()
        self._write(parse=True)
        return {router: self._record(router) for router in self._taken}

    @contextlib.contextmanager
    def _raise_failure(self) -> Iterator[None]:
        try:
            yield
        except QoslabError as error:
            self.error = error

    def _run(self, router: str, zero: float) -> None:
        with self._raise_failure():
            self._choose(router)
        if self.error is not None:
            return
        for due in self._times[router]:
            # The last counters of classes in the window must be complete at the end of the traffic.
            margin = self._taken[router].first_took_s if due == self._times[router][-1] else 0.0
            if self._stop.wait(max(0.0, zero + due - margin - time.monotonic())):
                return
            with self._raise_failure():
                self._read(router)
            if self.error is not None:
                return

    def _read(self, router: str) -> None:
        taken = self._taken[router]
        started = time.monotonic()
        for command in taken.commands:
            asked = time.monotonic()
            answer = self._shows.show(router, command)
            if command == taken.commands[0]:
                taken.first_took_s = time.monotonic() - asked
            if command == LOAD:
                busy = _BUSY.search(answer.raw)
                taken.busy_percent += [int(busy[1])] if busy else []
            elif not answer.reason:
                taken.answers.append((command, answer))
                self._cell.append_reading(router, {**_requested_output(command, answer), "parsed": None})
        taken.rounds.append(time.monotonic() - started)

    def _write(self, *, parse: bool) -> None:
        for router, taken in self._taken.items():
            found = []
            for command, answer in taken.answers:
                parsed_data = {"unparsed": "the cell was interrupted"}
                if parse:
                    # The readings before the traffic were parsed then.
                    is_read = answer.parsed is not None
                    parsed_data = (answer if is_read else self._shows.parse(router, command, answer.raw)).data
                found.append({**_requested_output(command, answer), "parsed": parsed_data})
            self._cell.write_readings(router, found)
        self._cell.remove_incoming()

    def _record(self, router: str) -> PollingRecord:
        taken = self._taken[router]
        return PollingRecord(
            every_s=self._every_s[router],
            commands=tuple(taken.commands),
            readings=len(taken.rounds),
            took_mean_s=sum(taken.rounds) / len(taken.rounds),
            took_max_s=max(taken.rounds),
            busy_max_percent=max(taken.busy_percent, default=None),
        )


def _requested_output(command: str, answer: RouterAnswer) -> dict[str, Any]:
    return {"command": command, "before_ns": answer.before_ns, "after_ns": answer.after_ns, "raw": answer.raw}
