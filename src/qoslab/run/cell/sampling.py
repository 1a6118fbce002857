"""Keeps the counters of the routers' data planes as a time series while a cell runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from qoslab.errors import QoslabError
from qoslab.model.moments import COUNTED_EVERY_S
from qoslab.results import Cell, Health
from qoslab.run.lab import DataPlane, Lab

if TYPE_CHECKING:
    from qoslab import formats


def read_health(lab: Lab, routers: Sequence[str]) -> dict[str, Health]:
    """What each data plane says of its lateness and losses since its counters were cleared."""

    async def ask() -> dict[str, Health]:
        found = {}
        for router in routers:
            async with lab.control(router) as client:
                found[router] = Health.model_validate(await client.health())
        return found

    return asyncio.run(ask())


def start_afresh(lab: Lab, routers: Sequence[str]) -> None:
    """Empty each data plane's queues and let it count anew, its lateness and losses too.

    A flood leaves a slow line's queue full, and a queue outlives the policy that filled it: the next cell would begin
    with packets of the one before.
    """

    async def ask() -> None:
        for router in routers:
            async with lab.control(router) as client:
                await _empty_queues(client)
                await client.clear()

    asyncio.run(ask())


async def _empty_queues(client: DataPlane) -> None:
    """Shut down the interfaces where something waits, which drops it, and bring them up again."""
    found = (await client.counters())["interfaces"]
    full = [name for name, each in found.items() if each["queue"]["depth"] or each["tx_ring"]["depth"]]
    config = await client.config()
    if not full or config is None:
        return
    present = config["interfaces"]
    shut: dict[str, formats.InterfaceConfig] = {name: {**present[name], "enabled": False} for name in full}
    await client.configure({**config, "interfaces": {**present, **shut}})
    await client.configure(config)


def read_engine_configuration(lab: Lab, router: str) -> formats.RouterConfig | None:
    """The configuration that the router's data plane has in force."""

    async def ask() -> formats.RouterConfig | None:
        async with lab.control(router) as client:
            return await client.config()

    return asyncio.run(ask())


class CounterSampler:
    """A thread that asks each router for its counters once a second and keeps the replies in the cell's folder.

    A context manager: it takes the first sample when the block begins, and a last one when it ends.
    """

    def __init__(self, lab: Lab, routers: Sequence[str], cell: Cell) -> None:
        self._clients = {router: lab.control(router) for router in routers}
        self._cell = cell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counters", daemon=True)
        self.error: Exception | None = None
        """Why the sampling ended early, if it did."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._sample())
        except Exception as error:  # reported by the cell, in whose thread it can be handled
            self.error = error

    async def _sample(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            last = False
            while True:
                for router, client in self._clients.items():
                    try:
                        self._cell.append_counters(router, dict(await client.counters()))
                    except QoslabError as error:
                        # A dead data plane ends the cell elsewhere; here it only ends the series.
                        self.error = error
                        return
                if last:
                    return
                due += COUNTED_EVERY_S
                while not self._stop.is_set() and loop.time() < due:
                    await asyncio.sleep(min(0.05, max(0.0, due - loop.time())))
                last = self._stop.is_set()
        finally:
            for client in self._clients.values():
                await client.close()
