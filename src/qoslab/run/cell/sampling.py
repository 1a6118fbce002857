"""Keeps the counters of the routers' data planes as a time series while a cell runs."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from qoslab.errors import QoslabError
from qoslab.model.instants import COUNTED_EVERY_S
from qoslab.results import Cell, Health
from qoslab.run.protocols import DataPlane, Lab

if TYPE_CHECKING:
    from qoslab.system import program_formats

NEAR_S = 0.25
"""Distance from a requested time to a regular reading that it replaces: closer readings would give rates of single
packets.
"""
POLL_S = 0.05
FIRST_S = 10.0
"""Longest time for the first sample."""


def read_health(lab: Lab, routers: Sequence[str]) -> dict[str, Health]:
    """Read each data plane's lateness and losses since its counters were cleared."""

    async def ask() -> dict[str, Health]:
        found = {}
        for router in routers:
            async with lab.control(router) as client:
                found[router] = Health.model_validate(await client.health())
        return found

    return asyncio.run(ask())


def start_afresh(lab: Lab, routers: Sequence[str], kernels: Sequence[str] = ()) -> None:
    """Empty each data plane's queues and let it count again, its lateness and losses too.

    Those of `kernels` are configured again, which empties their queues.

    A flood leaves a slow line's queue full, and a queue outlives the policy that filled it: the next cell would begin
    with packets of the one before.
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


async def _empty_queues(client: DataPlane) -> None:
    """Shut down the interfaces if something waits, which drops it, and bring them up again."""
    found = (await client.counters())["interfaces"]
    full = [name for name, each in found.items() if each["queue"]["depth"] or each["tx_ring"]["depth"]]
    config = await client.config()
    if not full or config is None:
        return
    present = config["interfaces"]
    shut: dict[str, program_formats.InterfaceConfig] = {name: {**present[name], "enabled": False} for name in full}
    await client.configure({**config, "interfaces": {**present, **shut}})
    await client.configure(config)


def read_engine_configuration(lab: Lab, router: str) -> program_formats.RouterConfig | None:
    """The configuration that the router's data plane has in force."""

    async def ask() -> program_formats.RouterConfig | None:
        async with lab.control(router) as client:
            return await client.config()

    return asyncio.run(ask())


class Readings:
    """Schedule of counter readings: once a second, and at requested times of the traffic in place of a near regular
    one.

    Times are of `time.monotonic`.
    """

    def __init__(self, now: float, moments_s: Iterable[float] = ()) -> None:
        self._regular = now
        self._moments_s = sorted(moments_s)
        self._zero: float | None = None

    def start(self, zero: float) -> None:
        """The traffic begins then."""
        self._zero = zero

    def due(self) -> float:
        """Return when the next one is."""
        moment = self._moment()
        return moment if moment < self._regular + NEAR_S else self._regular

    def _moment(self) -> float:
        """The first that is still to come, as far as one is known."""
        return math.inf if self._zero is None or not self._moments_s else self._zero + self._moments_s[0]

    def taken(self, due: float) -> None:
        """The one that was due then has been taken."""
        if due == self._moment():
            self._moments_s.pop(0)
        if due > self._regular - NEAR_S:
            self._regular += COUNTED_EVERY_S


class CounterSampler:
    """A thread that asks each router for its counters and keeps the replies in the cell's folder.

    A context manager: it takes the first sample before the block begins, then one each second and, once `start` has
    said when the traffic begins, at moments of it, and a last one when the block ends.
    """

    def __init__(self, lab: Lab, routers: Sequence[str], cell: Cell, moments_s: Iterable[float] = ()) -> None:
        self._clients = {router: lab.control(router) for router in routers}
        self._cell = cell
        self._readings = Readings(time.monotonic(), moments_s)
        self._stop = threading.Event()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counters", daemon=True)
        self.error: Exception | None = None
        """Reason for an early end of the sampling, if any."""

    def __enter__(self) -> Self:
        self._thread.start()
        # Counters grow from the first sample, and those of a kernel in user mode take a while on a busy machine.
        self._begun.wait(FIRST_S)
        return self

    def start(self, zero: float) -> None:
        """The traffic begins then (`time.monotonic`)."""
        self._readings.start(zero)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._sample())
        except Exception as error:  # reported by the cell, in whose thread it can be handled
            self.error = error
        finally:
            self._begun.set()

    async def _sample(self) -> None:
        try:
            last, due = False, self._readings.due()
            while True:
                for router, client in self._clients.items():
                    try:
                        self._cell.append_counters(router, dict(await client.counters()))
                    except QoslabError as error:
                        # A dead data plane ends the cell elsewhere; here it only ends the series.
                        self.error = error
                        return
                self._begun.set()
                if last:
                    return
                self._readings.taken(due)
                while not self._stop.is_set() and (due := self._readings.due()) > (now := time.monotonic()):
                    await asyncio.sleep(min(POLL_S, due - now))
                last = self._stop.is_set()
        finally:
            for client in self._clients.values():
                await client.close()
