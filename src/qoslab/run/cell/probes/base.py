"""Interface of every prober, and its tools."""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qoslab.errors import RunInvalid
from qoslab.model.experiment import Experiment, Probe, probe_number
from qoslab.results import Cell, SenderRecord
from qoslab.run.cell.probes.results import unanswered
from qoslab.run.protocols import Lab

if TYPE_CHECKING:
    from qoslab.system import program_formats

Show = Callable[[str, str], str]
"""Function that returns a router's answer to a show command."""
Enter = Callable[[str, list[str]], str]
"""Function that returns a router's answer to configuration lines."""


@dataclass(frozen=True)
class Setting:
    """The cell in which probes run."""

    lab: Lab
    experiment: Experiment
    cell: Cell
    observe: Show
    enter: Enter
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while a configuration is read, changed and given back, since probes run side by side."""


class Prober(ABC):
    """Runs one probe. Its methods are called in one thread, except for `stop`, which comes when that has ended."""

    def __init__(self, setting: Setting, probe: Probe) -> None:
        self.setting = setting
        self.probe = probe
        self.warnings: list[str] = []
        """Warnings about its values."""
        self.sender: SenderRecord | None = None
        """Lateness of its packets; None if unknown."""

    @property
    def number(self) -> int:
        """Return the number of the operation."""
        return probe_number(self.setting.experiment, self.probe)

    @property
    def look_every_s(self) -> float | None:
        """Return how often `look` is to be called between start and reading; None: never."""
        return None

    def prepare(self) -> None:  # noqa: B027 (most need nothing)
        """Before the traffic: `RunInvalid` if it is known already that the operation cannot run."""

    @property
    def notice_s(self) -> float:
        """Return how long before its instant `start` is to be called."""
        return 0.0

    @abstractmethod
    def start(self, at_ns: int) -> None:
        """Let the operation run, from this instant of CLOCK_MONOTONIC on, which is `notice_s` from now.

        `RunInvalid` or `DeviceError` if that is refused.
        """

    def look(self) -> None:  # noqa: B027 (most have nothing to examine)
        """Read data that will be gone at the end."""

    @abstractmethod
    def read(self) -> dict[str, Any]:
        """Read the results, see `figures`; raw output goes to files. `RunInvalid` if nothing was answered."""

    @abstractmethod
    def stop(self) -> None:
        """End the operation, if it was started; also if the traffic broke off."""

    def file(self, suffix: str) -> Path:
        """A file of this probe."""
        return self.setting.cell.path / "probes" / f"{self.probe.name}.{suffix}"

    def data_plane_report(self) -> program_formats.OperationReport:
        """Return the results of the sending router's data plane, with the stamps of each packet."""

        async def ask() -> program_formats.OperationReport:
            async with self.setting.lab.control(self.probe.source) as client:
                found = await client.ip_sla(self.number, samples=True)
                return found["operations"][str(self.number)]

        return asyncio.run(ask())

    def keep_samples(self, report: program_formats.OperationReport) -> None:
        """Save the output of the data plane or program, with the time stamps of each packet."""
        self.setting.cell.write(self.file("samples.json"), json.dumps(report) + "\n")

    def unanswered(self, code: str, reason: str = "") -> RunInvalid:
        """No packet was answered; `code` is the latest return code, `said` what the prober says of it."""
        return unanswered(self.probe, code, reason)
