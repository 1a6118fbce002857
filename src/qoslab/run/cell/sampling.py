"""Time series of the data planes' counters while a cell runs."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Self

from qoslab.errors import QoslabError
from qoslab.model.instants import COUNTER_INTERVAL_S
from qoslab.results import Cell, Health
from qoslab.run.protocols import DataPlaneClient, RunningLab
from qoslab.system import program_formats

MAX_READING_DISTANCE_S = 0.25
"""Distance to a requested time at which the regular reading is replaced, in seconds.

Closer readings would give rates of single packets.
"""
POLL_S = 0.05
FIRST_S = 10.0
"""Longest time for the first sample, in seconds."""


def read_health(lab: RunningLab, routers: Sequence[str]) -> dict[str, Health]:
    """Return lateness and losses of each data plane since its counters were cleared."""

    async def ask() -> dict[str, Health]:
        found = {}
        for router in routers:
            async with lab.control(router) as client:
                found[router] = Health.model_validate(await client.health())
        return found

    return asyncio.run(ask())


def reset_counters(lab: RunningLab, routers: Sequence[str], kernels: Sequence[str] = ()) -> None:
    """Empty the queues of each data plane and reset its counters, including lateness and losses.

    Routers in `kernels` are configured again, which empties their queues.

    A flood leaves the queue of a slow line full, and a queue outlives the policy that filled it, so the next cell would
    begin with packets of this one.
    """

    async def ask() -> None:
        for router in routers:
            async with lab.control(router) as client:
                await _empty_queues(client)
                await client.clear()
        for router in kernels:
            async with lab.control(router) as client:
                await client.clear()

    asyncio.run(ask())


async def _empty_queues(client: DataPlaneClient) -> None:
    """If packets wait, shut down the interfaces, which drops the packets, and bring them up again."""
    found = (await client.counters())["interfaces"]
    full = [name for name, each in found.items() if each["queue"]["depth"] or each["tx_ring"]["depth"]]
    config = await client.config()
    if not full or config is None:
        return
    present = config["interfaces"]
    shut: dict[str, program_formats.InterfaceConfig] = {name: {**present[name], "enabled": False} for name in full}
    await client.configure({**config, "interfaces": {**present, **shut}})
    await client.configure(config)


def read_engine_configuration(lab: RunningLab, router: str) -> program_formats.RouterConfig | None:
    """Return the active configuration of the router's data plane."""

    async def ask() -> program_formats.RouterConfig | None:
        async with lab.control(router) as client:
            return await client.config()

    return asyncio.run(ask())


class CounterReadings:
    """Schedule of counter readings: once a second, and at requested times, which replace regular ones nearby.

    Times are of `time.monotonic`.
    """

    def __init__(self, now: float, moments_s: Iterable[float] = ()) -> None:
        self._regular = now
        self._moments_s = sorted(moments_s)
        self._zero: float | None = None

    def start(self, zero: float) -> None:
        """Set the start time of the traffic."""
        self._zero = zero

    def next_reading_time(self) -> float:
        """Return the time of the next reading."""
        moment = self._next_requested_time()
        return moment if moment < self._regular + MAX_READING_DISTANCE_S else self._regular

    def _next_requested_time(self) -> float:
        """Return the earliest pending requested time, as far as known."""
        return math.inf if self._zero is None or not self._moments_s else self._zero + self._moments_s[0]

    def record_taken(self, due: float) -> None:
        """Record that the reading for this time was taken."""
        if due == self._next_requested_time():
            self._moments_s.pop(0)
        if due > self._regular - MAX_READING_DISTANCE_S:
            self._regular += COUNTER_INTERVAL_S


class CounterSampler:
    """Thread that reads the counters of each router and saves the replies in the folder of the cell.

    A context manager: it takes the first sample before the block begins, then one each second and, after `start` has
    set the start of the traffic, at requested times, and a last one when the block ends.
    """

    def __init__(self, lab: RunningLab, routers: Sequence[str], cell: Cell, moments_s: Iterable[float] = ()) -> None:
        self._clients = {router: lab.control(router) for router in routers}
        self._cell = cell
        self._readings = CounterReadings(time.monotonic(), moments_s)
        self._stop = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counters", daemon=True)
        self.error: Exception | None = None
        """Reason for an early end of the sampling, if any."""

    def __enter__(self) -> Self:
        self._thread.start()
        # Counters grow from the first sample on; those of a user-mode kernel take a while on a busy machine.
        self._begun.wait(FIRST_S)
        return self

    def start(self, zero: float) -> None:
        """Set the start time of the traffic (`time.monotonic`)."""
        self._readings.start(zero)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._sample())
        except Exception as error:  # Reported by the cell, whose thread can handle it.
            self.error = error
        finally:
            self._begun.set()

    async def _sample(self) -> None:
        try:
            last, due = False, self._readings.next_reading_time()
            while True:
                for router, client in self._clients.items():
                    try:
                        self._cell.append_counters(router, dict(await client.counters()))
                    except QoslabError as error:
                        # A dead data plane ends the cell elsewhere; here it only ends the time series.
                        self.error = error
                        return
                self._begun.set()
                if last:
                    return
                self._readings.record_taken(due)
                while not self._stop.is_set() and (due := self._readings.next_reading_time()) > (
                    now := time.monotonic()
                ):
                    await asyncio.sleep(min(POLL_S, due - now))
                last = self._stop.is_set()
        finally:
            for client in self._clients.values():
                await client.close()
