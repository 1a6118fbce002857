"""Probes of engine routers, which have no command line: by the control socket of the data plane."""

from __future__ import annotations

import asyncio
from typing import Any

from qoslab.model.experiment import Probe
from qoslab.run.cell.probes.base import Prober, Setting
from qoslab.run.cell.probes.results import values_from_report
from qoslab.system import program_formats

START_NOW: program_formats.Schedule = {"life_s": None, "start": "now"}


class EngineProber(Prober):
    """Schedules the operation in the configuration of the data plane."""

    def __init__(self, setting: Setting, probe: Probe) -> None:
        super().__init__(setting, probe)
        self._scheduled = False

    def start(self, at_ns: int) -> None:
        """See `Prober`."""
        self._scheduled = True
        asyncio.run(self._schedule(START_NOW))

    def read(self) -> dict[str, Any]:
        """See `Prober`."""
        report = self.data_plane_report()
        self.save_samples(report)
        values = values_from_report(report, jitter=self.probe.is_jitter)
        if values is None:
            raise self.unanswered_error(report["latest"]["return_code"])
        return values

    def stop(self) -> None:
        """See `Prober`."""
        if self._scheduled:
            asyncio.run(self._schedule(None))
            self._scheduled = False

    async def _schedule(self, schedule: program_formats.Schedule | None) -> None:
        with self.setting.lock:
            async with self.setting.lab.control(self.probe.source) as client:
                config = await client.config()
                ip_sla = None if config is None else config.get("ip_sla")
                assert config is not None and ip_sla is not None  # part of the router's base configuration
                ip_sla["operations"][str(self.number)]["schedule"] = schedule
                await client.configure(config)
